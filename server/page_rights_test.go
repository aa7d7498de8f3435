package server

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestPageRights: on the page a person narrows and widens the mode of a session of a client that cannot ask, never above
// what the operator allows, and takes back a rule that was allowed in it. It holds from the next call on, which tells
// the model once.
func TestPageRights(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"permissions.mode": "acceptEdits", "permissions.ask_fallback": "deny", "console.approvals": "always", "tools.deferral": "off"}
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{make: allAnd(oneChange(runs)...), settings: settings, proven: confined})
	b, c := browserOn(t, x), onHTTP(t, x, "", false, replaytest.Undeclared)
	write := func(name string) replaytest.ElicitAnswer {
		return c.Call("write_file", `{"file_path":"`+name+`","content":"one\n"}`, replaytest.Never(t))
	}
	const told = "\n[on the page the user set the mode of this session to "
	if a := write("a.txt"); a.Failed || strings.Contains(a.Text, told) {
		t.Fatalf("%+v", a)
	}
	_, text := b.get("/activity")
	session := regexp.MustCompile(`activity\?session=([0-9a-f]{8})`).FindStringSubmatch(text)[1]
	rights := func(field, value, done string) {
		t.Helper()
		form := url.Values{"csrf": {b.csrf()}, "of": {"local"}, "session": {session}, field: {value}}
		if field == "rule" {
			form["do"], form["list"] = []string{"take"}, []string{"allow"}
		}
		status, at := b.press("rights", form)
		if done == "" && status != http.StatusBadRequest || done != "" && !strings.HasSuffix(at, "session="+session+"&done="+done) {
			t.Errorf("%s %s: %d, %s", field, value, status, at)
		}
	}
	_, text = b.get("/activity?session=" + session)
	if !strings.Contains(text, "Mode <strong>acceptEdits</strong>") || strings.Contains(text, `"bypassPermissions"`) || strings.Contains(text, `"auto"`) {
		t.Errorf("the page offers %s", text)
	}
	rights("mode", "bypassPermissions", "")
	rights("mode", "auto", "")

	rights("mode", "plan", "mode")
	a := write("b.txt")
	if !strings.HasPrefix(a.Text, "PLAN_MODE: ") {
		t.Errorf("%+v", a)
	}
	read := func() string {
		return c.Call("read_file", `{"file_path":"a.txt"}`, replaytest.Never(t)).Text
	}
	if first, second := read(), read(); !strings.Contains(a.Text+first, told+"plan; it does not go above that]") || strings.Contains(second, told) {
		t.Errorf("told %q, then %q", first, second)
	}
	// what the model can do about the mode leads no higher
	c.Call("exit_plan_mode", `{"plan":"1. Write."}`, replaytest.Never(t))
	if a := write("b.txt"); !strings.HasPrefix(a.Text, "PLAN_MODE: ") {
		t.Errorf("%+v", a)
	}

	rights("mode", "default", "mode")
	answer := make(chan replaytest.ElicitAnswer, 1)
	go func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)) }()
	b.says(b.wait(1)[0], "allow for this session", "")
	if a := <-answer; a.Failed {
		t.Errorf("%+v", a)
	}
	if a := c.Call("change", `{"text":"one"}`, replaytest.Never(t)); a.Failed {
		t.Errorf("%+v", a)
	}
	_, text = b.get("/activity?session=" + session)
	rule := regexp.MustCompile(`name="rule" value="([^"]*)"`).FindStringSubmatch(text)
	if rule == nil {
		t.Fatalf("no rule on %s", text)
	}
	rights("rule", rule[1], "taken")
	rights("rule", rule[1], "closed")
	go func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)) }()
	b.says(b.wait(1)[0], "deny", "")
	if a := <-answer; !strings.HasPrefix(a.Text, "USER_DECLINED: ") {
		t.Errorf("%+v", a)
	}
	if text := read(); !strings.Contains(text, "\n[on the page the user took back a rule of this session: allow "+rule[1]+"]") {
		t.Errorf("told %q", text)
	}

	rights("mode", "", "mode")
	if a := write("d.txt"); a.Failed || !strings.Contains(a.Text, "[on the page the user gave the mode of this session back to the operator's settings: it is acceptEdits]") {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat(filepath.Join(x.work, "b.txt")); !os.IsNotExist(err) {
		t.Errorf("a call in plan mode ran: %v", err)
	}
	b.press("rights", url.Values{"csrf": {b.csrf()}, "of": {"somebody"}, "session": {session}, "mode": {"plan"}})
	if a := write("e.txt"); a.Failed {
		t.Errorf("as a session of another principal: %+v", a)
	}
}

// TestPageRules: on the page a person sets rules for a session, which hold from its next call on, for it alone, until they
// are taken back; the session is told of each. What the settings deny stays denied, and what they would not take is
// refused with the reason.
func TestPageRules(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"permissions.mode": "default", "permissions.ask_fallback": "deny", "console.approvals": "always", "tools.deferral": "off",
		"permissions.deny": "Edit(never.txt)", "permissions.allow": "Edit(*.txt)"}
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{make: allAnd(oneChange(runs)...), settings: settings, proven: confined})
	b, c, other := browserOn(t, x), onHTTP(t, x, "", false, replaytest.Undeclared), onHTTP(t, x, "", false, replaytest.Undeclared)
	write := func(c *replaytest.ElicitClient, name string) string {
		t.Helper()
		return c.Call("write_file", `{"file_path":"`+name+`","content":"one\n"}`, replaytest.Never(t)).Text
	}
	wrote := func(said string) {
		t.Helper()
		if !strings.HasPrefix(said, "Created ") {
			t.Error(said)
		}
	}
	wrote(write(c, "a.txt"))
	_, text := b.get("/activity")
	session := regexp.MustCompile(`activity\?session=([0-9a-f]{8})`).FindStringSubmatch(text)[1]
	press := func(list, rule string, more ...string) (status int, said string) {
		t.Helper()
		form := url.Values{"csrf": {b.csrf()}, "of": {"local"}, "session": {session}, "list": {list}, "rule": {rule}}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/console/rights", strings.NewReader(form.Encode()))
		must(t, err)
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", b.url)
		r, text := b.read(b.Do(q))
		return r.StatusCode, html.UnescapeString(text) + r.Header.Get("Location")
	}
	done := func(done, list, rule string, more ...string) {
		t.Helper()
		if _, said := press(list, rule, more...); !strings.HasSuffix(said, "session="+session+"&done="+done) {
			t.Errorf("%s %s: %s", list, rule, said)
		}
	}
	for _, wrong := range []struct{ list, rule, why string }{
		{"deny", "Bash(", `this page: rule "Bash(": want Tool or Tool(what)`},
		{"deny", "Bsh(rm *)", "Bsh takes nothing in parentheses but a parameter"},
		{"deny", "Bsh", "this page: rule Bsh names no tool"},
		{"ask", "Bash(^rm)", "a pattern is no regular expression"},
		{"ask", "call_tool", "a rule about call_tool decides nothing"},
		{"allow", "Edit(/x)", "it names no root; write // for an absolute path"},
		{"allow", "mcp__*", "only rules that deny or ask take a pattern of tool names"},
		{"everything", "Edit", "Choose one of what is offered."},
		{"deny", "", "want Tool or Tool(what)"},
	} {
		if status, said := press(wrong.list, wrong.rule); status != http.StatusBadRequest || !strings.Contains(said, wrong.why) {
			t.Errorf("%s %s: %d, %s", wrong.list, wrong.rule, status, said)
		}
	}

	done("set", "deny", "Edit(b.txt)")
	const denied = "PERMISSION_DENIED: Permission denied: write_file: rule Edit(b.txt), set for this session on the page. The user can take that rule back on the page."
	if said := write(c, "b.txt"); !strings.HasPrefix(said, denied) {
		t.Error(said)
	}
	if said := write(c, "c.txt"); !strings.HasPrefix(said, "Created ") || !strings.Contains(said, "\n[on the page the user set a rule for this session: deny Edit(b.txt)]") {
		t.Error(said)
	}
	wrote(write(other, "b.txt"))
	must(t, os.Remove(filepath.Join(x.work, "b.txt")))

	done("set", "ask", "Edit(d.txt)")
	answer := make(chan string, 1)
	go func() { answer <- write(c, "d.txt") }()
	asked := b.wait(1)[0]
	if !strings.Contains(asked.text, "rule Edit(d.txt), set for this session on the page") {
		t.Error(asked.text)
	}
	b.says(asked, "deny", "")
	if said := <-answer; !strings.HasPrefix(said, "USER_DECLINED: ") {
		t.Error(said)
	}

	done("set", "allow", "change")
	if a := c.Call("change", `{"text":"one"}`, replaytest.Never(t)); a.Failed || runs.count() != 1 {
		t.Errorf("%+v", a)
	}
	done("set", "allow", "Edit(never.txt)")
	if said := write(c, "never.txt"); !strings.HasPrefix(said, "PERMISSION_DENIED: ") {
		t.Error(said)
	}

	_, text = b.get("/activity?session=" + session)
	for _, rule := range []string{"deny <code>Edit(b.txt)", "ask <code>Edit(d.txt)", "allow <code>change", "allow <code>Edit(never.txt)"} {
		if !strings.Contains(text, rule+"</code></td><td>set here by local</td>") {
			t.Errorf("%s is not on %s", rule, text)
		}
	}
	done("closed", "ask", "Edit(b.txt)", "do", "take")
	done("closed", "deny", "Edit(b.txt)", "do", "take", "of", "somebody")
	done("taken", "deny", "Edit(b.txt)", "do", "take")
	wrote(write(c, "b.txt"))
	done("taken", "allow", "change", "do", "take")
	go func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)).Text }()
	b.says(b.wait(1)[0], "deny", "")
	if said := <-answer; !strings.HasPrefix(said, "USER_DECLINED: ") || runs.count() != 1 {
		t.Error(said)
	}
}

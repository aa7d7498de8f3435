package server

import (
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
		status, at := b.press("rights", url.Values{"csrf": {b.csrf()}, "of": {"local"}, "session": {session}, field: {value}})
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
	if text := read(); !strings.Contains(text, "\n[on the page the user took back what this session was allowed: "+rule[1]+"]") {
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

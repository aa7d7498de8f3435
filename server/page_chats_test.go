package server

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// chatSettings let each chat wait for a person.
func chatSettings(more ...string) map[string]string {
	s := map[string]string{"permissions.mode": "default", "permissions.allow": "change", "console.approve_chats": "true",
		"tools.deferral": "off"}
	for i := 0; i < len(more); i += 2 {
		s[more[i]] = more[i+1]
	}
	return s
}

// TestPageLetsChats: with console.approve_chats each new chat waits with its first calls, also one whose client asks
// its own person, until a person says once on the page whether it may work. Until then it reads nothing. A no is a rule
// of its session: a person takes it back, and is asked again.
func TestPageLetsChats(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"legacy", "modern"} {
		for _, caps := range []string{replaytest.Undeclared, replaytest.Declared} {
			t.Run(kind+caps, func(t *testing.T) {
				t.Parallel()
				runs := &runCount{}
				x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: chatSettings(), proven: confined})
				t.Cleanup(x.server.team.Desk.Open("local"))
				lets(t, x, runs, kind == "modern", caps)
			})
		}
	}
}

func lets(t *testing.T, x *httpSite, runs *runCount, modern bool, caps string) {
	b := browserOn(t, x)
	named := func(string) string { return "" }
	if modern { // which otherwise names no chat
		named = func(chat string) string { return `,"codehand/session":"` + chat + `"` }
	}
	one, two := onHTTP(t, x, "", modern, caps+named("chat-one")), onHTTP(t, x, "", modern, caps+named("chat-two"))
	answers := make(chan replaytest.ElicitAnswer, 2)
	call := func(c *replaytest.ElicitClient) {
		answers <- c.Call("change", `{"text":"one"}`, replaytest.Never(t))
	}
	go call(one)
	asked := b.wait(1)[0]
	first := `First call: change {"text":"one"}`
	for _, want := range []string{"Let a new chat of ", "console.approve_chats", x.work, first} {
		if !strings.Contains(asked.text, want) {
			t.Errorf("no %q in %s", want, asked.text)
		}
	}
	if !modern {
		const read = `{"jsonrpc":"2.0","id":900,"method":"resources/read","params":{"uri":"codehand://x"}}`
		if said := string(one.Request(read)()); !strings.Contains(said, "The user must let this new chat") {
			t.Errorf("it reads: %s", said)
		}
	}
	b.says(asked, "allow this chat", "")
	if a := <-answers; a.Failed || runs.count() != 1 {
		t.Errorf("%+v after %d", a, runs.count())
	}
	if call(one); (<-answers).Failed || runs.count() != 2 {
		t.Error("it is asked about twice")
	}

	go call(two)
	b.says(b.wait(1)[0], "deny", "not today")
	if a := <-answers; !strings.HasPrefix(a.Text, "USER_DECLINED: The user did not let this chat work") ||
		!strings.Contains(a.Text, "They said: not today") {
		t.Errorf("%+v", a)
	}
	call(two)
	if a := <-answers; a.Text != "TOOL_DISABLED: change is not available: rule *, set for this session on the page. "+
		"The user can take that rule back on the page." {
		t.Errorf("%+v", a)
	}
	_, text := b.get("/activity")
	form := url.Values{"csrf": {b.csrf()}, "of": {"local"}, "do": {"take"}, "list": {"deny"}, "rule": {"*"}}
	for _, s := range regexp.MustCompile(`activity\?session=([0-9a-f]{8})`).FindAllStringSubmatch(text, -1) {
		form.Set("session", s[1]) // the other one has no such rule
		if status, at := b.press("rights", form); status != http.StatusSeeOther {
			t.Errorf("%d, %s", status, at)
		}
	}
	go call(two)
	b.says(b.wait(1)[0], "allow this chat", "")
	if a := <-answers; a.Failed || runs.count() != 3 {
		t.Errorf("%+v after %d", a, runs.count())
	}
}

// TestPageLetsChatsOnce: calls that a chat makes at once are one question. Where nobody looks, a call is refused with
// where the person is asked; it ends with its client; and a server without a page does not start.
func TestPageLetsChatsOnce(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: chatSettings(), proven: confined})
	c := onHTTP(t, x, "", true, replaytest.Undeclared)
	a := c.Call("change", `{"text":"one"}`, replaytest.Never(t))
	if !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: Nothing was done. The user must let this new chat (") ||
		!strings.Contains(a.Text, "they are asked on "+x.url+"/ as long as that page is open") {
		t.Errorf("%+v", a)
	}
	t.Cleanup(x.server.team.Desk.Open("local"))
	b := browserOn(t, x)
	answers := make(chan replaytest.ElicitAnswer, 3)
	for range cap(answers) {
		go func() {
			answers <- onHTTP(t, x, "", true, replaytest.Undeclared).Call("change", `{"text":"one"}`, replaytest.Never(t))
		}()
	}
	replaytest.Until(t, "all calls wait", func() bool { return len(x.server.team.Desk.Waits("local")) == cap(answers) })
	asked := b.wait(1)[0]
	if !strings.Contains(asked.text, "This client does not name its chats") {
		t.Error(asked.text)
	}
	b.says(asked, "allow this chat", "")
	for range cap(answers) {
		if a := <-answers; a.Failed {
			t.Errorf("%+v", a)
		}
	}
	if runs.count() != cap(answers) {
		t.Errorf("%d calls ran", runs.count())
	}
	must(t, x.stop())

	// what a person said outlives serve
	last := serveHTTP(t, siteSetup{tools: oneChange(runs), data: x.data, work: x.work, settings: chatSettings(),
		proven: confined})
	c = onHTTP(t, last, "", true, replaytest.Undeclared)
	if a := c.Call("change", `{"text":"one"}`, replaytest.Never(t)); a.Failed {
		t.Errorf("%+v", a)
	}
}

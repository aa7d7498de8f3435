package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codehand/server/replaytest"
	"codehand/tools/tool"
)

func oneChange(runs *runCount) []tool.Tool { return []tool.Tool{changing("change", runs)} }

// TestAsk: what a person says decides, on every transport and in both eras.
func TestAsk(t *testing.T) {
	t.Parallel()
	eachWire(t, replaytest.Declared, oneChange, func(t *testing.T, c *replaytest.ElicitClient, runs *runCount) {
		for _, tt := range []struct {
			name, say, want string
			ran             int
		}{
			{"once", replaytest.SayOnce, "did one", 1},
			{"denied", replaytest.SayDeny, "USER_DECLINED: The user declined this action. They said: too soon", 1},
			{"declined", replaytest.SayDecline, "USER_DECLINED: The user declined this action.", 1},
			{"once again", replaytest.SayOnce, "did one", 2},
			{"cancelled", replaytest.SayCancel, "ASK_UNAVAILABLE: Permission denied: change needs a person's approval. No person answered.", 2},
			{"an acceptance of nothing", `{"action":"accept"}`, "USER_DECLINED: The user declined this action.", 2},
			{"once more", replaytest.SayOnce, "did one", 3},
			{"a choice that was not offered", `{"action":"accept","content":{"decision":"always"}}`, "USER_DECLINED: The user declined this action.", 3},
			{"not an action", `{"action":"allow","content":{"decision":"allow once"}}`, "USER_DECLINED: The user declined this action.", 3},
			{"the last time", replaytest.SayOnce, "did one", 4},
		} {
			text := "one " + tt.name // exactly the same call is not asked about again at once
			a := c.Call("change", replaytest.AsJSON(t, "text", text), func(q string) string {
				if !strings.HasPrefix(q, "Allow change?\nAsked because: ") || !strings.Contains(q, "Asked because: mode default asks before this.") {
					t.Errorf("the question is %q", q)
				}
				return tt.say
			})
			if !strings.HasPrefix(a.Text, tt.want) || a.Asked != 1 || runs.count() != tt.ran || a.Failed != (tt.want != "did one") {
				t.Fatalf("%s: %+v, ran %d times", tt.name, a, runs.count())
			}
			if !strings.Contains(a.Raw, `"codehand/decision":{"decision":"`) || !strings.Contains(a.Raw, `"asked":true`) {
				t.Errorf("%s: %s", tt.name, a.Raw)
			}
		}
	})
}

// TestAskUndeclared: a client that did not declare elicitation, or only addresses to open, is never asked.
func TestAskUndeclared(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]string{"nothing": replaytest.Undeclared, "url": `{"elicitation":{"url":{}}}`, "other": `{"sampling":{}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWire(t, caps, oneChange, func(t *testing.T, c *replaytest.ElicitClient, runs *runCount) {
				a := c.Call("change", `{"text":"one"}`, replaytest.Never(t))
				if runs.count() != 0 || !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: Permission denied: change needs a person's approval and this client cannot ask one. ") {
					t.Errorf("%+v, ran %d times", a, runs.count())
				}
				c.AsksNobody()
			})
		})
	}
}

// TestAskWithoutStream: a legacy client that takes no event stream cannot be asked.
func TestAskWithoutStream(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	h := x.client("")
	h.Extra = map[string]string{"Accept": "application/json"}
	c := replaytest.OverHTTP(t, h, false, replaytest.Declared)
	a := c.Call("change", `{"text":"one"}`, replaytest.Never(t))
	if runs.count() != 0 || !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: ") {
		t.Errorf("%+v", a)
	}
	c.AsksNobody()
}

// TestAskClientFallback: a default ask that is left to the client's own dialog is not put a second time.
func TestAskClientFallback(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	f := start(t, setup{tools: oneChange(runs), silent: true})
	c := replaytest.OnPipe(t, f.Wire, false, replaytest.Declared)
	if a := c.Call("change", `{"text":"one"}`, replaytest.Never(t)); a.Failed || runs.count() != 1 {
		t.Errorf("%+v", a)
	}
	c.AsksNobody()
}

// TestAskListing: a client that cannot be asked is told to show its own dialog where a person must see a call; one that
// can is not, or people would be asked twice. A tool that only asks is listed for that one alone.
func TestAskListing(t *testing.T) {
	t.Parallel()
	for caps, want := range map[string][]string{replaytest.Declared: nil, replaytest.Undeclared: {"exit_plan_mode"}} {
		eachWire(t, caps, func(*runCount) []tool.Tool { return nil }, func(t *testing.T, c *replaytest.ElicitClient, _ *runCount) {
			meta := ""
			if c.Modern {
				meta = `"_meta":{` + c.Meta() + `}`
			}
			var list struct {
				Result struct {
					Tools []struct {
						Name string
						Meta map[string]any `json:"_meta"`
					}
				}
			}
			must(t, json.Unmarshal(c.Request(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{`+meta+`}}`)(), &list))
			var got []string
			asks := false
			for _, l := range list.Result.Tools {
				asks = asks || l.Name == "ask_user_question"
				if l.Meta["anthropic/requiresUserInteraction"] == true {
					got = append(got, l.Name)
				}
			}
			if len(list.Result.Tools) < 5 || !slices.Equal(got, want) || asks != (caps == replaytest.Declared) {
				t.Errorf("of %d tools, %q; ask_user_question is listed: %t", len(list.Result.Tools), got, asks)
			}
		})
	}
}

// TestAskWords: the feedback about a plan reached the model littered with the escapes of a terminal. What a person writes
// arrives without them, and cut.
func TestAskWords(t *testing.T) {
	t.Parallel()
	said, _ := json.Marshal("\x1b]0;title\atest\x1b[31m more\u202e\x00" + strings.Repeat("é", 5000))
	eachWire(t, replaytest.Declared, func(*runCount) []tool.Tool { return nil }, func(t *testing.T, c *replaytest.ElicitClient, _ *runCount) {
		want := `They said: test more\u202e` + strings.Repeat("é", 900)
		for name, call := range map[string][2]string{
			"write_file":     {`{"file_path":"a.txt","content":"x"}`, `{"action":"accept","content":{"decision":"deny","reason":%s}}`},
			"exit_plan_mode": {`{"plan":"1. Think."}`, `{"action":"accept","content":{"decision":"keep planning","feedback":%s}}`},
		} {
			if name == "exit_plan_mode" {
				c.Call("enter_plan_mode", `{}`, replaytest.Never(t))
			}
			a := c.Call(name, call[0], replaytest.Always(fmt.Sprintf(call[1], said)))
			if a.Asked != 1 || !strings.Contains(a.Text, want) || strings.ContainsAny(a.Text, "\x1b\x00\u202e") || strings.Count(a.Text, "é") > 1_000 {
				t.Errorf("%s: asked %d times: %.300q", name, a.Asked, a.Text)
			}
			if name == "exit_plan_mode" {
				c.Call(name, call[0], replaytest.Always(`{"action":"accept","content":{"decision":"approve, ask for edits"}}`))
			}
		}
	})
}

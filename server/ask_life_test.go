package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/asking"
	"codehand/server/replaytest"
	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// impatient lets persons think for a moment only.
func impatient(s *Server) { s.calls.Asks.Life = time.Millisecond }

// mute answers no question, and says when one came.
func mute(came chan<- string) func(string) string {
	return func(q string) string {
		came <- q
		return replaytest.Stop
	}
}

// TestAskNoAnswer: a time that is over, an error of the client and an answer without sense are a no, and the question is
// withdrawn where it still stands.
func TestAskNoAnswer(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			runs := &runCount{}
			c, s, forgive := legacyOn(t, transport, runs)
			for name, answer := range map[string]string{
				"an error": `"error":{"code":-32601,"message":"no"}`, "no result": `"result":null`, "a text": `"result":"accept"`,
				"no action": `"result":{"content":{"decision":"allow once"}}`, "both": `"result":{"action":"accept","content":{"decision":"allow once"}},"error":{"code":1,"message":"x"}`,
			} {
				a := c.Call("change", `{"text":"one"}`, func(string) string {
					id := c.QuestionID()
					c.Send(`{"jsonrpc":"2.0","id":"ask-unknown","result":` + replaytest.SayOnce + `}`)
					c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, answer))
					return replaytest.Stop
				})
				if !strings.HasPrefix(a.Text, "USER_DECLINED") && !strings.Contains(a.Text, "No person answered.") || runs.count() != 0 {
					t.Errorf("%s: %+v", name, a)
				}
				forgive()
			}
			impatient(s)
			came := make(chan string, 1)
			a := c.Call("change", `{"text":"one"}`, mute(came))
			if !strings.Contains(a.Text, "No person answered.") || runs.count() != 0 || len(came) != 1 {
				t.Errorf("late: %+v", a)
			}
			id := c.QuestionID()
			c.Mu.Lock()
			wire := strings.Join(c.Wire, "\n")
			c.Mu.Unlock()
			if !strings.Contains(wire, `"method":"notifications/cancelled","params":{"requestId":`+id) {
				t.Errorf("the question was not withdrawn:\n%s", wire)
			}
			c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, replaytest.SayOnce)) // too late
			if runs.count() != 0 {
				t.Errorf("ran %d times", runs.count())
			}
		})
	}
}

// TestAskSilence: a client that was away, or whose questions failed, locked itself out of all questions, and the model was
// told that the user had declined. No answer is not a decline.
func TestAskSilence(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			runs := &runCount{}
			c, s, _ := legacyOn(t, transport, runs)
			for i := range 5 {
				if i == 3 {
					impatient(s)
				}
				a := c.Call("change", `{"text":"one"}`, func(string) string {
					if i < 3 {
						c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no window"}}`, c.QuestionID()))
					}
					return replaytest.Stop
				})
				if a.Asked != 1 || !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: Permission denied: change needs a person's approval. No person answered.") {
					t.Fatalf("%d: %+v", i, a)
				}
			}
			if runs.count() != 0 {
				t.Errorf("ran %d times", runs.count())
			}
		})
	}
}

// legacyOn is a legacy client on a transport. forgive forgets the declines of its sessions, since a call that was
// declined is not asked about again at once.
func legacyOn(t *testing.T, transport string, runs *runCount, more ...tool.Tool) (c *replaytest.ElicitClient, s *Server, forgive func()) {
	t.Helper()
	all := append(oneChange(runs), more...)
	if transport == "stdio" {
		f := start(t, setup{tools: all, settings: askingSettings(), silent: true})
		forgive = forgiving(t, f.server)
		return replaytest.OnPipe(t, f.Wire, false, replaytest.Declared), f.server, forgive
	}
	x := serveHTTP(t, siteSetup{tools: all, settings: askingSettings()})
	forgive = forgiving(t, x.server)
	return onHTTP(t, x, "", false, replaytest.Declared), x.server, forgive
}

// forgiving begins to note the sessions of a server that has none.
func forgiving(t *testing.T, s *Server) (forgive func()) {
	var mu sync.Mutex
	var declines []session.Cell[session.Declines]
	build := s.sessions.Build
	s.sessions.Build = func(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
		st, end, err := build(key, at)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			declines = append(declines, st.Declines)
		}
		return st, end, err
	}
	return func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for _, d := range declines {
			_, err := d.Change(t.Context(), func(session.Declines) (none session.Declines, err error) { return none, nil })
			must(t, err)
		}
	}
}

// A forgetfulStore has lost every question by the time of its answer.
type forgetfulStore struct{ state.Store }

func (s forgetfulStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if strings.HasPrefix(key, state.Key(state.Ask, "")) {
		return nil, 0, nil
	}
	return s.Store.Get(ctx, key)
}

// TestAskThreeTimes: a legacy call whose questions are always over is asked three times, then declined.
func TestAskThreeTimes(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	c, s, _ := legacyOn(t, "stdio", runs)
	s.calls.Asks = asking.New(forgetfulStore{s.engines.Store}, 0, s.event, s.replies.Log)
	a := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.SayOnce))
	if a.Asked != asking.Most || !strings.Contains(a.Text, "No person answered.") || runs.count() != 0 {
		t.Errorf("%+v, ran %d times", a, runs.count())
	}
}

// TestAskMeanwhile: while a person thinks, other calls of the session run, writers too; a cancel ends the call that
// asked, and its question with it.
func TestAskMeanwhile(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			runs := &runCount{}
			free := fixtureTool("write_free", tool.Traits{Private: true, Local: true}, func(context.Context, tool.Env, word) (tool.Result, error) {
				return tool.Result{Text: "wrote"}, nil
			})
			c, s, _ := legacyOn(t, transport, runs, free)
			asked := c.Request(c.Line("change", `{"text":"one"}`, ""))
			question := asked()
			c.Received(question)
			if !strings.Contains(string(question), "elicitation/create") {
				t.Fatalf("%s", question)
			}
			if a := c.Call("write_free", `{}`, replaytest.Never(t)); a.Text != "wrote" {
				t.Fatalf("another call: %+v", a)
			}
			c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no"}}`)
			if a := c.Call("write_free", `{}`, replaytest.Never(t)); a.Text != "wrote" {
				t.Fatalf("after the cancel: %+v", a)
			}
			c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, c.QuestionID(), replaytest.SayOnce))
			if a := c.Call("write_free", `{}`, replaytest.Never(t)); a.Text != "wrote" || runs.count() != 0 {
				t.Errorf("after a late answer: %+v, ran %d times", a, runs.count())
			}
			if s.openCalls() {
				t.Error("calls are open")
			}
		})
	}
}

// openCalls closes all sessions, waits until none is in use, and says whether that came.
func (s *Server) openCalls() (open bool) {
	select {
	case <-s.sessions.CloseAll():
		return false
	case <-time.After(replaytest.HangAfter):
		return true
	}
}

// TestAskConnectionEnds: when the client goes while a person thinks, the call ends at once without having run, and its
// place is free.
func TestAskConnectionEnds(t *testing.T) {
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		runs := &runCount{}
		f := start(t, setup{tools: oneChange(runs), settings: askingSettings(), silent: true})
		c := replaytest.OnPipe(t, f.Wire, false, replaytest.Declared)
		next := c.Request(c.Line("change", `{"text":"one"}`, ""))
		if q := next(); !strings.Contains(string(q), "elicitation/create") {
			t.Fatalf("%s", q)
		}
		must(t, f.In.Close())
		if a := next(); !strings.Contains(string(a), "No person answered.") {
			t.Errorf("the answer at the end of the input: %s", a)
		}
		if open := f.server.openCalls(); open || runs.count() != 0 {
			t.Errorf("calls are open: %t; ran %d times", open, runs.count())
		}
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		runs := &runCount{}
		x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
		h := x.client("")
		c := replaytest.OverHTTP(t, h, false, replaytest.Declared)
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.DefaultClient.Do(h.Request(ctx, http.MethodPost, h.URL, c.Line("change", `{"text":"one"}`, "")))
		must(t, err)
		defer r.Body.Close()
		if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("the answer is %s", kind)
		}
		leave()
		if open := x.server.openCalls(); open || runs.count() != 0 {
			t.Errorf("calls are open: %t; ran %d times", open, runs.count())
		}
	})
	t.Run("http, the session is deleted", func(t *testing.T) {
		t.Parallel()
		runs := &runCount{}
		x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
		h := x.client("")
		c := replaytest.OverHTTP(t, h, false, replaytest.Declared)
		next := c.Request(c.Line("change", `{"text":"one"}`, ""))
		next()
		if status := h.Delete(); status != http.StatusOK {
			t.Fatal(status)
		}
		if open := x.server.openCalls(); open || runs.count() != 0 {
			t.Errorf("calls are open: %t; ran %d times", open, runs.count())
		}
	})
	t.Run("the server ends", func(t *testing.T) {
		t.Parallel()
		runs := &runCount{}
		x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
		c := onHTTP(t, x, "", false, replaytest.Declared)
		next := c.Request(c.Line("change", `{"text":"one"}`, ""))
		next()
		must(t, x.stop())
		if a := next(); !strings.Contains(string(a), "No person answered.") || runs.count() != 0 {
			t.Errorf("%s, ran %d times", a, runs.count())
		}
	})
}

// TestAskOtherSession: the answer to a question counts only from the transport session that was asked.
func TestAskOtherSession(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings(), principals: []string{"ann", "bob"}})
	ann := onHTTP(t, x, "ann", false, replaytest.Declared)
	others := []*replaytest.ElicitClient{onHTTP(t, x, "ann", false, replaytest.Declared), onHTTP(t, x, "bob", false, replaytest.Declared)}
	a := ann.Call("change", `{"text":"one"}`, func(string) string {
		for _, o := range others {
			o.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, ann.QuestionID(), replaytest.SayOnce))
		}
		return replaytest.SayDecline
	})
	if !strings.HasPrefix(a.Text, "USER_DECLINED") || runs.count() != 0 {
		t.Errorf("%+v, ran %d times", a, runs.count())
	}
}

// TestAskLegacyInput: what a legacy client writes into its own request is no answer.
func TestAskLegacyInput(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	c, _, _ := legacyOn(t, "stdio", runs)
	a := c.CallWith("change", `{"text":"one"}`, replaytest.Answering(replaytest.SayOnce, "v1.x.y"), replaytest.Always(replaytest.SayDecline))
	if a.Asked != 1 || !strings.HasPrefix(a.Text, "USER_DECLINED") || runs.count() != 0 {
		t.Errorf("%+v, ran %d times", a, runs.count())
	}
}

// TestAskUnreadableInput: a modern request whose answer or requestState has not its form is an error, and nothing runs.
func TestAskUnreadableInput(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	f := start(t, setup{tools: oneChange(runs), settings: askingSettings(), silent: true})
	c := replaytest.OnPipe(t, f.Wire, true, replaytest.Declared)
	for _, more := range []string{`,"requestState":5`, `,"requestState":{}`, `,"inputResponses":5`, `,"inputResponses":[]`} {
		a := c.CallWith("change", `{"text":"one"}`, more, replaytest.Never(t))
		if a.Code != -32602 || a.Text != "the params do not have the form of tools/call" || runs.count() != 0 {
			t.Errorf("%s: %+v, ran %d times", more, a, runs.count())
		}
	}
}

// TestAskShared: without a handle the conversations of one person share a key, and nothing is allowed beyond one call.
func TestAskShared(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	h := x.client("")
	shared := replaytest.OverHTTP(t, h, true, replaytest.Declared)
	own := *h
	own.URL += "/s/one-session"
	handle := replaytest.OverHTTP(t, &own, true, replaytest.Declared)
	for c, want := range map[*replaytest.ElicitClient]bool{shared: false, handle: true} {
		a := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop))
		if got := strings.Contains(a.Raw, "allow for this session"); got != want {
			t.Errorf("%s", a.Raw)
		}
		a = c.With("change", `{"text":"one"}`, replaytest.SaySession, a.State)
		if a.Failed == want {
			t.Errorf("%+v", a)
		}
		if a = c.Call("change", `{"text":"two"}`, replaytest.Always(replaytest.Stop)); (a.Asked == 0) != want {
			t.Errorf("the second call: %+v", a)
		}
	}
}

// TestAskToolQuestion: a tool's own question goes the same way, behind that for permission; each is put once.
func TestAskToolQuestion(t *testing.T) {
	t.Parallel()
	picky := func(runs *runCount) []tool.Tool {
		return []tool.Tool{tool.Define(tool.Def[word]{
			Spec: tool.Spec{Name: "change", Title: "change", Description: "A tool of the tests.", Hint: "a tool of tests", Traits: tool.Traits{Local: true}},
			Question: func(context.Context, *session.State, word) (*tool.Question, error) {
				return &tool.Question{Title: "Which?", Text: "Colour \u202e", Fields: []tool.Field{
					{Name: "colour", Label: "Colour", Choices: []string{"red", "blue"}},
					{Name: "more", Label: "More", Choices: []string{"a", "b", "c"}, Many: true},
					{Name: "note", Label: "Note"},
				}}, nil
			},
			Run: func(_ context.Context, env tool.Env, in word) (tool.Result, error) {
				runs.add()
				return tool.Result{Text: fmt.Sprint(env.Answer.Outcome, env.Answer.Values)}, nil
			},
		})}
	}
	eachWire(t, replaytest.Declared, picky, func(t *testing.T, c *replaytest.ElicitClient, runs *runCount) {
		var asked []string
		say := func(answer string) func(string) string {
			return func(q string) string {
				asked = append(asked, q)
				if strings.HasPrefix(q, "Allow change?") {
					return replaytest.SayOnce
				}
				return answer
			}
		}
		a := c.Call("change", `{"text":"one"}`, say(`{"action":"accept","content":{"colour":"red","more":["c","a"],"note":"n","else":1}}`))
		if a.Text != "3 map[colour:[red] more:[c a] note:[n]]" || len(asked) != 2 || asked[1] != "Which?\nColour \\u202e" {
			t.Errorf("%+v, asked %q", a, asked)
		}
		for answer, want := range map[string]string{
			replaytest.SayDecline: "1 map[]", replaytest.SayCancel: "2 map[]", `{"action":"accept","content":{"colour":"green"}}`: "1 map[]",
			`{"action":"accept","content":{"colour":"red","more":["a","a"]}}`: "1 map[]", `{"action":"accept","content":{"colour":["red"]}}`: "1 map[]",
			`{"action":"accept","content":{"colour":"blue"}}`: "3 map[colour:[blue]]", `{"action":"accept","content":{"colour":"red","note":5}}`: "1 map[]",
		} {
			if a := c.Call("change", `{"text":"one"}`, say(answer)); a.Text != want || a.Asked != 2 {
				t.Errorf("%s: %+v", answer, a)
			}
		}
		if runs.count() != 8 {
			t.Errorf("ran %d times", runs.count())
		}
	})
}

// TestAskAudit: question and answer are in the record, without what was said.
func TestAskAudit(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	c := onHTTP(t, x, "", false, replaytest.Declared)
	c.Call("change", `{"text":"planted-secret"}`, replaytest.Always(replaytest.SayDeny))
	c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.SayOnce))
	m := onHTTP(t, x, "", true, replaytest.Declared)
	m.With("change", `{"text":"one"}`, replaytest.SayOnce, "v1.a.b")
	must(t, x.stop())
	files, err := filepath.Glob(filepath.Join(x.data, "audit", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	must(t, err)
	var got []string
	for l := range strings.Lines(string(b)) {
		var m struct{ Ev, Outcome, Decision, Dec, By, Code, Ask, Call, Tool string }
		must(t, json.Unmarshal([]byte(l), &m))
		switch m.Ev {
		case "ask":
			if m.Ask == "" || m.Call == "" || m.Tool != "change" {
				t.Errorf("%s", l)
			}
			got = append(got, "ask")
		case "answer":
			got = append(got, strings.TrimSpace("answer "+m.Outcome+" "+m.Decision))
		case "call.start":
			got = append(got, strings.Join([]string{"start", m.Dec, m.By}, " "))
		case "call.done":
			got = append(got, strings.Join([]string{"done", m.Dec, m.By, m.Code}, " "))
		}
	}
	want := []string{
		"ask", "done  mode PENDING", "answer accept deny", "done ask.deny user USER_DECLINED",
		"ask", "done  mode PENDING", "answer accept allow-once", "start ask.allow user", "done   ",
		"answer forged",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, secret := range []string{"planted-secret", "too soon", "allow once"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%q is in the audit", secret)
		}
	}
}

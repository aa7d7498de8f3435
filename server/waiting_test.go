package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A modernAnswer is what one request of a modern call brought.
type modernAnswer struct {
	State string
	Asked map[string]struct {
		Method string
		Params json.RawMessage
	}
	Text   string
	Failed bool
	Code   int // of a JSON-RPC error
	Notes  []string
}

// sent sends a call, or sends it again with answers.
func sent(t *testing.T, c *replaytest.ElicitClient, name, args, state string, answers map[string]string) modernAnswer {
	t.Helper()
	more := ""
	if state != "" {
		all := map[string]json.RawMessage{}
		for id, a := range answers {
			all[id] = json.RawMessage(a)
		}
		b, err := json.Marshal(all)
		must(t, err)
		more = fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, b, state)
	}
	next := c.Request(c.Line(name, args, more))
	var out modernAnswer
	for {
		msg := next()
		var m struct {
			Method string
			Params struct{ ProgressToken json.RawMessage }
			Result struct {
				ResultType, RequestState string
				InputRequests            map[string]struct {
					Method string
					Params json.RawMessage
				}
				IsError bool
				Content []struct{ Text string }
			}
			Error *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(msg, &m); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		if m.Method != "" {
			out.Notes = append(out.Notes, string(m.Params.ProgressToken))
			continue
		}
		out.State, out.Asked, out.Failed = m.Result.RequestState, m.Result.InputRequests, m.Result.IsError
		for _, part := range m.Result.Content {
			out.Text += part.Text
		}
		if m.Error != nil {
			out.Code, out.Text = m.Error.Code, m.Error.Message
		}
		return out
	}
}

// answered makes a call and answers what is asked until it ends.
func answered(t *testing.T, c *replaytest.ElicitClient, name, args string, say func(method string, params json.RawMessage) string) (text string, rounds [][]string) {
	t.Helper()
	a := sent(t, c, name, args, "", nil)
	for a.State != "" {
		answers := map[string]string{}
		var methods []string
		for id, q := range a.Asked {
			answers[id] = say(q.Method, q.Params)
			methods = append(methods, q.Method)
		}
		slices.Sort(methods)
		rounds = append(rounds, methods)
		a = sent(t, c, name, args, a.State, answers)
	}
	return a.Text, rounds
}

// A sampledTurn is what a client's model is asked.
type sampledTurn struct {
	Messages []struct {
		Role    string
		Content []map[string]any
	}
	Tools []struct{ Name string }
}

func (s sampledTurn) last() map[string]any { return s.Messages[len(s.Messages)-1].Content[0] }

const lends = `{"sampling":{"tools":{}}}`

// saysText and saysCall are answers of a client's model.
func saysText(text string) string {
	return fmt.Sprintf(`{"role":"assistant","model":"m","stopReason":"endTurn","content":{"type":"text","text":%q}}`, text)
}

func saysCall(id, name, input string) string {
	return fmt.Sprintf(`{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, id, name, input)
}

// eachModern runs a test for a modern client on a pipe and over HTTP, whose sub-agents are executed by its own model.
func eachModern(t *testing.T, caps string, m *scripted, settings map[string]string, test func(t *testing.T, c *replaytest.ElicitClient, work string)) {
	t.Helper()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		o := setup{silent: true, settings: settings}
		if m != nil {
			o.model = m.fresh()
		}
		f := start(t, o)
		test(t, replaytest.OnPipe(t, f.Wire, true, caps), f.work)
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		o := siteSetup{settings: settings, principals: []string{"ann"}}
		if m != nil {
			o.model = m.fresh()
		}
		x := serveHTTP(t, o)
		test(t, onHTTP(t, x, "ann", true, caps), filepath.Join(x.data, "workspaces", "ann"))
	})
}

// fresh is a model with the same script.
func (m *scripted) fresh() *scripted { return &scripted{script: m.script} }

// The model of a modern client executes a sub-agent: each turn is a question of the call, which the client sends again
// with the answer.
func TestModernSamples(t *testing.T) {
	t.Parallel()
	eachModern(t, lends, nil, map[string]string{"agent.sampling": "true"}, func(t *testing.T, c *replaytest.ElicitClient, work string) {
		must(t, os.MkdirAll(work, 0o700))
		replaytest.WriteFile(t, filepath.Join(work, "a.txt"), []byte("two\n"))
		turns := 0
		text, rounds := answered(t, c, "agent", `{"prompt":"where is two?","subagent_type":"explore"}`, func(method string, params json.RawMessage) string {
			var turn sampledTurn
			must(t, json.Unmarshal(params, &turn))
			if turns++; turns == 1 {
				if method != "sampling/createMessage" || turn.last()["text"] != "where is two?" || len(turn.Tools) == 0 {
					t.Errorf("%s %s", method, params)
				}
				return saysCall("u1", "read_file", `{"file_path":"a.txt"}`)
			}
			if last := turn.last(); last["type"] != "tool_result" || !strings.Contains(fmt.Sprint(last["content"]), "1\ttwo") {
				t.Errorf("the model is told %v", last)
			}
			return saysText("It is in a.txt.")
		})
		if !strings.HasPrefix(text, "It is in a.txt.\n[agent ") || len(rounds) != 2 {
			t.Errorf("%v %s", rounds, text)
		}
	})
}

// Each of the sub-agents that work side by side is asked once, and gets its own answer. That a round has the questions
// of all is shown in server/waiting, where no machine is slow.
func TestModernSamplesSideBySide(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, settings: map[string]string{"agent.sampling": "true"}})
	c := replaytest.OnPipe(t, f.Wire, true, lends)
	text, rounds := answered(t, c, "agent", `{"tasks":[{"prompt":"A"},{"prompt":"B"},{"prompt":"C"}]}`, func(_ string, params json.RawMessage) string {
		var turn sampledTurn
		must(t, json.Unmarshal(params, &turn))
		return saysText(fmt.Sprint("did ", turn.last()["text"]))
	})
	for _, want := range []string{"Part 1 of 3", "did A\n", "did B\n", "did C\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	asked := 0
	for _, r := range rounds {
		asked += len(r)
	}
	if asked != 3 {
		t.Errorf("%d questions: %v", asked, rounds)
	}
}

// A client answers only so often within one call. The model is told before its last turn, and send_message goes on.
func TestModernRoundsEnd(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, settings: map[string]string{"agent.sampling": "true"}})
	c := replaytest.OnPipe(t, f.Wire, true, lends)
	turns, warned := 0, false
	say := func(_ string, params json.RawMessage) string {
		turns++
		warned = warned || strings.Contains(string(params), "This is your last turn")
		return saysCall(fmt.Sprint("u", turns), "list_files", `{"pattern":"*"}`)
	}
	text, rounds := answered(t, c, "agent", `{"prompt":"go on for ever"}`, say)
	if len(rounds) != 9 || !warned || !strings.HasPrefix(text, "AGENT_STOPPED: it used all of its 9 turns (as often as this client answers within one call; send_message lets it go on). Its last text:") && !strings.HasPrefix(text, "AGENT_STOPPED: it used all of its 9 turns (as often as this client answers within one call; send_message lets it go on).\n") {
		t.Fatalf("%d rounds, warned %v: %s", len(rounds), warned, text)
	}
	id := text[strings.Index(text, "agent_"):]
	id = id[:strings.IndexByte(id, ' ')]
	text, rounds = answered(t, c, "send_message", fmt.Sprintf(`{"to":%q,"message":"end now"}`, id), func(_ string, params json.RawMessage) string {
		if !strings.Contains(string(params), "end now") || !strings.Contains(string(params), "go on for ever") {
			t.Errorf("the model is told %s", params)
		}
		return saysText("ended")
	})
	if len(rounds) != 1 || !strings.HasPrefix(text, "ended\n[agent ") {
		t.Errorf("%v %s", rounds, text)
	}
}

// A question of a sub-agent reaches the person in front of a modern client.
func TestModernSubAgentAsks(t *testing.T) {
	t.Parallel()
	m := &scripted{script: map[string][]scriptTurn{"ASK": {{calls: []string{`write_file {"file_path":"one.txt","content":"x"}`}}, {text: "done"}}}}
	eachModern(t, replaytest.Declared, m, map[string]string{"permissions.ask_fallback": "deny", "permissions.mode": "default"}, func(t *testing.T, c *replaytest.ElicitClient, work string) {
		made := func() bool {
			_, err := os.Stat(filepath.Join(work, "one.txt"))
			return err == nil
		}
		text, rounds := answered(t, c, "agent", `{"prompt":"ASK"}`, func(method string, params json.RawMessage) string {
			if method != "elicitation/create" || !strings.Contains(string(params), "one.txt") || made() {
				t.Errorf("%s %s, made %v", method, params, made())
			}
			return replaytest.SayOnce
		})
		if !strings.HasPrefix(text, "done\n[agent ") || len(rounds) != 1 || !made() {
			t.Errorf("%v, made %v: %s", rounds, made(), text)
		}
	})
}

// The model of a modern client answers a prompt about a page.
func TestModernPagePrompt(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, settings: aPage(t, map[string]string{"web.prompt_sampling": "true"})})
	c := replaytest.OnPipe(t, f.Wire, true, sampling)
	text, rounds := answered(t, c, "web_fetch", pageCall, func(method string, params json.RawMessage) string {
		if method != "sampling/createMessage" || !strings.Contains(string(params), "Question: which port?") {
			t.Errorf("%s %s", method, params)
		}
		return saysText("It is 8443.")
	})
	if len(rounds) != 1 || !strings.HasPrefix(text, pageHead+"Answer of your client's model") || !strings.Contains(text, "It is 8443.") {
		t.Errorf("%v %s", rounds, text)
	}
}

// A requestState is good for its call, once: not for another principal, session, tool or input, and not when nothing
// waits any more. The call that it was made for is not harmed by who tries.
func TestModernStates(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{settings: map[string]string{"agent.sampling": "true"}, principals: []string{"ann", "bob"}})
	ann, bob := onHTTP(t, x, "ann", true, lends), onHTTP(t, x, "bob", true, lends)
	h := x.client("ann")
	h.URL += "/s/another-session"
	other := replaytest.OverHTTP(t, h, true, lends)
	const args = `{"prompt":"x","description":"y"}`
	a := sent(t, ann, "agent", args, "", nil)
	if a.State == "" || len(a.Asked) != 1 {
		t.Fatalf("%+v", a)
	}
	answers := map[string]string{}
	for id := range a.Asked {
		answers[id] = saysText("mine")
	}
	over := func(what string, got modernAnswer) {
		t.Helper()
		if !got.Failed || !strings.HasPrefix(got.Text, "CANCELLED: This call is over") || got.State != "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	over("another principal", sent(t, bob, "agent", args, a.State, answers))
	over("another session", sent(t, other, "agent", args, a.State, answers))
	over("another tool", sent(t, ann, "send_message", args, a.State, answers))
	over("another input", sent(t, ann, "agent", `{"prompt":"x","description":"z"}`, a.State, answers))
	over("another state", sent(t, ann, "agent", args, a.State+"x", answers))
	over("an empty state", sent(t, ann, "agent", args, "w1.", answers))
	// The same input in another spelling is the same.
	if got := sent(t, ann, "agent", `{"description": "y", "prompt":"x"}`, a.State, answers); !strings.HasPrefix(got.Text, "mine\n[agent ") {
		t.Errorf("%+v", got)
	}
	over("a second time", sent(t, ann, "agent", args, a.State, answers))
}

// An answer that is missing, null or unreadable is none: the sub-agent ends and says so.
func TestModernAnswersMissing(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, settings: map[string]string{"agent.sampling": "true"}})
	c := replaytest.OnPipe(t, f.Wire, true, lends)
	for what, want := range map[string]string{
		`null`: "AGENT_FAILED: the client did not let its model answer", ``: "AGENT_FAILED: the client did not let its model answer",
		`7`: "AGENT_FAILED: the client's answer cannot be read", `{"content":"x"}`: "AGENT_FAILED: the client's answer cannot be read",
	} {
		a := sent(t, c, "agent", `{"prompt":"x"}`, "", nil)
		answers := map[string]string{}
		for id := range a.Asked {
			if what != "" {
				answers[id] = what
			}
		}
		if got := sent(t, c, "agent", `{"prompt":"x"}`, a.State, answers); !strings.HasPrefix(got.Text, want) || !got.Failed {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// Progress of a call goes to the request that waits now, under its own token, and to none between two.
func TestModernProgress(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, settings: map[string]string{"agent.sampling": "true"}})
	c := replaytest.OnPipe(t, f.Wire, true, lends)
	a := sent(t, withToken(c, "first"), "agent", `{"prompt":"x"}`, "", nil)
	told := 0
	for n := range 3 {
		answers := map[string]string{}
		for id := range a.Asked {
			answers[id] = saysCall(fmt.Sprint("u", n), "list_files", `{"pattern":"*"}`)
			if n == 2 {
				answers[id] = saysText("done")
			}
		}
		token := fmt.Sprint("token", n)
		a = sent(t, withToken(c, token), "agent", `{"prompt":"x"}`, a.State, answers)
		told += len(a.Notes)
		for _, note := range a.Notes {
			if note != `"`+token+`"` {
				t.Errorf("request %d is told of progress of %s", n, note)
			}
		}
	}
	if !strings.HasPrefix(a.Text, "done\n[agent ") || told == 0 {
		t.Errorf("told %d times: %+v", told, a)
	}
}

// withToken is the client for one request with a progress token.
func withToken(c *replaytest.ElicitClient, token string) *replaytest.ElicitClient {
	return &replaytest.ElicitClient{T: c.T, Modern: true, Caps: c.Caps + `,"progressToken":"` + token + `"`, Request: c.Request}
}

// The end of the server ends what waits for a client.
func TestModernEnds(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, settings: map[string]string{"agent.sampling": "true"}})
	c := replaytest.OnPipe(t, f.Wire, true, lends)
	if a := sent(t, c, "agent", `{"prompt":"x"}`, "", nil); a.State == "" {
		t.Fatalf("%+v", a)
	}
	must(t, f.server.Close())
	if jobs := f.server.sessions.Jobs(); len(jobs) > 0 {
		t.Errorf("jobs: %v", jobs)
	}
}

package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestChoicesAfterQuestions: a call that asked a person took the directory to which the session had moved for that in
// which it began: `default` answered that nothing had changed, and what moved back while a legacy client's person thought
// did not count.
func TestChoicesAfterQuestions(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, map[string]string{"permissions.ask": "session_config,write_file"}, func(t *testing.T, p *planner) {
		must(t, os.Mkdir(filepath.Join(p.work, "sub"), 0o700))
		move := func(to, want string) {
			t.Helper()
			a := p.Call("session_config", fmt.Sprintf(`{"key":"cwd","value":%q}`, to), replaytest.Always(accepts(`{"decision":"allow once"}`)))
			if a.Failed || a.Asked != 1 || !strings.HasPrefix(a.Text, "cwd = "+want+" (") {
				t.Errorf("to %s: %+v", to, a)
			}
		}
		move("sub", p.work+"/sub")
		move("default", p.work)
		move("sub", p.work+"/sub")
		a := p.Call("write_file", `{"file_path":"a.txt","content":"x\n"}`, func(string) string {
			p.allowed("run_shell", `{"command":"cd .."}`)
			return accepts(`{"decision":"allow once"}`)
		})
		if a.Failed || a.Asked != 2 || !strings.HasPrefix(a.Text, "Created a.txt (") { // the file that the person was shown is another
			t.Errorf("a write after a move: %+v", a)
		}
	})
}

// twoQuestions has a choice and a list of choices.
const twoQuestions = `{"questions":[{"question":"Which store?","header":"Store","options":[{"label":"a","description":"fast"},{"label":"b"}]},` +
	`{"question":"Which parts?","header":"Parts","multiSelect":true,"options":[{"label":"c"},{"label":"d"}]}]}`

const (
	askedWords   = "ask_user_question: 2 questions\nStore: Which store?\n- a: fast\n- b\n\nParts: Which parts?\n- c\n- d"
	undecided    = "No answer. Decide yourself and state the assumption."
	unanswered   = "No person answered. Decide yourself and state the assumption."
	otherOfStore = `"q1_other":{"type":"string","title":"Store: own answer","description":"Added to the choice. Not for secrets.","maxLength":1000}`
	otherOfParts = `"q2_other":{"type":"string","title":"Parts: own answer","description":"Added to the choice. Not for secrets.","maxLength":1000}`
	namedForm    = `{"type":"object","properties":{` +
		`"q1":{"type":"string","title":"Store","description":"Which store?","oneOf":[{"const":"a","title":"a: fast"},{"const":"b","title":"b"}]},` + otherOfStore + `,` +
		`"q2":{"type":"array","title":"Parts","description":"Which parts?","items":{"anyOf":[{"const":"c","title":"c"},{"const":"d","title":"d"}]}},` + otherOfParts + `}}`
	flaggedForm = `{"type":"object","properties":{` +
		`"q1":{"type":"string","title":"Store","description":"Which store?","enum":["a","b"],"enumNames":["a: fast","b"]},` + otherOfStore + `,` +
		`"q2_1":{"type":"boolean","title":"Parts: c","description":"Which parts?"},"q2_2":{"type":"boolean","title":"Parts: d"},` + otherOfParts + `}}`
)

func accepts(content string) string { return `{"action":"accept","content":` + content + `}` }

// question asks and checks what was asked, and that nothing failed.
func (p *planner) question(answer string) string {
	p.T.Helper()
	a := p.Call("ask_user_question", twoQuestions, func(q string) string {
		if q != askedWords {
			p.T.Errorf("the question is %q", q)
		}
		if form := p.Form(); form != namedForm {
			p.T.Errorf("the form is %s", form)
		}
		return answer
	})
	if a.Failed || a.Asked != 1 {
		p.T.Errorf("%s: %+v", answer, a)
	}
	return a.Text
}

// TestQuestions: what a person answers is what the model reads, in and out of plan mode, and anything that does not fit
// the form is no answer.
func TestQuestions(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		for i, tt := range []struct{ say, want string }{
			{accepts(`{"q1":"a","q2":["c","d"]}`), "Store: a\nParts: c, d"},
			{accepts(`{"q1":"b","q1_other":"","q2":[]}`), "Store: b\nParts: (none of them)"},
			{accepts(`{"q1":"a","q1_other":"neither, c\u001b[31m","q2":["d"],"q2_other":"d first,\nthen c"}`), "Store: a; they add: neither, c\nParts: d\nd first,\nthen c"},
			{accepts(`{"q1_other":"c","more":[1]}`), "Store: c\nParts: (no answer)\n[1 question has no answer; decide yourself and state the assumption]"},
			{accepts(`{"q1":"","q2":["c"]}`), "Store: (no answer)\nParts: c\n[1 question has no answer; decide yourself and state the assumption]"},
			{accepts(`{}`), undecided},
			{`{"action":"accept"}`, undecided},
			{accepts(`{"q1":"a: fast","q2":["c"]}`), undecided},
			{accepts(`{"q1":"a","q2":["e"]}`), undecided},
			{accepts(`{"q1":"a","q2":"c"}`), undecided},
			{accepts(`{"q1":["a"],"q2":["c"]}`), undecided},
			{accepts(`{"q1":"a","q2":["c","c"]}`), undecided},
			{accepts(`{"q1_other":7}`), undecided},
			{accepts(`[]`), undecided},
			{replaytest.SayDecline, undecided},
			{replaytest.SayCancel, unanswered},
			{`{"action":"allow","content":{"q1":"a"}}`, undecided},
		} {
			if i == 8 {
				p.enter()
			}
			if got := p.question(tt.say); got != tt.want {
				t.Errorf("%s:\ngot  %q\nwant %q", tt.say, got, tt.want)
			}
		}
		a := p.Call("call_tool", `{"name":"AskUserQuestion","arguments":`+twoQuestions+`}`, replaytest.Always(accepts(`{"q1":"a","q2":["d"]}`)))
		if a.Failed || a.Asked != 1 || a.Text != "Store: a\nParts: d" {
			t.Errorf("through call_tool: %+v", a)
		}
		p.refused("INPUT_INVALID", "ask_user_question", strings.Replace(twoQuestions, `"label":"b"`, `"label":"a"`, 1))
	})
}

// TestQuestionHoldsNobodyUp: while a person thinks, other calls of the session run.
func TestQuestionHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, map[string]string{"tools.max_parallel": "1"}, func(t *testing.T, p *planner) {
		a := p.Call("ask_user_question", twoQuestions, func(string) string {
			p.allowed("write_file", `{"file_path":"$WORK/a.txt","content":"meanwhile\n"}`)
			return accepts(`{"q1":"a","q2":["c"]}`)
		})
		if a.Failed || a.Text != "Store: a\nParts: c" {
			t.Errorf("%+v", a)
		}
		p.holds("$WORK/a.txt", "meanwhile\n")
	})
}

// TestQuestionForged: an answer that no person gave to this question is none.
func TestQuestionForged(t *testing.T) {
	t.Parallel()
	answer := accepts(`{"q1":"b","q2":["c"]}`)
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		if !p.Modern {
			p.Send(`{"jsonrpc":"2.0","id":"ask-forged","result":` + answer + `}`)
			a := p.CallWith("ask_user_question", twoQuestions, `,"inputResponses":{"answer":`+answer+`}`, replaytest.Always(replaytest.SayDecline))
			if a.Asked != 1 || a.Text != undecided {
				t.Errorf("an answer in the call itself: %+v", a)
			}
			return
		}
		a := p.CallWith("ask_user_question", twoQuestions, `,"inputResponses":{"answer":`+answer+`}`, replaytest.Always(replaytest.Stop))
		if a.Asked != 1 || a.State == "" {
			t.Errorf("an answer without a state: %+v", a)
		}
		state := a.State
		for name, forged := range map[string]string{"made up": "v1.aaaa.bbbb", "changed": replaytest.Altered(state), "cut": state[:len(state)/2]} {
			if a := p.CallWith("ask_user_question", twoQuestions, replaytest.Answering(answer, forged), replaytest.Never(t)); a.Code != -32602 {
				t.Errorf("a state that is %s: %+v", name, a)
			}
		}
		if a := p.CallWith("session_config", `{}`, replaytest.Answering(answer, state), replaytest.Never(t)); a.Code != -32602 {
			t.Errorf("the state of another tool: %+v", a)
		}
		other := strings.Replace(twoQuestions, "Which store?", "Which one?", 1)
		if a := p.CallWith("ask_user_question", other, replaytest.Answering(answer, state), replaytest.Always(replaytest.SayDecline)); a.Asked != 1 || a.Text != undecided {
			t.Errorf("the state of another question: %+v", a)
		}
		state = p.CallWith("ask_user_question", twoQuestions, "", replaytest.Always(replaytest.Stop)).State
		if a := p.CallWith("ask_user_question", twoQuestions, replaytest.Answering(answer, state), replaytest.Never(t)); a.Text != "Store: b\nParts: c" {
			t.Errorf("the state of this question: %+v", a)
		}
		if a := p.CallWith("ask_user_question", twoQuestions, replaytest.Answering(answer, state), replaytest.Always(replaytest.SayDecline)); a.Asked != 1 || a.Text != undecided {
			t.Errorf("a state that was used: %+v", a)
		}
	})
}

// TestQuestionExpired: an answer that comes too late does not count, and the model goes on.
func TestQuestionExpired(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, map[string]string{"permissions.ask_timeout_ms": "1000"}, func(t *testing.T, p *planner) {
		a := p.Call("ask_user_question", twoQuestions, replaytest.Always(replaytest.Stop)) // to a legacy client the server answers by itself
		if p.Modern {
			p.allowed("run_readonly", `{"command":"sleep 1.2"}`) // the program's own clock goes on
			a = p.CallWith("ask_user_question", twoQuestions, replaytest.Answering(accepts(`{"q1":"a"}`), a.State), replaytest.Always(replaytest.SayCancel))
		}
		if a.Failed || a.Asked == 0 || a.Asked > 1 && !p.Modern || a.Text != undecided && a.Text != unanswered { // more than once where this answer is late, too
			t.Errorf("%+v", a)
		}
	})
}

// TestQuestionUndeclared: the server asks no question of a client that cannot show one.
func TestQuestionUndeclared(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Undeclared, nil, func(t *testing.T, p *planner) {
		a := p.do("ask_user_question", twoQuestions)
		if !a.Failed || p.Modern != (a.Code == -32021) || !p.Modern && !strings.HasPrefix(a.Text, "TOOL_DISABLED: ask_user_question is not available: ") {
			t.Errorf("%+v", a)
		}
		if p.Modern && !strings.Contains(a.Raw, `"data":{"requiredCapabilities":{"elicitation":{}}}`) {
			t.Errorf("the error is %s", a.Raw)
		}
		p.refused("TOOL_DISABLED", "call_tool", `{"name":"ask_user_question","arguments":`+twoQuestions+`}`)
		p.AsksNobody()
	})
}

// TestQuestionOfOldRevision: clients of revisions without lists of choices get a flag for each choice.
func TestQuestionOfOldRevision(t *testing.T) {
	t.Parallel()
	for _, open := range []func(*testing.T, *replaytest.ElicitClient, map[string]string) *planner{planOnPipe, planOnHTTP} {
		c := open(t, &replaytest.ElicitClient{T: t, Caps: replaytest.Declared, Speaks: "2025-06-18"}, nil)
		for say, want := range map[string]string{
			`{"q1":"b","q2_1":true,"q2_2":true}`:          "Store: b\nParts: c, d",
			`{"q1":"b","q2_1":false,"q2_2":true}`:         "Store: b\nParts: d",
			`{"q1":"b","q2_1":false}`:                     "Store: b\nParts: (none of them)",
			`{"q1":"b","q2_1":true,"q2_other":"only c"}`:  "Store: b\nParts: c; they add: only c",
			`{"q1":"b","q2_1":"true"}`:                    undecided,
			`{"q1":"b","q2":["c"]}`:                       "Store: b\nParts: (no answer)\n[1 question has no answer; decide yourself and state the assumption]",
			`{"q1":"a","q2_1":true,"q2_2":true,"q2_3":1}`: "Store: a\nParts: c, d",
		} {
			a := c.Call("ask_user_question", twoQuestions, replaytest.Always(accepts(say)))
			if a.Failed || a.Asked != 1 || a.Text != want {
				t.Errorf("%s %s: %+v, want %q", c.Name, say, a, want)
			}
		}
		if form := c.Form(); form != flaggedForm {
			t.Errorf("%s: the form is %s", c.Name, form)
		}
	}
}

// TestQuestionsThatAreLong: the longest questions that are allowed reach a person whole but for descriptions.
func TestQuestionsThatAreLong(t *testing.T) {
	t.Parallel()
	var items []string
	for range 4 {
		var options []string
		for j := range 4 {
			options = append(options, fmt.Sprintf(`{"label":"%d%s","description":"%s"}`, j, strings.Repeat("é", 59), strings.Repeat("d", 300)))
		}
		items = append(items, fmt.Sprintf(`{"question":"%s?","header":"twelve chars","multiSelect":true,"options":[%s]}`, strings.Repeat("é", 499), strings.Join(options, ",")))
	}
	input := `{"questions":[` + strings.Join(items, ",") + `]}`
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		a := p.Call("ask_user_question", input, func(q string) string {
			if n := len([]rune(q)); n > 4_000 || strings.Count(q, strings.Repeat("é", 499)+"?") != 4 || strings.Contains(q, "truncated") {
				t.Errorf("%d characters: %s", n, q)
			}
			return accepts(fmt.Sprintf(`{"q1":["0%[1]s","3%[1]s"],"q2":[],"q3_other":"x"}`, strings.Repeat("é", 59)))
		})
		if want := fmt.Sprintf("twelve chars: 0%[1]s, 3%[1]s\ntwelve chars: (none of them)\n", strings.Repeat("é", 59)); a.Failed || !strings.HasPrefix(a.Text, want) {
			t.Errorf("%+v", a)
		}
	})
}

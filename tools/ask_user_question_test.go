package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/tools/tool"
)

const (
	askOne  = `{"questions":[{"question":"Which store?","header":"Store","options":[{"label":"a","description":"fast"},{"label":"b"}]}]}`
	askFour = `{"questions":[{"question":"Which store?","header":"Store","options":[{"label":"a","description":"fast"},{"label":"b"}]},` +
		`{"question":"Which parts?","header":"Parts","multiSelect":true,"options":[{"label":"c"},{"label":"d"}]},` +
		`{"question":"When?","header":"Time","options":[{"label":"e"},{"label":"f"}]},` +
		`{"question":"What else?","header":"Rest","multiSelect":true,"options":[{"label":"g"},{"label":"h"}]}]}`
)

// TestAskUserQuestionLimits: questions that a person could not read, or whose options look alike, are refused before
// the person is asked.
func TestAskUserQuestionLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	option := func(label, more string) string { return fmt.Sprintf(`{"label":%q%s}`, label, more) }
	question := func(text, header string, options ...string) string {
		return fmt.Sprintf(`{"questions":[{"question":%q,"header":%q,"options":[%s]}]}`, text, header, strings.Join(options, ","))
	}
	a, b, long := option("a", ""), option("b", ""), func(n int) string { return strings.Repeat("é", n) }
	for _, tt := range []struct{ input, wrong string }{
		{question(long(500), long(12), option(long(60), `,"description":"`+long(300)+`"`), b), ""},
		{question("q", "h", option("a", `,"preview":"x"`), b), ""},
		{`{"questions":[{"question":"q","header":"h","options":[` + a + `,` + b + `],"preview":"x"}]}`, ""},
		{question("q", "h", a, b, option("c", ""), option("d", "")), ""},
		{question(long(501), "h", a, b), `"questions[0].question" must have at most 500 characters, not 501`},
		{question("q", long(13), a, b), `"questions[0].header" must have at most 12 characters, not 13`},
		{question("q", "h", option(long(61), ""), b), `"questions[0].options[0].label" must have at most 60 characters, not 61`},
		{question("q", "h", a, option("b", `,"description":"`+long(301)+`"`)), `"questions[0].options[1].description" must have at most 300 characters, not 301`},
		{question("q", "h", a), `"questions[0].options" must have at least 2 items, not 1`},
		{question("q", "h", a, b, a, b, a), `"questions[0].options" must have at most 4 items, not 5`},
		{`{"questions":[]}`, `"questions" must have at least 1 items, not 0`},
		{`{}`, `"questions" is required`},
		{question(" \n", "h", a, b), `"questions[0]" needs a question and a header that are not blank`},
		{question("q", "\t", a, b), `"questions[0]" needs a question and a header that are not blank`},
		{question("q", "h", a, b, a), `"questions[0].options[2].label" must not be blank or the same as another label: "a"`},
		{question("q", "h", option("a  b", ""), option("a\nb", "")), `"questions[0].options[1].label" must not be blank or the same as another label: "a b"`},
		{question("q", "h", option(" ", ""), b), `"questions[0].options[0].label" must not be blank or the same as another label: ""`},
		{question("q", "h", option("a", `,"value":1`), b), `unknown parameter "questions[0].options[0].value"`},
	} {
		_, err := askUserQuestion.Bind(r.State, json.RawMessage(tt.input))
		if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.HasSuffix(err.Error(), "- "+tt.wrong)) {
			t.Errorf("%.200s:\ngot  %v\nwant %s", tt.input, err, tt.wrong)
		}
	}
}

// ask binds an input and returns the question that a person is asked.
func ask(t *testing.T, r *rig, input string) (tool.Call, *tool.Question) {
	t.Helper()
	call, err := askUserQuestion.Bind(r.State, json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	q, err := call.Question(t.Context(), r.State)
	if err != nil || q == nil {
		t.Fatalf("the question is %v, %v", q, err)
	}
	return call, q
}

// TestAskUserQuestionForm: the message has everything, and each question a choice and a text.
func TestAskUserQuestionForm(t *testing.T) {
	t.Parallel()
	_, q := ask(t, newRig(t), `{"questions":[{"question":"Which\nstore?","header":"The  store","options":[{"label":"a\u202e","description":"fast\nand small","preview":"never shown"},{"label":"b"}]},`+
		`{"question":"Which parts?","header":"Parts","multiSelect":true,"preview":"never shown","options":[{"label":"c"},{"label":"d","description":"`+strings.Repeat("x", 300)+`"}]}]}`)
	want := "The store: Which\nstore?\n- a\\u202e: fast and small\n- b\n\nParts: Which parts?\n- c\n- d: " + strings.Repeat("x", 300)
	if q.Title != "ask_user_question: 2 questions" || q.Text != want {
		t.Errorf("asked is %q\n%s", q.Title, q.Text)
	}
	if len(q.Fields) != 4 {
		t.Fatalf("%d fields", len(q.Fields))
	}
	for i, want := range []string{
		`{Name:q1 Label:The store About:Which
store? Choices:[a\u202e b] Titles:[a\u202e: fast and small b] Many:false Optional:true}`,
		`{Name:q1_other Label:The store: own answer About:Added to the choice. Not for secrets. Choices:[] Titles:[] Many:false Optional:false}`,
		`{Name:q2 Label:Parts About:Which parts? Choices:[c d] Titles:[c d: ` + strings.Repeat("x", 117) + `…] Many:true Optional:true}`,
		`{Name:q2_other Label:Parts: own answer About:Added to the choice. Not for secrets. Choices:[] Titles:[] Many:false Optional:false}`,
	} {
		if got := fmt.Sprintf("%+v", q.Fields[i]); got != want {
			t.Errorf("field %d:\ngot  %s\nwant %s", i, got, want)
		}
	}
}

// TestAskUserQuestionFits: whatever is asked fits into a message; descriptions are cut evenly, and nothing else is cut.
func TestAskUserQuestionFits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, meaning := range []int{300, 120, 30, 0} {
		var items []string
		for i := range 4 {
			var options []string
			for j := range 4 {
				options = append(options, fmt.Sprintf(`{"label":"%d%s","description":"%s"}`, j, strings.Repeat("l", 59), strings.Repeat("d", meaning)))
			}
			items = append(items, fmt.Sprintf(`{"question":"%s","header":"%dheaderheade","options":[%s]}`, strings.Repeat("q", 500), i, strings.Join(options, ",")))
		}
		_, q := ask(t, r, `{"questions":[`+strings.Join(items, ",")+`]}`)
		n := utf8.RuneCountInString(q.Title + q.Text)
		if n > 3_998 { // a blank line parts the two
			t.Errorf("descriptions of %d: %d characters", meaning, n)
		}
		if strings.Count(q.Text, strings.Repeat("q", 500)) != 4 || strings.Count(q.Text, strings.Repeat("l", 59)) != 16 {
			t.Errorf("descriptions of %d: a question or a label is cut", meaning)
		}
		var lengths []int
		for line := range strings.SplitSeq(q.Text, "\n") {
			if _, d, ok := strings.Cut(line, ": d"); ok {
				lengths = append(lengths, utf8.RuneCountInString(d))
			}
		}
		if slices.Sort(lengths); meaning > 0 && (len(lengths) != 16 || lengths[0] != lengths[15]) {
			t.Errorf("descriptions of %d are cut to %v", meaning, lengths)
		}
	}
}

// TestAskUserQuestionInvisible: of questions full of invisible characters, which are shown as escapes, a person saw the
// first and the last, and chose for the others without having seen them.
func TestAskUserQuestionInvisible(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hidden := func(n int) string {
		item := fmt.Sprintf(`{"question":"q%s","header":"h","options":[{"label":"a"},{"label":"b"}]}`, strings.Repeat("\u200b", n))
		return `{"questions":[` + strings.Join([]string{item, item, item, item}, ",") + `]}`
	}
	_, q := ask(t, r, hidden(150))
	if n := utf8.RuneCountInString(q.Title + q.Text); n > 3_998 || strings.Count(q.Text, strings.Repeat(`\u200b`, 150)) != 4 {
		t.Errorf("%d characters: %s", n, q.Text)
	}
	_, err := askUserQuestion.Bind(r.State, json.RawMessage(hidden(499)))
	if want := `- "questions" must fit in 3,950 characters with invisible ones made visible, not 12030`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// TestAskUserQuestionAnswer: each answer is a line; what a person wrote is added to what was chosen.
func TestAskUserQuestionAnswer(t *testing.T) {
	t.Parallel()
	const none = "No answer. Decide yourself and state the assumption."
	r := newRig(t)
	type values = map[string][]string
	for _, tt := range []struct {
		input  string
		answer tool.Answer
		want   string
	}{
		{askOne, tool.Answer{}, none},
		{askOne, tool.Answer{Outcome: tool.Declined}, none},
		{askOne, tool.Answer{Outcome: tool.Cancelled, Silent: true}, "No person answered. Decide yourself and state the assumption."},
		{askOne, tool.Answer{Outcome: tool.Declined, Values: values{"q1": {"a"}}}, none},
		{askOne, tool.Answer{Outcome: tool.Accepted}, none},
		{askOne, tool.Answer{Outcome: tool.Accepted, Values: values{"q1_other": {" \n "}}}, none},
		{askOne, tool.Answer{Outcome: tool.Accepted, Values: values{"q1": {"a"}}}, "Store: a"},
		{askOne, tool.Answer{Outcome: tool.Accepted, Values: values{"q1": {"a"}, "q1_other": {""}}}, "Store: a"},
		{askOne, tool.Answer{Outcome: tool.Accepted, Values: values{"q1": {"a"}, "q1_other": {"none of them: c"}}}, "Store: a; they add: none of them: c"},
		{askOne, tool.Answer{Outcome: tool.Accepted, Values: values{"q1_other": {"\n  first\nsecond\n"}}}, "Store:\n  first\nsecond"},
		{askFour, tool.Answer{Outcome: tool.Accepted, Values: values{"q1": {"b"}, "q2": {"c", "d"}, "q3_other": {"soon"}, "q4": {}}}, "Store: b\nParts: c, d\nTime: soon\nRest: (none of them)"},
		{askFour, tool.Answer{Outcome: tool.Accepted, Values: values{"q2": {"d"}}},
			"Store: (no answer)\nParts: d\nTime: (no answer)\nRest: (no answer)\n[3 questions have no answer; decide yourself and state the assumption]"},
	} {
		call, _ := ask(t, r, tt.input)
		env := r.Env(call)
		env.Answer = tt.answer
		res, err := call.Run(t.Context(), env)
		if err != nil || res.Text != tt.want || res.Failed != "" {
			t.Errorf("%+v:\ngot  %q, %v\nwant %q", tt.answer, res.Text, err, tt.want)
		}
	}
}

// TestAskUserQuestionAvailable: a client that cannot ask is told why.
func TestAskUserQuestionAvailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if reason := askUserQuestion.Unavailable(r.State); !strings.HasPrefix(reason, "this client cannot ask its user. ") {
		t.Errorf("got %q", reason)
	}
	r.Client.CanAsk = true
	if reason := askUserQuestion.Unavailable(r.State); reason != "" {
		t.Errorf("got %q", reason)
	}
}

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/workspace"
)

// sampleInput has every kind of parameter that a tool may have.
type sampleInput struct {
	FilePath string          `json:"file_path" jsonschema:"The file, absolute or not"`
	Offset   int             `json:"offset,omitempty" jsonschema:"First line" rule:"min=1 default=1"`
	Limit    int64           `json:"limit,omitempty" jsonschema:"Lines" rule:"min=1 max=2000"`
	Mode     string          `json:"output_mode,omitempty" jsonschema:"What to show" rule:"enum=content|count default=count"`
	After    int             `json:"-A,omitempty" jsonschema:"Lines after" rule:"min=0 max=1000"`
	Numbers  bool            `json:"-n,omitempty" jsonschema:"Line numbers" rule:"default=true"`
	All      bool            `json:"replace_all,omitempty" jsonschema:"Every match"`
	Text     string          `json:"text,omitempty" jsonschema:"Some text, with a comma" rule:"minlen=2 maxlen=8"`
	Dir      string          `json:"path,omitempty" jsonschema:"A directory"`
	Edits    []sampleEdit    `json:"edits,omitempty" jsonschema:"Edits in order" rule:"minitems=1 maxitems=3"`
	Words    []string        `json:"words,omitempty" jsonschema:"Words" rule:"maxitems=4 maxlen=5"`
	Lines    []int           `json:"lines,omitempty" jsonschema:"Lines" rule:"min=1"`
	Args     json.RawMessage `json:"arguments,omitempty" jsonschema:"Any object"`
	Large    bool            `json:"allow_large,omitempty"`
}

type sampleEdit struct {
	FilePath string `json:"file_path,omitempty" jsonschema:"File"`
	Old      string `json:"old_string" jsonschema:"Old"`
	All      bool   `json:"replace_all,omitempty" jsonschema:"All"`
	Count    int    `json:"count,omitempty" jsonschema:"How many" rule:"min=1"`
}

func sampleDef() Def[sampleInput] {
	return Def[sampleInput]{
		Spec: Spec{
			Name: "sample_tool", Aliases: []string{"Sample"}, Title: "Sample", Description: "Does nothing.", Hint: "sample for the tests",
			Traits: Traits{Local: true},
		},
		Accept: map[string]string{"filename": "file_path", "old_path": "file_path", "context": "-A"},
		Hidden: []string{"allow_large"},
		Paths: func(in *sampleInput) []*string {
			paths := []*string{&in.FilePath, &in.Dir}
			for i := range in.Edits {
				paths = append(paths, &in.Edits[i].FilePath)
			}
			return paths
		},
		Run: func(_ context.Context, _ Env, in sampleInput) (Result, error) { return Result{Text: in.FilePath}, nil },
	}
}

// newState returns a session in an empty directory.
func newState(tb testing.TB) (*session.State, string) {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	space, err := workspace.Open([]string{dir}, workspace.Options{Home: filepath.Join(dir, "home")})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = space.Close() })
	return &session.State{Space: space}, dir
}

// refusal returns the refusal in err, which must be one.
func refusal(tb testing.TB, err error) *Refusal {
	tb.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		tb.Fatalf("got %v, want a refusal", err)
	}
	return r
}

func TestBindCanonical(t *testing.T) {
	state, dir := newState(t)
	sample := Define(sampleDef())
	const defaults = `"offset":1,"output_mode":"count","-n":true`
	for _, c := range []struct{ name, input, want string }{
		{"defaults are filled in", `{"file_path":"a"}`, `{"file_path":"$W/a","offset":1,"output_mode":"count","-n":true}`},
		{"order is that of the struct", `{"output_mode":"content","file_path":"a"}`, `{"file_path":"$W/a","offset":1,"output_mode":"content","-n":true}`},
		{"a default can be overruled by zero", `{"file_path":"a","-n":false}`, `{"file_path":"$W/a","offset":1,"output_mode":"count","-n":false}`},
		{"a zero that means absence is left out", `{"file_path":"a","replace_all":false,"-A":0,"path":""}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"blanks are no part of it", " {\t\"file_path\" :\r\n\"a\" , \"-A\" : 3 } ", `{"file_path":"$W/a","offset":1,"output_mode":"count","-A":3,"-n":true}`},
		{"accepted names", `{"filename":"a","context":2}`, `{"file_path":"$W/a","offset":1,"output_mode":"count","-A":2,"-n":true}`},
		{"accepted and real name agree", `{"filename":"a","file_path":"\u0061"}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"an accepted name without a value", `{"filename":null,"file_path":"a"}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"a real name without a value", `{"file_path":null,"filename":"a"}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"hidden parameters", `{"file_path":"a","allow_large":true}`, `{"file_path":"$W/a",` + defaults + `,"allow_large":true}`},
		{"paths are made absolute", `{"file_path":"x/../b","path":"~/d"}`, `{"file_path":"$W/b",` + defaults + `,"path":"$W/home/d"}`},
		{"an optional path without a value", `{"file_path":"a","path":"undefined"}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"an optional path that says null", `{"file_path":"a","path":"null","edits":[{"old_string":"x","file_path":"null"}]}`,
			`{"file_path":"$W/a",` + defaults + `,"edits":[{"old_string":"x"}]}`},
		{"paths in lists", `{"file_path":"a","edits":[{"file_path":"b","old_string":"x"},{"old_string":"y"}]}`,
			`{"file_path":"$W/a",` + defaults + `,"edits":[{"file_path":"$W/b","old_string":"x"},{"old_string":"y"}]}`},
		{"null is absence", `{"file_path":"a","offset":null,"edits":null,"-n":null,"limit":null}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"a number in a string", `{"file_path":"a","offset":"5","limit":"7.0"}`, `{"file_path":"$W/a","offset":5,"limit":7,"output_mode":"count","-n":true}`},
		{"a number without a fraction", `{"file_path":"a","offset":5.0,"limit":1e3}`, `{"file_path":"$W/a","offset":5,"limit":1000,"output_mode":"count","-n":true}`},
		{"the largest integer", `{"file_path":"a","offset":9223372036854775807}`, `{"file_path":"$W/a","offset":9223372036854775807,"output_mode":"count","-n":true}`},
		{"a boolean in a string", `{"file_path":"a","replace_all":"true","-n":"false"}`,
			`{"file_path":"$W/a","offset":1,"output_mode":"count","-n":false,"replace_all":true}`},
		{"a number where text is wanted", `{"file_path":42,"text":1.50}`, `{"file_path":"$W/42",` + defaults + `,"text":"1.50"}`},
		{"a boolean where text is wanted", `{"file_path":"a","text":true}`, `{"file_path":"$W/a",` + defaults + `,"text":"true"}`},
		{"an array in a string", `{"file_path":"a","edits":" [{\"old_string\":\"x\",\"count\":\"2\"}] "}`,
			`{"file_path":"$W/a",` + defaults + `,"edits":[{"old_string":"x","count":2}]}`},
		{"objects in strings in an array", `{"file_path":"a","edits":["{\"old_string\":7}"]}`,
			`{"file_path":"$W/a",` + defaults + `,"edits":[{"old_string":"7"}]}`},
		{"items are coerced, too", `{"file_path":"a","words":[1,true,"x"],"lines":["3",4.0]}`,
			`{"file_path":"$W/a",` + defaults + `,"words":["1","true","x"],"lines":[3,4]}`},
		{"an empty list is absent", `{"file_path":"a","words":[]}`, `{"file_path":"$W/a",` + defaults + `}`},
		{"an object of another tool stays", `{"file_path":"a","arguments":{ "z" : [1, 2.0],"a":null}}`,
			`{"file_path":"$W/a",` + defaults + `,"arguments":{"z":[1,2.0],"a":null}}`},
		{"an object of another tool in a string", `{"file_path":"a","arguments":"{\"a\":1}"}`, `{"file_path":"$W/a",` + defaults + `,"arguments":{"a":1}}`},
		{"text keeps its characters", `{"file_path":"a","text":"<\u00e4\u0026\\\""}`, `{"file_path":"$W/a",` + defaults + `,"text":"<ä&\\\""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := sample.Bind(state, json.RawMessage(c.input))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(string(call.Input), dir, "$W"); got != c.want {
				t.Errorf("canonical form of %s\n got %s\nwant %s", c.input, got, c.want)
			}
			again, err := sample.Bind(state, call.Input)
			if err != nil || string(again.Input) != string(call.Input) {
				t.Errorf("bound again: got %s, %v\nwant %s", again.Input, err, call.Input)
			}
		})
	}
}

func TestBindProblems(t *testing.T) {
	state, _ := newState(t)
	sample := Define(sampleDef())
	for _, c := range []struct {
		name, input string
		want        []string
	}{
		{"nothing", ``, []string{`"file_path" is required`}},
		{"null", ` null `, []string{`"file_path" is required`}},
		{"an array", `[]`, []string{`the arguments must be an object, not an array`}},
		{"a string that holds an object", `"{}"`, []string{`the arguments must be an object, not "{}"`}},
		{"a number", `5`, []string{`the arguments must be an object, not 5`}},
		{"no JSON", `{"file_path":}`, []string{`the arguments are not valid JSON`}},
		{"two values", `{} {}`, []string{`the arguments are not valid JSON`}},
		{"required and null", `{"file_path":null}`, []string{`"file_path" must be a string, not null`}},
		{"unknown and near", `{"filepath":"a"}`, []string{`"file_path" is required`, `unknown parameter "filepath" (did you mean "file_path"?)`}},
		{"unknown, other case", `{"file_path":"a","Offset":3}`, []string{`unknown parameter "Offset" (did you mean "offset"?)`}},
		{"unknown and near to an accepted name", `{"file_path":"a","contxt":1}`, []string{`unknown parameter "contxt" (did you mean "-A"?)`}},
		{"a directory where there is no command", `{"file_path":"a","workdir":"x"}`, []string{`unknown parameter "workdir"`}},
		{"unknown and far", `{"file_path":"a","zebra":1}`, []string{`unknown parameter "zebra"`}},
		{"unknown and near to a hidden one", `{"file_path":"a","allow_larg":1}`, []string{`unknown parameter "allow_larg"`}},
		{"an accepted name only counts at the root", `{"file_path":"a","edits":[{"old_string":"x","filename":"b"}]}`,
			[]string{`unknown parameter "edits[0].filename"`}},
		{"two names that differ", `{"filename":"a","file_path":"b"}`, []string{`"file_path" and "filename" are the same parameter and differ`}},
		// The scan of a message refuses such keys, but does not see into strings: the last one won, silently.
		{"a key twice in a string", `{"file_path":"a","edits":"[{\"old_string\":\"x\",\"old_string\":\"y\"}]"}`, []string{`"edits[0].old_string" is given twice`}},
		{"a key twice", `{"file_path":"a","file_path":"a"}`, []string{`"file_path" is given twice`}},
		{"two accepted names that differ", `{"filename":"a","old_path":"b"}`, []string{`"filename" and "old_path" are the same parameter and differ`}},
		{"not an integer", `{"file_path":"a","offset":"x","limit":1.5,"-A":true}`, []string{
			`"offset" must be an integer, not "x"`, `"limit" must be an integer, not 1.5`, `"-A" must be an integer, not true`}},
		{"an integer in an array", `{"file_path":"a","offset":[1]}`, []string{`"offset" must be an integer, not an array`}},
		{"an empty string is no integer", `{"file_path":"a","offset":"","limit":" 5"}`, []string{
			`"offset" must be an integer, not ""`, `"limit" must be an integer, not " 5"`}},
		{"integers too large for us", `{"file_path":"a","offset":99999999999999999999,"limit":1e300}`, []string{
			`"offset" must be an integer, not 99999999999999999999`, `"limit" must be an integer, not 1e300`}},
		{"integers that a float64 would round", `{"file_path":"a","offset":1.00000000000000000001,"limit":1e-400,"-A":"9007199254740993.5"}`, []string{
			`"offset" must be an integer, not 1.00000000000000000001`, `"limit" must be an integer, not 1e-400`,
			`"-A" must be an integer, not "9007199254740993.5"`}},
		{"not what Go takes for a number", `{"file_path":"a","offset":"+5","limit":"0x10","-A":"1_0"}`, []string{
			`"offset" must be an integer, not "+5"`, `"limit" must be an integer, not "0x10"`, `"-A" must be an integer, not "1_0"`}},
		{"limits", `{"file_path":"a","offset":0,"limit":2001,"-A":-1}`, []string{
			`"offset" must be at least 1, not 0`, `"limit" must be at most 2000, not 2001`, `"-A" must be at least 0, not -1`}},
		{"limits hold for what was coerced", `{"file_path":"a","limit":"2001"}`, []string{`"limit" must be at most 2000, not 2001`}},
		{"not a boolean", `{"file_path":"a","-n":"yes","replace_all":1}`, []string{
			`"-n" must be true or false, not "yes"`, `"replace_all" must be true or false, not 1`}},
		{"not a choice", `{"file_path":"a","output_mode":"lines"}`, []string{`"output_mode" must be one of "content", "count", not "lines"`}},
		{"too short", `{"file_path":"a","text":"x"}`, []string{`"text" must have at least 2 characters, not 1`}},
		{"empty", `{"file_path":"a","text":""}`, []string{`"text" must not be empty`}},
		{"too long, in bytes", `{"file_path":"a","text":"äääää"}`, []string{`"text" must have at most 8 bytes, not 10`}},
		{"an object for text", `{"file_path":{}}`, []string{`"file_path" must be a string, not an object`}},
		{"not a list", `{"file_path":"a","edits":{"old_string":"x"},"words":"a"}`, []string{
			`"edits" must be an array, not an object`, `"words" must be an array, not "a"`}},
		{"a list in a broken string", `{"file_path":"a","edits":"[{]"}`, []string{`"edits" must be an array, not "[{]"`}},
		{"too few items", `{"file_path":"a","edits":[]}`, []string{`"edits" must have at least 1 items, not 0`}},
		{"too many items", `{"file_path":"a","edits":[1,2,3,4]}`, []string{`"edits" must have at most 3 items, not 4`}},
		{"problems in items", `{"file_path":"a","edits":[{"old_string":"x"},{"replace_all":"?","old":1},5],"words":["abcdef",null]}`, []string{
			`"edits[1].old_string" is required`, `"edits[1].replace_all" must be true or false, not "?"`,
			`unknown parameter "edits[1].old" (did you mean "old_string"?)`, `"edits[2]" must be an object, not 5`,
			`"words[0]" must have at most 5 bytes, not 6`, `"words[1]" must be a string, not null`}},
		{"not an object for another tool", `{"file_path":"a","arguments":[1]}`, []string{`"arguments" must be an object, not an array`}},
		{"a long value is cut", `{"file_path":"a","offset":"` + strings.Repeat("ä", 50) + `"}`, []string{
			`"offset" must be an integer, not "` + strings.Repeat("ä", 40) + `…"`}},
		{"a long name is cut", `{"file_path":"a","` + strings.Repeat("k", 5000) + `":1}`, []string{`unknown parameter "` + strings.Repeat("k", 40) + `…"`}},
		{"an empty path", `{"file_path":""}`, []string{`"file_path" must not be empty`}},
		{"paths with a NUL", `{"file_path":"a\u0000","edits":[{"old_string":"","file_path":"\u0000"}]}`, []string{
			`"file_path" must not contain a NUL character`, `"edits[0].file_path" must not contain a NUL character`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := sample.Bind(state, json.RawMessage(c.input))
			r := refusal(t, err)
			want := "Input validation failed for sample_tool:\n- " + strings.Join(c.want, "\n- ")
			if r.Code != InputInvalid || r.Text != want {
				t.Errorf("got %s: %s\nwant %s", r.Code, r.Text, want)
			}
		})
	}
}

// The text that models are used to, to the letter.
// What ends in a slash cannot be the name of a file that is to be made: clean, it would be one. To look there is fine.
func TestBindNamesDir(t *testing.T) {
	state, dir := newState(t)
	def := sampleDef()
	looks := Define(def)
	def.Spec.Scope = ScopeWrite
	writes := Define(def)
	for input, shown := range map[string]string{
		`{"file_path":"new/"}`:    "new/",
		`{"file_path":"new/x/."}`: "new/x/.",
		`{"file_path":"a","edits":[{"old_string":"x"},{"file_path":"new/","old_string":"x"}]}`: "new/",
	} {
		_, err := writes.Bind(state, []byte(input))
		if r := refusal(t, err); r.Code != IsDirectory || r.Text != shown+" can only be a directory: the name of a file is missing at its end. Give the path of a file, without a slash at its end." {
			t.Errorf("%s: %v", input, err)
		}
		if _, err := looks.Bind(state, []byte(input)); err != nil {
			t.Errorf("%s, only read: %v", input, err)
		}
	}
	if _, err := writes.Bind(state, []byte(`{"file_path":"new/","-A":"x"}`)); refusal(t, err).Code != InputInvalid {
		t.Errorf("a wrong input: %v", err)
	}
	if c, err := writes.Bind(state, []byte(`{"file_path":"new/x"}`)); err != nil || len(c.Targets) == 0 || c.Targets[0].Value != filepath.Join(dir, "new/x") {
		t.Errorf("a file: %v, %v", c.Targets, err)
	}
}

func TestBindRefusalText(t *testing.T) {
	type input struct {
		FilePath string `json:"file_path" jsonschema:"The file"`
	}
	read := Define(Def[input]{Spec: Spec{Name: "read_file"}, Run: func(context.Context, Env, input) (Result, error) { return Result{}, nil }})
	_, err := read.Bind(&session.State{}, json.RawMessage(`{"filepath":"/a"}`))
	want := `INPUT_INVALID: Input validation failed for read_file:
- "file_path" is required
- unknown parameter "filepath" (did you mean "file_path"?)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestBindNamesTenProblems(t *testing.T) {
	state, _ := newState(t)
	sample := Define(sampleDef())
	var b strings.Builder
	b.WriteString(`{"offset":0`)
	for i := range 100 {
		b.WriteString(`,"zzzzzzzz` + strings.Repeat("y", i) + `":0`)
	}
	b.WriteString(`}`)
	_, err := sample.Bind(state, json.RawMessage(b.String()))
	lines := strings.Split(refusal(t, err).Text, "\n")
	if len(lines) != 12 || lines[11] != "(92 more problems)" {
		t.Errorf("got %d lines, the last is %q; want the head, 10 problems and the number of the other 92", len(lines), lines[len(lines)-1])
	}
	if lines[1] != `- "file_path" is required` || lines[2] != `- "offset" must be at least 1, not 0` {
		t.Errorf("got %q first, want what is known before what is not", lines[1:3])
	}
}

func TestBindLongStrings(t *testing.T) {
	type input struct {
		Short string   `json:"short,omitempty" jsonschema:"Short"`
		Long  string   `json:"long,omitempty" jsonschema:"Long" rule:"maxlen=33554432"`
		Items []string `json:"items,omitempty" jsonschema:"Items"`
		Words []string `json:"words,omitempty" jsonschema:"Words" rule:"minlen=1 maxrunes=3"`
	}
	long := Define(Def[input]{Spec: Spec{Name: "long"}, Run: func(_ context.Context, _ Env, in input) (Result, error) {
		return Result{Text: in.Short + in.Long}, nil
	}})
	fits, over := strings.Repeat("x", 4<<20), strings.Repeat("x", 4<<20+1)
	for _, c := range []struct{ name, input, wrong string }{
		{"4 MiB fit anywhere", `{"short":"` + fits + `"}`, ""},
		{"one byte more does not", `{"short":"` + over + `"}`, `"short" must have at most 4194304 bytes, not 4194305`},
		{"a rule may allow more", `{"long":"` + over + `"}`, ""},
		{"characters are not bytes", `{"words":["😀ab"]}`, ""},
		{"a character more", `{"words":["😀abc"]}`, `"words[0]" must have at most 3 characters, not 4`},
		{"lists are limited, too", `{"items":[` + strings.Repeat(`"",`, 10_000) + `""]}`, `"items" must have at most 10000 items, not 10001`},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := long.Bind(&session.State{}, json.RawMessage(c.input))
			if c.wrong != "" {
				if text := refusal(t, err).Text; !strings.HasSuffix(text, "- "+c.wrong) {
					t.Errorf("got %q, want %q", text, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(call.Input) != c.input {
				t.Errorf("the canonical form has %d bytes, want the %d that came in", len(call.Input), len(c.input))
			}
		})
	}
	if !strings.Contains(string(long.Schema), `"items":{"type":"string","minLength":1,"maxLength":3}`) {
		t.Errorf("the schema is %s", long.Schema)
	}
}

// A tool could not be told to empty a text: what was given and empty looked like what was not given.
func TestBindGivenAndEmpty(t *testing.T) {
	type input struct {
		Owner *string `json:"owner,omitempty" jsonschema:"Owner" rule:"maxrunes=3"`
	}
	var got *string
	d := Define(Def[input]{Spec: Spec{Name: "d"}, Run: func(_ context.Context, _ Env, in input) (Result, error) {
		got = in.Owner
		return Result{}, nil
	}})
	if want := `"owner":{"type":"string","description":"Owner","maxLength":3}`; !strings.Contains(string(d.Schema), want) {
		t.Errorf("the schema is %s", d.Schema)
	}
	for in, want := range map[string]struct {
		canonical string
		got       *string
	}{
		`{}`:             {`{}`, nil},
		`{"owner":null}`: {`{}`, nil},
		`{"owner":""}`:   {`{"owner":""}`, new("")},
		`{"owner":42}`:   {`{"owner":"42"}`, new("42")},
	} {
		call, err := d.Bind(&session.State{}, json.RawMessage(in))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call.Run(t.Context(), Env{}); err != nil {
			t.Fatal(err)
		}
		if string(call.Input) != want.canonical || !reflect.DeepEqual(got, want.got) {
			t.Errorf("%s: bound %v, canonical %s", in, got, call.Input)
		}
	}
	if _, err := d.Bind(&session.State{}, json.RawMessage(`{"owner":"abcd"}`)); err == nil {
		t.Error("a limit does not hold")
	}
}

func TestBindCall(t *testing.T) {
	state, dir := newState(t)
	refused := Refuse(PatternInvalid, "no")
	var order []string
	d := sampleDef()
	d.Check = func(in sampleInput) error {
		order = append(order, "check "+in.FilePath)
		if in.Limit == 13 {
			return refused
		}
		return nil
	}
	d.Traits = func(_ *session.State, in sampleInput) Traits {
		order = append(order, "traits")
		return Traits{ReadOnly: in.Mode == "content"}
	}
	d.Targets = func(_ *session.State, in sampleInput) []permission.Target {
		order = append(order, "targets")
		return []permission.Target{{Kind: permission.Command, Value: in.Text}}
	}
	d.Verdict = func(*session.State, sampleInput) permission.Verdict { return permission.Ask }
	d.Activity = func(in sampleInput) string { return "Reading\n" + in.FilePath + strings.Repeat("x", 180) }
	d.Question = func(_ context.Context, _ *session.State, in sampleInput) (*Question, error) {
		return &Question{Title: in.Mode}, nil
	}
	sample := Define(d)
	call, err := sample.Bind(state, json.RawMessage(`{"file_path":"a","path":"b","output_mode":"content","text":"ls",
		"edits":[{"old_string":"","file_path":"a"},{"old_string":""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a")
	if want := []string{"check " + file, "traits", "targets"}; !slices.Equal(order, want) {
		t.Errorf("order: got %q, want %q", order, want)
	}
	if want := (Traits{ReadOnly: true, Local: true}); call.Traits != want {
		t.Errorf("traits: got %+v, want what holds for every input and for this one: %+v", call.Traits, want)
	}
	want := []permission.Target{
		{Kind: permission.Path, Value: file}, {Kind: permission.Path, Value: filepath.Join(dir, "b")},
		{Kind: permission.Path, Value: file}, {Kind: permission.Command, Value: "ls"},
	}
	if !reflect.DeepEqual(call.Targets, want) {
		t.Errorf("targets: got %+v, want %+v", call.Targets, want)
	}
	if call.Verdict != permission.Ask || !reflect.DeepEqual(call.Spec, sample.Spec) {
		t.Errorf("got verdict %v and spec %+v", call.Verdict, call.Spec)
	}
	if n := len([]rune(call.Activity)); n != 100 || !strings.HasPrefix(call.Activity, "Reading ") || !strings.HasSuffix(call.Activity, "…") {
		t.Errorf("activity: got %q, %d characters, want one line of 100", call.Activity, n)
	}
	if q, err := call.Question(t.Context(), state); err != nil || q.Title != "content" {
		t.Errorf("question: got %+v, %v", q, err)
	}
	if got, err := call.Run(t.Context(), Env{}); err != nil || got.Text != file {
		t.Errorf("run: got %+v, %v", got, err)
	}
	if _, err := sample.Bind(state, json.RawMessage(`{"file_path":"a","limit":13}`)); err != refused {
		t.Errorf("got %v, want what Check said", err)
	}
}

// A tool that forgets to say something must not be trusted for it.
func TestBindCarefulByDefault(t *testing.T) {
	type input struct{}
	plain := Define(Def[input]{Spec: Spec{Name: "plain"}, Run: func(context.Context, Env, input) (Result, error) { return Result{}, nil }})
	call, err := plain.Bind(&session.State{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if call.Traits != (Traits{}) || call.Targets != nil || call.Verdict != permission.Allow || call.Question != nil || string(call.Input) != "{}" {
		t.Errorf("got %+v", call)
	}
	if _, err := (Tool{}).Bind(&session.State{}, nil); err == nil {
		t.Error("the zero Tool bound an input")
	}
}

// A path with a default is never empty, however its absence was said.
func TestBindDefaultPath(t *testing.T) {
	type input struct {
		Path string `json:"path,omitempty" jsonschema:"A directory" rule:"default=."`
	}
	list := Define(Def[input]{
		Spec:  Spec{Name: "list"},
		Paths: func(in *input) []*string { return []*string{&in.Path} },
		Run:   func(context.Context, Env, input) (Result, error) { return Result{}, nil },
	})
	state, dir := newState(t)
	for _, raw := range []string{`{}`, `{"path":null}`, `{"path":""}`, `{"path":"null"}`, `{"path":"undefined"}`, `{"path":"."}`} {
		call, err := list.Bind(state, json.RawMessage(raw))
		if err != nil || len(call.Targets) != 1 || call.Targets[0].Value != dir {
			t.Errorf("%s: got %s with %+v, %v, want the current directory", raw, call.Input, call.Targets, err)
		}
	}
}

// Calls run at the same time, and each has its own input.
func TestBindSharesNothing(t *testing.T) {
	state, _ := newState(t)
	sample := Define(sampleDef())
	raw := json.RawMessage(`{"file_path":"a","words":["one"],"arguments":{"k":1}}`)
	first, err := sample.Bind(state, raw)
	if err != nil {
		t.Fatal(err)
	}
	kept := string(first.Input)
	for i := range raw {
		raw[i] = 'x'
	}
	if string(first.Input) != kept || !json.Valid(first.Input) {
		t.Error("the call changed with the buffer that it came in")
	}
}

func TestForward(t *testing.T) {
	type input struct {
		Name string          `json:"name" jsonschema:"Tool"`
		Args json.RawMessage `json:"arguments,omitempty" jsonschema:"Its arguments"`
	}
	d := Def[input]{
		Spec:   Spec{Name: "call_tool"},
		Accept: map[string]string{"tool": "name"},
		Check: func(in input) error {
			return map[bool]error{true: Refuse(UnknownTool, "itself")}[in.Name == "call_tool"]
		},
		Forward: func(in input) (string, json.RawMessage) { return in.Name, in.Args },
	}
	dispatcher := Define(d)
	for _, c := range []struct {
		input, name, args string
		ok                bool
	}{
		{`{"name":"read_file","arguments":{"a":"1"}}`, "read_file", `{"a":"1"}`, true},
		{`{"tool":"read_file","arguments":"{\"a\":1}"}`, "read_file", `{"a":1}`, true},
		{`{"name":"read_file"}`, "read_file", ``, true},
		{`{"arguments":{}}`, "", "", false},
		{`{"name":"call_tool"}`, "", "", false},
		{`[`, "", "", false},
	} {
		name, args, ok := dispatcher.Forward(json.RawMessage(c.input))
		if name != c.name || string(args) != c.args || ok != c.ok {
			t.Errorf("%s: got %q, %s, %v", c.input, name, args, ok)
		}
		if _, err := dispatcher.Bind(&session.State{}, json.RawMessage(c.input)); (err == nil) != c.ok {
			t.Errorf("%s: Bind says %v, Forward %v", c.input, err, ok)
		}
	}
	call, err := dispatcher.Bind(&session.State{}, json.RawMessage(`{"name":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Run(t.Context(), Env{}); err == nil {
		t.Error("a dispatcher ran as if it were a tool of its own")
	}
	if _, _, ok := Define(sampleDef()).Forward(json.RawMessage(`{"file_path":"a"}`)); ok {
		t.Error("a tool that runs itself was forwarded")
	}
}

func TestUnavailable(t *testing.T) {
	d := sampleDef()
	if got := Define(d).Unavailable(&session.State{}); got != "" {
		t.Errorf("got %q, want that it is there", got)
	}
	d.Available = func(s *session.State) string { return s.Prefs.NoShell }
	if got := Define(d).Unavailable(&session.State{Prefs: session.Prefs{NoShell: "no shell here"}}); got != "no shell here" {
		t.Errorf("got %q, want the reason", got)
	}
}

func TestRefusal(t *testing.T) {
	cause := errors.New("disk")
	err := error(&Refusal{Code: WriteFailed, Text: "Writing a failed.", Cause: cause})
	if err.Error() != "WRITE_FAILED: Writing a failed." || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	numbered := refusal(t, Numbered(CountMismatch, 13, "Expected %d replacements but found %d.", 2, 3))
	if numbered.Code != CountMismatch || numbered.Number != 13 || numbered.Text != "Expected 2 replacements but found 3." {
		t.Errorf("got %+v", numbered)
	}
	if r := refusal(t, Refuse(Busy, "%s", "100%")); r.Text != "100%" || r.Number != 0 {
		t.Errorf("got %+v", r)
	}
}

// Decisions about a call see what Complete has set, as Run does.
func TestComplete(t *testing.T) {
	t.Parallel()
	type input struct {
		Name  string   `json:"name,omitempty" jsonschema:"Name"`
		ID    string   `json:"id,omitempty" jsonschema:"Id"`
		files []string `json:"-"`
	}
	d := Def[input]{
		Spec: Spec{Name: "sample_tool"},
		Check: func(in input) error {
			if in.Name != "" && in.ID != "" {
				return Invalid("sample_tool", "both")
			}
			return nil
		},
		Complete: func(_ context.Context, _ *session.State, in *input) error {
			if in.Name == "none" {
				return Refuse(FileNotFound, "There is none.")
			}
			if in.Name != "" {
				in.Name, in.ID = "", "id of "+in.Name
			}
			in.files = []string{"/of/" + in.ID}
			return nil
		},
		Targets: func(_ *session.State, in input) []permission.Target {
			return []permission.Target{{Kind: permission.Path, Value: in.files[0]}}
		},
		Details: func(_ context.Context, _ *session.State, in input, _ int) string { return "about " + in.ID },
		Run: func(_ context.Context, _ Env, in input) (Result, error) {
			return Result{Text: in.ID + in.files[0]}, nil
		},
	}
	x := Define(d)
	call, err := x.Bind(nil, json.RawMessage(`{"name":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(call.Input), `{"id":"id of a"}`; got != want {
		t.Errorf("the input is %s, want %s", got, want)
	}
	again, err := x.Bind(nil, call.Input)
	if err != nil || string(again.Input) != string(call.Input) {
		t.Errorf("bound again it is %s, %v", again.Input, err)
	}
	if len(call.Targets) != 1 || call.Targets[0].Value != "/of/id of a" {
		t.Errorf("the targets are %v", call.Targets)
	}
	if got := call.Details(t.Context(), nil, 0); got != "about id of a" {
		t.Errorf("the details are %q", got)
	}
	if res, err := call.Run(t.Context(), Env{}); err != nil || res.Text != "id of a/of/id of a" {
		t.Errorf("it ran with %q, %v", res.Text, err)
	}
	_, err = x.Bind(nil, json.RawMessage(`{"name":"none"}`))
	if r, ok := errors.AsType[*Refusal](err); !ok || r.Code != FileNotFound {
		t.Errorf("a refusal of Complete gives %v", err)
	}
}

func TestInvalidKeepsTheText(t *testing.T) {
	r := refusal(t, Invalid("read_file", `"pages" must be like 3 or 1-5, not "100%s"`))
	want := "Input validation failed for read_file:\n- \"pages\" must be like 3 or 1-5, not \"100%s\""
	if r.Code != InputInvalid || r.Text != want {
		t.Errorf("got %q", r.Text)
	}
}

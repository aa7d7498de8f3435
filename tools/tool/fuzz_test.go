package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var seeds = []string{
	``, `null`, `{}`, `[]`, `{"file_path":"a"}`, `{"filename":"a","file_path":"b"}`,
	`{"file_path":"~/a","path":"undefined","offset":"5","limit":1e2,"-n":"false","text":1.5}`,
	`{"file_path":"file:///a%20b","edits":"[{\"old_string\":\"\\\\\",\"count\":2.0}]","words":[1,"\ud83d\ude00"],"lines":["1"]}`,
	`{"file_path":"\\\\h\\s","arguments":{"a":[{},"]",{"b":"\\\""}]},"allow_large":true}`,
	"{ \"file_path\" :\t\"\xff\" , \"zzz\":[[[[]]]] }",
}

// FuzzBind holds that whatever comes in becomes either a call or one refusal with all problems; that a client which
// checks the canonical input by the published schema accepts it; and that binding it again changes nothing.
func FuzzBind(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	state, _ := newState(f)
	sample := Define(sampleDef())
	var published jsonschema.Schema
	if err := json.Unmarshal(sample.Schema, &published); err != nil {
		f.Fatal(err)
	}
	schema, err := published.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		call, err := sample.Bind(state, raw)
		if err != nil {
			r := refusal(t, err)
			head, rest, _ := strings.Cut(r.Text, "\n")
			if r.Code != InputInvalid || head != "Input validation failed for sample_tool:" || !strings.HasPrefix(rest, "- ") {
				t.Fatalf("got %v", err)
			}
			if strings.Count(rest, "\n") > maxProblems || len(rest) > maxProblems*500 {
				t.Fatalf("too long a refusal: %v", err)
			}
			return
		}
		checkBySchema(t, schema, call.Input)
		again, err := sample.Bind(state, call.Input)
		if err != nil || !bytes.Equal(again.Input, call.Input) {
			t.Fatalf("%s\nbound again: %s, %v", call.Input, again.Input, err)
		}
	})
}

func checkBySchema(t *testing.T, schema *jsonschema.Resolved, input []byte) {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(input, &value); err != nil {
		t.Fatalf("the canonical form is no object: %s: %v", input, err)
	}
	delete(value, "allow_large") // accepted, but not published
	if err := schema.Validate(value); err != nil {
		t.Fatalf("the published schema refuses %s: %v", input, err)
	}
}

// FuzzSplit compares what members, elements and unquote find with what encoding/json finds.
func FuzzSplit(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"a\"\\":"\\\\\"","b" : [ 1 , "," ,{"}":"]"}, -1e5 ] , "":null,"c":{ } , "d":[ ]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = trim(raw)
		if !json.Valid(raw) {
			return
		}
		checkSplit(t, raw)
	})
}

func checkSplit(t *testing.T, raw []byte) {
	t.Helper()
	if end := skip(raw, 0); end != len(raw) {
		t.Fatalf("skip of %q ends at %d", raw, end)
	}
	switch raw[0] {
	case '{':
		want := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		for key, value := range members(raw) {
			got[unquote(key)] = value
			checkSplit(t, value)
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("members of %q: got %q, want %q", raw, got, want)
		}
	case '[':
		var want []json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		i := 0
		for value := range elements(raw) {
			if i >= len(want) || !bytes.Equal(value, want[i]) {
				t.Fatalf("element %d of %q: got %q", i, raw, value)
			}
			i++
			checkSplit(t, value)
		}
		if i != len(want) {
			t.Fatalf("%q: got %d elements, want %d", raw, i, len(want))
		}
	case '"':
		var want string
		if err := json.Unmarshal(raw, &want); err != nil || unquote(raw) != want {
			t.Fatalf("unquote of %q: got %q, want %q, %v", raw, unquote(raw), want, err)
		}
	}
}

// FuzzAppendText compares with encoding/json, which reads back what AppendText wrote.
func FuzzAppendText(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c\n\r\t", "\x00\x1f\x7f", "<ä>\u2028\U0001f600", "\xff\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendText(nil, s)
		var got string
		if err := json.Unmarshal(b, &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
			t.Fatalf("%q became %s, read as %q, %v", s, b, got, err)
		}
	})
}

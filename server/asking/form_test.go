package asking

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/tool"
)

// formFields are a field of each kind.
var formFields = []tool.Field{
	{Name: "q1", Label: "Store", About: "Which store?", Choices: []string{"a", "b"}, Titles: []string{"a: one", "b"}, Optional: true},
	{Name: "q1_other", Label: "Other"},
	{Name: "q2", Label: "Parts", About: "Which parts?", Choices: []string{"c", "d"}, Titles: []string{"c", "d: two\u202e"}, Many: true},
	{Name: "q3", Label: "Plain", Choices: []string{"e", "f"}},
	{Name: "q4", Label: "Some", Choices: []string{"g", "h"}, Many: true},
}

// TestSchema: the form is one that each revision of the protocol knows. From 2025-11-25 on, a choice is oneOf with
// const and title, and a list of them is items.anyOf; before, there were enumNames, and no lists.
func TestSchema(t *testing.T) {
	t.Parallel()
	const (
		text  = `"q1_other":{"type":"string","title":"Other","maxLength":1000}`
		plain = `"q3":{"type":"string","title":"Plain","enum":["e","f"]}`
		named = `{"type":"object","properties":{` +
			`"q1":{"type":"string","title":"Store","description":"Which store?","oneOf":[{"const":"a","title":"a: one"},{"const":"b","title":"b"}]},` + text + `,` +
			`"q2":{"type":"array","title":"Parts","description":"Which parts?","items":{"anyOf":[{"const":"c","title":"c"},{"const":"d","title":"d: two\\u202e"}]}},` + plain + `,` +
			`"q4":{"type":"array","title":"Some","items":{"type":"string","enum":["g","h"]}}},"required":["q3"]}`
		flagged = `{"type":"object","properties":{` +
			`"q1":{"type":"string","title":"Store","description":"Which store?","enum":["a","b"],"enumNames":["a: one","b"]},` + text + `,` +
			`"q2_1":{"type":"boolean","title":"Parts: c","description":"Which parts?"},"q2_2":{"type":"boolean","title":"Parts: d: two\\u202e"},` + plain + `,` +
			`"q4_1":{"type":"boolean","title":"Some: g"},"q4_2":{"type":"boolean","title":"Some: h"}},"required":["q3"]}`
	)
	for revision, want := range map[string]string{"": flagged, "2025-03-26": flagged, "2025-06-18": flagged, "2025-11-25": named, "2026-07-28": named} {
		if got := string(schema(formFields, revision)); got != want {
			t.Errorf("revision %q:\ngot  %s\nwant %s", revision, got, want)
		}
	}
}

// TestFit: an answer counts if it fits the form that was sent, in each of its shapes, and nothing else does.
func TestFit(t *testing.T) {
	t.Parallel()
	kept := func(revision string) []keptField {
		var all []keptField
		for _, f := range formFields {
			all = append(all, keepField(f, revision))
		}
		return all
	}
	long := strings.Repeat("é", maxText+1)
	for _, tt := range []struct {
		revision, content, want string // want "": it does not fit
	}{
		{"2025-11-25", `{"q3":"e"}`, `{"q3":["e"]}`},
		{"2025-11-25", `{"q1":"a","q1_other":"x\ny","q2":["d","c"],"q3":"f","q4":[]}`, `{"q1":["a"],"q1_other":["x\ny"],"q2":["d","c"],"q3":["f"],"q4":[]}`},
		{"2025-11-25", `{"q1":"","q2":null,"q3":"e","more":[1]}`, `{"q3":["e"]}`},
		// An answer that was cut looked whole, to a model that acts on it.
		{"2025-11-25", `{"q3":"e","q1_other":"` + long + `"}`, `{"q1_other":["` + long[4:] + `…"],"q3":["e"]}`},
		{"2025-11-25", `{"q1":"a"}`, ""},
		{"2025-11-25", `{"q3":""}`, ""},
		{"2025-11-25", `{"q1":"a: one","q3":"e"}`, ""},
		{"2025-11-25", `{"q1":["a"],"q3":"e"}`, ""},
		{"2025-11-25", `{"q1":1,"q3":"e"}`, ""},
		{"2025-11-25", `{"q2":"c","q3":"e"}`, ""},
		{"2025-11-25", `{"q2":["c","c"],"q3":"e"}`, ""},
		{"2025-11-25", `{"q2":["x"],"q3":"e"}`, ""},
		{"2025-11-25", `{"q2":[1],"q3":"e"}`, ""},
		{"2025-11-25", `{"q2_1":true,"q3":"e"}`, `{"q3":["e"]}`},
		{"2025-11-25", `{"q1_other":1,"q3":"e"}`, ""},
		{"2025-11-25", `[]`, ""},
		{"2025-06-18", `{"q1":"b","q2_1":true,"q2_2":true,"q3":"e","q4_2":true}`, `{"q1":["b"],"q2":["c","d"],"q3":["e"],"q4":["h"]}`},
		{"2025-06-18", `{"q2_1":false,"q2_2":null,"q3":"e"}`, `{"q2":[],"q3":["e"]}`},
		{"2025-06-18", `{"q2_1":"true","q3":"e"}`, ""},
		{"2025-06-18", `{"q2":["c"],"q3":"e"}`, `{"q3":["e"]}`},
	} {
		var content any
		must(t, json.Unmarshal([]byte(tt.content), &content))
		r := &Elicited{}
		r.Action, r.Content = mcp.ElicitationResponseActionAccept, content
		got := fit(kept(tt.revision), r)
		if tt.want == "" {
			if got.Outcome != tool.Declined || got.Values != nil {
				t.Errorf("%s %s: got %+v", tt.revision, tt.content, got)
			}
			continue
		}
		var want map[string][]string
		must(t, json.Unmarshal([]byte(tt.want), &want))
		if got.Outcome != tool.Accepted || !reflect.DeepEqual(got.Values, want) {
			t.Errorf("%s %s:\ngot  %q\nwant %q", tt.revision, tt.content, fmt.Sprint(got.Values), fmt.Sprint(want))
		}
	}
}

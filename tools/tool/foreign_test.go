package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// TestForeign: what other servers offer under wrong names or with unusable schemas is refused when the tool is made, and
// an input that no call could have when it is bound.
func TestForeign(t *testing.T) {
	t.Parallel()
	run := func(context.Context, Env, json.RawMessage) (Result, error) { return Result{}, nil }
	for _, c := range []struct{ name, schema, want string }{
		{"mcp__a__B-c", `{"type":"object"}`, ""},
		{"", `{"type":"object"}`, "a name has"},
		{"a b", `{"type":"object"}`, "a name has"},
		{strings.Repeat("a", 65), `{"type":"object"}`, "a name has"},
		{"a\n", `{"type":"object"}`, "a name has"},
		{"a", `{"type":"array"}`, "not of type object"},
		{"a", `{}`, "not of type object"},
		{"a", `{"type":["object"]}`, "schema: "},
		{"a", `{"type":"object"`, "schema: "},
		{"a", `null`, "not of type object"},
	} {
		_, err := Foreign(Spec{Name: c.name}, json.RawMessage(c.schema), nil, run)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %s: %v", c.name, c.schema, err)
		}
	}
	x, err := Foreign(Spec{Name: "push"}, json.RawMessage(`{"type":"object","required":["a","b"]}`), nil, run)
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		`[1]`: "must be an object", `{"a":1`: "not valid JSON", ``: `"a" is required`, `{"a":1}`: `"b" is required`,
	} {
		if _, err := x.Bind(nil, json.RawMessage(input)); err == nil || !strings.HasPrefix(err.Error(), "INPUT_INVALID: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", input, err)
		}
	}
	c, err := x.Bind(nil, json.RawMessage(` { "b" : null, "a" : {"c": 1} } `))
	if err != nil || string(c.Input) != `{"b":null,"a":{"c":1}}` || c.Verdict != permission.Allow || c.Activity != "Calling push" {
		t.Errorf("%v: %+v", err, c)
	}
	if c.Traits != (Traits{}) || len(c.Targets) != 1 || c.Targets[0].Kind != permission.Domain {
		t.Errorf("a tool that says nothing is not taken for one that reaches the network: %+v", c)
	}
	if x, err = Foreign(Spec{Name: "here", Traits: Traits{Local: true}}, json.RawMessage(`{"type":"object"}`), nil, run); err != nil {
		t.Fatal(err)
	}
	if c, err = x.Bind(nil, nil); err != nil || len(c.Targets) != 0 || string(c.Input) != "{}" {
		t.Errorf("%v: %+v", err, c)
	}
}

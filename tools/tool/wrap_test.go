package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/session"
)

func echo(_ context.Context, _ Env, raw json.RawMessage) (Result, error) {
	return Result{Text: string(raw)}, nil
}

func TestWrap(t *testing.T) {
	const simple = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`
	for _, c := range []struct{ name, schema, input, want, wrong string }{
		{"as it came, without blanks", simple, ` { "b" : "<x>", "a":1.0 }`, `{"b":"<x>","a":1.0}`, ""},
		{"nothing is filled in or coerced", `{"type":"object","properties":{"a":{"type":"integer","default":3}}}`, `null`, `{}`, ""},
		{"a wrong type", simple, `{"a":"1"}`, "", "integer"},
		{"a missing parameter", simple, ``, "", `required`},
		{"no object", simple, `[1]`, "", "must be an object, not an array"},
		{"no JSON", simple, `{"a":1`, "", "not valid JSON"},
		{"a schema that does not compile", `{"type":"object","pattern":"("}`, `{"a":1}`, `{"a":1}`, ""},
		{"a schema that is none", `nonsense`, `{"a":1}`, `{"a":1}`, ""},
		{"no schema", ``, `{"a":1}`, `{"a":1}`, ""},
		// The stack of a validator that follows this reference would end the whole server.
		{"a schema that is its own part", `{"type":"object","allOf":[{"$ref":"#"}]}`, `{"a":1}`, `{"a":1}`, ""},
		{"the same in other letters", `{"type":"object","allOf":[{"\u0024ref":"#"}]}`, `{"a":1}`, `{"a":1}`, ""},
		{"a dynamic reference", `{"type":"object","$dynamicAnchor":"m","allOf":[{"$dynamicRef":"#m"}]}`, `{"a":1}`, `{"a":1}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrapped := Wrap(Spec{Name: "mcp__a__b"}, json.RawMessage(c.schema), echo)
			call, err := wrapped.Bind(&session.State{}, json.RawMessage(c.input))
			if c.wrong != "" {
				r := refusal(t, err)
				if r.Code != InputInvalid || !strings.HasPrefix(r.Text, "Input validation failed for mcp__a__b:\n- ") || !strings.Contains(r.Text, c.wrong) {
					t.Errorf("got %v, want %q in it", r, c.wrong)
				}
				return
			}
			if err != nil || string(call.Input) != c.want {
				t.Fatalf("got %s, %v, want %s", call.Input, err, c.want)
			}
			if got, err := call.Run(t.Context(), Env{}); err != nil || got.Text != c.want {
				t.Errorf("run: got %+v, %v", got, err)
			}
		})
	}
}

func TestWrapPromisesNothing(t *testing.T) {
	call, err := Wrap(Spec{Name: "mcp__a__b"}, json.RawMessage(`{"type":"object"}`), echo).Bind(&session.State{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if call.Traits != (Traits{}) || call.Verdict != permission.Allow || call.Targets != nil || call.Spec.Name != "mcp__a__b" {
		t.Errorf("got %+v", call)
	}
	if _, err := Wrap(Spec{Name: "mcp__a__b"}, nil, nil).Bind(&session.State{}, nil); err == nil {
		t.Error("a tool without a function was bound")
	}
}

func TestInvalidKeepsTheText(t *testing.T) {
	r := refusal(t, Invalid("read_file", `"pages" must be like 3 or 1-5, not "100%s"`))
	want := "Input validation failed for read_file:\n- \"pages\" must be like 3 or 1-5, not \"100%s\""
	if r.Code != InputInvalid || r.Text != want {
		t.Errorf("got %q", r.Text)
	}
}

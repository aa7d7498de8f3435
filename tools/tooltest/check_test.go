package tooltest

import (
	"encoding/json"
	"strings"
	"testing"

	"codehand/tools/tool"
)

func TestCheck(t *testing.T) {
	spec := tool.Spec{Name: "x", Title: "X", Description: "X.", Hint: "one two three"}
	const good = `{"type":"object","properties":{"a":{"type":"string","description":"d"}},"additionalProperties":false}`
	for _, c := range []struct {
		name, schema, want string
		spec               tool.Spec
	}{
		{"good", good, "", spec},
		{"no title", good, "the field Title is empty", tool.Spec{Name: "x", Description: "X.", Hint: "one two three"}},
		{"no JSON", `{`, "does not compile", spec},
		{"a missing reference", `{"type":"object","$ref":"#/$defs/a"}`, "does not compile", spec},
		{"no object", `{"type":"array","items":{"type":"string"}}`, `"type":"object"`, spec},
		{"two types", `{"type":["object","null"]}`, `"type":"object"`, spec},
		{"open", `{"type":"object","properties":{}}`, "additionalProperties", spec},
		{"a union", `{"type":"object","anyOf":[{}],"properties":{},"additionalProperties":false}`, "anyOf", spec},
		{"a property of two types", `{"type":"object","properties":{"a":{"type":["string","null"],"description":"d"}},"additionalProperties":false}`,
			"a: needs exactly one type", spec},
		{"a property without words", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "a has no description", spec},
		{"an array of what", `{"type":"object","properties":{"a":{"type":"array","description":"d"}},"additionalProperties":false}`,
			"a: an array needs items", spec},
		{"deeper", `{"type":"object","properties":{"a":{"type":"array","description":"d","items":{"type":"object","properties":{"b":{}}}}},"additionalProperties":false}`,
			"additionalProperties", spec},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(tool.Tool{Spec: c.spec, Schema: json.RawMessage(c.schema)})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

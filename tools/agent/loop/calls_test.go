package loop

import (
	"strings"
	"testing"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	calls := CallsOf(Turn{Messages: make([]Message, 3)})
	for _, c := range []struct{ id, arguments, wantID, want, broken string }{
		{"a", `{"p":1}`, "a", `{"p":1}`, ""},
		{"a", ` {} `, "call_3_1", `{}`, ""},
		{"", ``, "call_3_2", `{}`, ""},
		{"call_3_3", `null`, "call_3_3", `{}`, ""},
		{"", "{\"p\":\"\xff\"}", "call_3_4", "{\"p\":\"\ufffd\"}", ""},
		{"call_3_6", `[1]`, "call_3_6", `{}`, `the arguments are JSON, but no object: "[1]"`},
		{"", `"{}"`, "call_3_7", `{}`, `the arguments are JSON, but no object: "\"{}\""`},
		{"", `{"p":`, "call_3_8", `{}`, `the arguments are no JSON (unexpected end of JSON input): "{\"p\":"`},
		{"", `{} {}`, "call_3_9", `{}`, `the arguments are no JSON (invalid character '{' after top-level value)`},
		{"", "{" + strings.Repeat("ä", 150), "call_3_10", `{}`, `the arguments are no JSON`},
		{"", strings.Repeat("[", 20000), "call_3_11", `{}`, `the arguments are no JSON`},
	} {
		got := calls.Make(c.id, "read", c.arguments)
		if got.ID != c.wantID || string(got.Arguments) != c.want || !strings.HasPrefix(got.Broken, c.broken) || (got.Broken == "") != (c.broken == "") ||
			len(got.Broken) > 300 || got.Name != "read" {
			t.Errorf("%q %.50q: %+v", c.id, c.arguments, got)
		}
	}
}

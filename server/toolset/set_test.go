package toolset

import (
	"testing"

	"codehand/tools/tool"
)

// TestNamesOfTools: two tools whose names differ in case alone would be one for call_tool.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	named := func(name string, aliases ...string) tool.Tool {
		return tool.Tool{Spec: tool.Spec{Name: name, Aliases: aliases}}
	}
	for _, c := range []struct {
		tools []tool.Tool
		want  string
	}{
		{[]tool.Tool{named("one", "One"), named("two")}, ""},
		{[]tool.Tool{named("one"), named("two", "ONE")}, "tool two: the name ONE is taken by one"},
		{[]tool.Tool{named("one"), named("one")}, "tool one: the name one is taken by one"},
	} {
		got := ""
		if _, err := New(c.tools, Lists{}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

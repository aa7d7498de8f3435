package blackbox

import (
	"strings"
	"testing"
)

// A model was not told whether its commands are confined: the first answer of a command says it where the machine had
// never been probed, and from the next start on the instructions do.
func TestConfinementIsTold(t *testing.T) {
	t.Parallel()
	inFull(t)
	const note = "[commands here are confined to your directories]"
	h := settle(t) // another state directory, in which nothing is proven
	begin := func(first bool) {
		p := h.stdio()
		_, hello := p.Ask(t, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "claude-code", "version": "1"}})
		if said := strings.Contains(string(hello), " Commands are confined to them."); said == first {
			t.Errorf("the first start: %v; told at the beginning: %s", first, hello)
		}
		want := "(no output)"
		if first {
			want += "\n" + note
		}
		for _, name := range []string{"run_shell", "run_readonly"} {
			if _, got := calls(t, p, name, `{"command":"true"}`, nil); got != want {
				t.Errorf("the first start: %v; %s: %q, want %q", first, name, got, want)
			}
			want = "(no output)"
		}
	}
	begin(true)
	begin(false)
}

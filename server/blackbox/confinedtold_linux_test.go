package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
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

// `git stash` failed without a word where nothing may change, and the model did not learn that this was why.
func TestReadOnlyIsTold(t *testing.T) {
	t.Parallel()
	inFull(t)
	p, work := blackbox(t)
	const make = "git init -q . && git add f && git -c user.name=a -c user.email=a@b commit -qm 1 && echo b >f"
	must(t, os.WriteFile(filepath.Join(work, "f"), []byte("a\n"), 0o600))
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", make))
	got, err := p.Call("run_readonly", json.RawMessage(`{"command":"git stash"}`))
	if err != nil || !strings.Contains(fmt.Sprint(got), "[read-only here: files cannot be changed, and this command") {
		t.Errorf("%v, %v", got, err)
	}
	got, err = p.Call("run_readonly", json.RawMessage(`{"command":"test -f none"}`))
	if err != nil || strings.Contains(fmt.Sprint(got), "read-only here") {
		t.Errorf("%v, %v", got, err)
	}
}

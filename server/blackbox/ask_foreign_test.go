package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestForeignAsked: with each version of the official TypeScript SDK as the client, a person allows a call once and for
// the session, denies, declines and cancels; a client that did not declare elicitation sees no question on its wire.
func TestForeignAsked(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	for _, f := range foreigners {
		if f.script == "" {
			continue
		}
		for _, k := range append([]wireKind{{"stdio", "legacy"}, {"stdio", "modern"}}, wireKinds...) {
			if k.era == "modern" && !f.modern || k.transport == "sse" { // nobody is asked there
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", f.name, k.transport, k.era), func(t *testing.T) {
				t.Parallel()
				node, _ := inspector(t)
				script, err := filepath.Abs(filepath.Join("../../.ci/conformance/clients", map[bool]string{false: "asking1.mjs", true: "asking2.mjs"}[f.modern]))
				if err != nil {
					t.Fatal(err)
				}
				d := deploy(t)
				d.set = append(d.set, "CODEHAND_PERMISSIONS_ASK_FALLBACK=deny", "CODEHAND_PERMISSIONS_MODE=default")
				args := []string{script, "--transport", k.transport, "--era", k.era, "--work", d.work}
				if k.transport == "stdio" {
					args = append(args, "--command", d.program)
				} else {
					path := map[string]string{"http": "/mcp", "sse": "/sse"}[k.transport]
					args = append(args, "--url", d.serve().url+path, "--token", d.token)
				}
				cmd := exec.Command(node, args...)
				cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + d.home, "XDG_STATE_HOME=" + filepath.Join(d.home, "state")}, d.set...)
				checked(t, cmd, nil)
			})
		}
	}
}

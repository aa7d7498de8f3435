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
	withSDKs(t, "asking", "CODEHAND_PERMISSIONS_ASK_FALLBACK=deny", "CODEHAND_PERMISSIONS_MODE=default")
}

// TestForeignSamples: with each version of the official TypeScript SDK as the client, its model executes sub-agents, in
// both eras, and the person in front of it is asked by them.
func TestForeignSamples(t *testing.T) {
	t.Parallel()
	withSDKs(t, "sampling", "CODEHAND_PERMISSIONS_ASK_FALLBACK=deny", "CODEHAND_PERMISSIONS_MODE=default", "CODEHAND_AGENT_SAMPLING=true")
}

// withSDKs runs a program of .ci/conformance/clients with each version of the official TypeScript SDK, over each
// transport and in each era in which the server can ask something.
func withSDKs(t *testing.T, program string, settings ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a POSIX shell")
	}
	for _, f := range foreigners {
		if f.script == "" {
			continue
		}
		for _, k := range append([]wireKind{{"stdio", "legacy"}, {"stdio", "modern"}}, wireKinds...) {
			if k.era == "modern" && !f.modern || k.transport == "sse" { // the server asks no questions there
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", f.name, k.transport, k.era), func(t *testing.T) {
				t.Parallel()
				node, _ := inspector(t)
				script, err := filepath.Abs(filepath.Join("../../.ci/conformance/clients", program+map[bool]string{false: "1.mjs", true: "2.mjs"}[f.modern]))
				if err != nil {
					t.Fatal(err)
				}
				d := deploy(t)
				d.set = append(d.set, settings...)
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

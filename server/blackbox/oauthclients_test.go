package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The tests of this file sign in with the OAuth of clients of other projects. testdata/clients/signin says what each
// must do, and .ci/conformance/clients/oauth.mjs does for TypeScript.

// signers are the SDKs that sign in.
var signers = []foreign{
	{name: "typescript-sdk-1", script: "oauth1.mjs"},
	{name: "typescript-sdk-2", script: "oauth2.mjs"},
	{name: "gosdk-signin"},
	{name: "mcpgo-signin"},
}

// signer makes the command line of an SDK that signs in.
func (f foreign) signer(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if f.script == "" {
		dir, err := goClients()
		if err != nil {
			if os.Getenv("CI") == "" {
				t.Skipf("the Go clients cannot be built here: %v", err)
			}
			t.Fatal(err)
		}
		return exec.Command(filepath.Join(dir, f.name), args...)
	}
	node, _ := inspector(t)
	script, err := filepath.Abs(filepath.Join("../../.ci/conformance/clients", f.script))
	must(t, err)
	return exec.Command(node, append([]string{script}, args...)...)
}

// TestOAuthClients: each SDK registers, signs in, refreshes, is there still after a kill and a restart of the server, and
// is refused once its grant is revoked.
func TestOAuthClients(t *testing.T) {
	t.Parallel()
	for _, f := range signers {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.script != "" {
				long(t)
			}
			d := opened(t, nil)
			d.accompany(f.signer(t, "--url", d.s.url+"/mcp", "--redirect", "http://127.0.0.1:33419/callback"))
		})
	}
}

// accompany runs an SDK to its end: a person signs in, the server is killed, and the grants are revoked when it says so.
func (d *door) accompany(cmd *exec.Cmd, flags ...string) {
	d.t.Helper()
	conversed(d.t, cmd, func(line string) (string, bool) {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "OPEN":
			return d.person().walk(rest), true
		case "RESTART":
			d.again(flags...)
		case "REVOKE":
			d.revokeAll()
		default:
			return "", false
		}
		return "go on", true
	})
}

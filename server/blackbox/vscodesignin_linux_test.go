package blackbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"codehand/server/replaytest"
)

// TestVSCodeSignsIn: VS Code in Chromium signs in on our pages and has our tools, also after a kill of the server, and asks a
// person again once the grant is revoked. There is no VS Code in a registry; code-server's package has its server and its
// workbench, unchanged where they speak MCP and OAuth. vscode.mjs says what the test plays.
func TestVSCodeSignsIn(t *testing.T) {
	long(t) // and alone: a whole editor takes all that a small machine has
	modules, err := filepath.Abs(filepath.Join(benchOfClients, "node_modules"))
	must(t, err)
	editor := filepath.Join(modules, "code-server", "lib", "vscode")
	if _, err := os.Stat(filepath.Join(editor, "node_modules")); err != nil {
		unavailable(t, "VS Code's server is not installed: testdata/bench/clients/README.md says how")
	}
	d, k := opened(t, nil), furnish(t)
	replaytest.Lay(t, k.home, map[string]string{"vs/data/User/mcp.json": `{"servers":{"codehand":{"type":"http","url":"` + d.s.url + `/mcp"}}}`})
	_, port, err := net.SplitHostPort(replaytest.Reserved(t))
	must(t, err)
	cmd := exec.Command(filepath.Join(modules, "node24", "bin", "node"), filepath.Join(editor, "out", "server-main.js"), "--host", "127.0.0.1",
		"--port", port, "--without-connection-token", "--accept-server-license-terms", "--telemetry-level", "off", "--server-data-dir", filepath.Join(k.home, "vs"))
	cmd.Dir, cmd.Env = k.home, k.env
	page := startDaemon(t, cmd)
	conversed(t, chromiumBy(t, "vscode.mjs", "--editor", page.url, "--server", d.s.url, "--password", d.password), func(line string) (string, bool) {
		switch line {
		case "RESTART":
			d.again()
		case "REVOKE":
			d.revokeAll()
		default:
			return "", false
		}
		return "go on", true
	})
}

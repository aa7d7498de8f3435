package blackbox

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"codehand/server/replaytest"
)

// TestInspectorSignsIn: the Inspector's web page in Chromium signs in on our pages, lists the tools and calls one, goes on
// after a kill of the server without another sign-in, and leads to our pages again once the grant is revoked.
func TestInspectorSignsIn(t *testing.T) {
	t.Parallel()
	long(t)
	node, launcher := inspector(t)
	d, k := opened(t, nil), furnish(t)
	replaytest.Lay(t, d.work, map[string]string{"kept.txt": "x"})
	port := func() string {
		_, p, err := net.SplitHostPort(replaytest.Reserved(t))
		must(t, err)
		return p
	}
	web := filepath.Join(filepath.Dir(launcher), "..", "..", "web", "build", "index.js")
	cmd := exec.Command(node, web, "--transport", "http", "--server-url", d.s.url+"/mcp")
	cmd.Dir = k.home
	cmd.Env = append(k.env, "CLIENT_PORT="+port(), "MCP_SANDBOX_PORT="+port(), "MCP_AUTO_OPEN_ENABLED=false",
		"MCP_INSPECTOR_API_TOKEN=known-to-the-test", "MCP_INSPECTOR_SECRET_STORE=memory")
	page := startDaemon(t, cmd).url + "/?MCP_INSPECTOR_API_TOKEN=known-to-the-test"
	conversed(t, chromiumBy(t, "inspector.mjs", "--inspector", page, "--password", d.password), func(line string) (string, bool) {
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

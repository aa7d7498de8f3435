package blackbox

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// chromiumBy makes a command that drives Chromium by a script of .ci/conformance/browser.
func chromiumBy(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	node, _ := inspector(t)
	program, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	if err != nil {
		unavailable(t, "Chromium is not installed: apt-get install chromium")
	}
	path, err := filepath.Abs(filepath.Join("../../.ci/conformance/browser", script))
	must(t, err)
	cmd := exec.Command(node, append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), "CHROMIUM="+program, "TMPDIR="+leaktest.Dir(t))
	return cmd
}

// TestPagesInChromium: the pages of sign-in, on a phone and a desk, light and dark, by keyboard alone, without script,
// with a passkey, in a frame; axe finds nothing to mend. Pictures go to $CODEHAND_PICTURES.
func TestPagesInChromium(t *testing.T) {
	t.Parallel()
	d := opened(t, nil)
	local := strings.Replace(d.s.url, "127.0.0.1", "localhost", 1) // an address has no passkeys
	a := d.register("http://127.0.0.1:33419/callback")
	a.resource = local + "/mcp"
	args := []string{"--authorize", strings.Replace(a.authorizeURL(a.wish()), d.s.url, local, 1), "--password", d.password, "--verifier", a.verifier}
	if dir := os.Getenv("CODEHAND_PICTURES"); dir != "" {
		args = append(args, "--out", dir)
	}
	conversed(t, chromiumBy(t, "pages.mjs", args...), func(string) (string, bool) { return "", false })
}

package blackbox

import (
	"testing"

	"codehand/server/replaytest"
)

// TestCardsInChromium: the official host of MCP Apps draws results with our page, and its buttons take changes back, stop
// jobs and approve plans. A client without the extension is told nothing of it.
func TestCardsInChromium(t *testing.T) {
	t.Parallel()
	long(t)
	work := t.TempDir()
	cmd := chromiumBy(t, "cards.mjs", "--command", replaytest.Program(t), "--work", work)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+t.TempDir(), "CODEHAND_PERMISSIONS_MODE=acceptEdits")
	conversed(t, cmd, func(string) (string, bool) { return "", false })
}

package blackbox

import (
	"os"
	"testing"

	"codehand/filestate/leaktest"
)

// swapperMark makes the test binary exchange the names that it has; see TestMain.
const swapperMark = "CODEHAND_TEST_SWAPPER"

// TestMain also is the entrance of the other programs that tests work against.
func TestMain(m *testing.M) {
	if path := os.Getenv(editorMark); path != "" {
		os.Exit(runEditor(path))
	}
	if names := os.Getenv(swapperMark); names != "" {
		os.Exit(runSwapper(names))
	}
	leaktest.Main(m)
}

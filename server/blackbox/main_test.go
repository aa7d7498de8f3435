package blackbox

import (
	"flag"
	"os"
	"runtime"
	"strconv"
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
	if os.Getenv(proxyMark) != "" {
		os.Exit(runProxy())
	}
	if more := os.Getenv(mountMark); more != "" {
		os.Exit(runMounted(more))
	}
	// Most of these tests wait for programs, some for seconds. Go runs as many at a time as there are processors, so
	// on two they took 197 s, and 104 s with this. -parallel on the command line comes later and wins.
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	leaktest.Main(m)
}

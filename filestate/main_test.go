package filestate_test

import (
	"flag"
	"os"
	"testing"

	"codehand/filestate/leaktest"
)

// seed repeats the random tests of an earlier run.
var seed = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

// TestMain also is the entrance of the child processes that some tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childMark {
		os.Exit(child(os.Args[2:]))
	}
	leaktest.Main(m)
}

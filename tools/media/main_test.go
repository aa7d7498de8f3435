package media

import (
	"os"
	"testing"

	"codehand/filestate/leaktest"
)

// memoryOf names a file for TestMemoryChild.
const memoryOf = "CODEHAND_TEST_MEMORY_OF"

func TestMain(m *testing.M) {
	if os.Getenv(memoryOf) != "" || os.Getenv(workdirIn) != "" { // a child that is measured or killed; its parent is guarded
		os.Exit(m.Run())
	}
	leaktest.Main(m)
}

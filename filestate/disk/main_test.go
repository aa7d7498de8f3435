package disk_test

import (
	"runtime/debug"
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(-1) // or the collector would close files that a test forgot
	leaktest.Main(m)
}

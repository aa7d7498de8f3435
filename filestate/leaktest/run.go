package leaktest

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// RunID names the run of `go test` that this process belongs to: all packages of one run have the same. unique: no
// earlier run on this machine had it; where the system does not say when a process started, one may have.
func RunID() (id string, unique bool) {
	parent := os.Getppid()
	began, unique := startOf(parent)
	return strconv.Itoa(parent) + "-" + strconv.FormatUint(began, 10), unique
}

// keptName is the directory of Kept in the run directory.
const keptName = "kept"

// Kept is a directory for what all tests of a process share. It goes with the process and counts as no leak.
func Kept() (string, error) {
	dir := filepath.Join(os.Getenv(runMark), keptName)
	if os.Getenv(runMark) == "" {
		return os.MkdirTemp("", "codehand-test")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// keptOpen are the names of files that stay open.
var keptOpen sync.Map

// KeepOpen says that the file of this name stays open for as long as the process lives, so it is no leak.
func KeepOpen(name string) { keptOpen.Store(name, true) }

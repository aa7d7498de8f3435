//go:build !linux

package leaktest

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// A process is one that was announced: this system has no table that can be read without other programs.
type process struct{ pid int }

// startOf is not known here.
func startOf(int) (uint64, bool) { return 0, false }

// alive says whether a process runs, as far as the system tells: the reaper cannot wait for what it did not start.
func alive(pid int, _ uint64) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil // Windows finds none that has ended
}

func commandOf(pid int) string { return "process " + strconv.Itoa(pid) }

// ofRun returns the processes that were announced, as long as they live. Of other ones nothing is known.
func ofRun(_ int, _ string, _ uint64, announced []child, _ int) (list []process) {
	for _, c := range announced {
		if alive(c.pid, 0) {
			list = append(list, process{c.pid})
		}
	}
	return list
}

//go:build !unix

package leaktest

import (
	"os"
	"os/exec"
)

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// ignoreSignals does nothing on systems without signals.
func ignoreSignals() {}

// hearInterrupts has nothing to do: nothing is inherited.
func hearInterrupts() {}

// kill ends processes at once.
func kill(list []process) {
	for _, p := range list {
		if found, err := os.FindProcess(p.pid); err == nil {
			_ = found.Kill()
		}
	}
}

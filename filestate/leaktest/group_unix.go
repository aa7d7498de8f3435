//go:build unix

package leaktest

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// ownGroup makes a command lead a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ignoreSignals lets the reaper live until its pipe closes, whatever a terminal sends.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

// kill ends processes at once.
func kill(list []process) {
	for _, p := range list {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

//go:build unix

package leaktest

import (
	"os"
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

// hearInterrupts gives the programs that tests start the default for Ctrl-C. A shell lets its background jobs ignore
// it, all that they start would inherit that, and a test that interrupts a program would wait for ever.
func hearInterrupts() {
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
}

// kill ends processes at once.
func kill(list []process) {
	for _, p := range list {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

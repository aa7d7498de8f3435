//go:build unix

package shell

import (
	"os"
	"syscall"
)

func signalOf(p *os.ProcessState) syscall.Signal { return p.Sys().(syscall.WaitStatus).Signal() }

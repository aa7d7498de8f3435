//go:build unix

package main

import (
	"io"
	"os"
	"runtime"
	"syscall"
	"time"
)

// claimStdin returns standard input as a file that the runtime's poller waits for, if it is a pipe or a socket: a read
// then parks a goroutine instead of a thread (BenchmarkStdioRoundTrip). restore makes the pipe blocking again, because
// other processes that share it do not expect EAGAIN.
func claimStdin(in io.Reader) (r io.Reader, restore func()) {
	as := func() {}
	f, ok := in.(*os.File)
	if !ok || f != os.Stdin { // f.Fd() would make it wait again
		return in, as
	}
	if f.SetReadDeadline(time.Time{}) == nil {
		return in, as // it came so, and the poller has it already
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return in, as
	}
	for _, out := range []*os.File{os.Stdout, os.Stderr} {
		if other, err := out.Stat(); err == nil && os.SameFile(info, other) {
			return in, as // one socket for all: its writes would not wait either
		}
	}
	if err := syscall.SetNonblock(0, true); err != nil {
		return in, as
	}
	polled := os.NewFile(0, "stdin")
	return polled, func() {
		_ = syscall.SetNonblock(0, false) // the process ends anyway
		runtime.KeepAlive(polled)         // whose finalizer would close descriptor 0
	}
}

//go:build unix && !linux

package metrics

import (
	"os"
	"syscall"
)

// ask adds processor time, files and limits. Resident and virtual memory take a call of C.
func (p process) ask() {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		p["process_cpu_seconds_total"] = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	if dir, err := os.Open("/dev/fd"); err == nil {
		defer func() { _ = dir.Close() }() // only read
		if names, err := dir.Readdirnames(0); err == nil {
			p["process_open_fds"] = float64(len(names) - 1) // the directory itself
		}
	}
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		p["process_max_fds"] = float64(l.Cur)
	}
	if syscall.Getrlimit(syscall.RLIMIT_AS, &l) == nil {
		p["process_virtual_memory_max_bytes"] = float64(l.Cur)
	}
}

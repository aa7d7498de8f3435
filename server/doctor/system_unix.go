//go:build unix

package doctor

import "syscall"

// openFiles is the limit of this process. Go raises it to the hard limit when the program starts.
func openFiles() (most uint64, ok bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true //nolint:unconvert // signed on some systems
}

package changes

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// birth says when a file was made, in nanoseconds since 1970; not ok: the file system does not know.
func birth(f *os.File, _ fs.FileInfo) (at int64, ok bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	var s unix.Statx_t
	ctlErr := raw.Control(func(fd uintptr) {
		err = unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &s)
	})
	if ctlErr != nil || err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return 0, false
	}
	return s.Btime.Sec*1e9 + int64(s.Btime.Nsec), true
}

// clock is the time as file systems take it for a new file, in nanoseconds since 1970: a tick behind the clock.
func clock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Now().UnixNano()
	}
	return now.Nano()
}

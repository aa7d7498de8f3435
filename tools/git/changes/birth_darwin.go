package changes

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// birth says when a file was made, in nanoseconds since 1970; not ok: the file system does not know.
func birth(_ *os.File, info fs.FileInfo) (at int64, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return s.Birthtimespec.Nano(), true
}

// clock is the time as file systems take it for a new file, in nanoseconds since 1970.
func clock() int64 { return time.Now().UnixNano() }

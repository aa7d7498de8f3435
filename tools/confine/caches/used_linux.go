package caches

import (
	"io/fs"
	"syscall"
	"time"
)

// usedAt is when a file was last read or changed; most file systems note a reading once a day.
func usedAt(info fs.FileInfo) time.Time {
	used := info.ModTime()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if read := time.Unix(st.Atim.Unix()); read.After(used) {
			return read
		}
	}
	return used
}

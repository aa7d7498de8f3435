//go:build unix

package search

import (
	"os"
	"syscall"
)

// sameOwner reports whether two files belong to the same user.
func sameOwner(a, b string) bool {
	owner := func(path string) (uint32, bool) {
		info, err := os.Lstat(path)
		if err != nil {
			return 0, false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, false
		}
		return st.Uid, true
	}
	x, okX := owner(a)
	y, okY := owner(b)
	return okX && okY && x == y
}

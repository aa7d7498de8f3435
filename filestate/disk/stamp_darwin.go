package disk

import (
	"io/fs"
	"syscall"
)

// identify fills in what only the system knows. It reports false where that is not enough to tell
// files and changes apart.
func identify(info fs.FileInfo, s *Stamp) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	s.Dev, s.Ino, s.Nlink = uint64(st.Dev), st.Ino, uint64(st.Nlink)
	s.Ctime = st.Ctimespec.Nano()
	return true
}

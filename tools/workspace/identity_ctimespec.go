//go:build darwin || freebsd || netbsd

package workspace

import (
	"os"
	"syscall"
)

// maxLinkEntries is how many entries of the roots are looked at for hard links; some 0.5 s.
const maxLinkEntries = 200_000

// identify says which file info, of name in dir, is about. ok is false if that is unknown.
func identify(_ *os.Root, _ string, info os.FileInfo) (file linked, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return linked{}, false
	}
	return linked{
		id:    fileID{uint64(st.Dev), uint64(st.Ino)},         //nolint:unconvert // the types differ between systems
		links: uint64(st.Nlink), changed: st.Ctimespec.Nano(), //nolint:unconvert // likewise
	}, true
}

package workspace

import (
	"os"
	"syscall"
)

// maxLinkEntries is how many entries of the roots are looked at for hard links. It is smaller than elsewhere, because
// each file has to be opened.
const maxLinkEntries = 20_000

// identify says which file name in dir is. ok is false if that is unknown.
func identify(dir *os.Root, name string, _ os.FileInfo) (file linked, ok bool) {
	f, err := dir.Open(name)
	if err != nil {
		return linked{}, false
	}
	defer f.Close()
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return linked{}, false
	}
	return linked{
		id:    fileID{uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)},
		links: uint64(info.NumberOfLinks),
	}, true
}

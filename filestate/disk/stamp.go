package disk

import (
	"io/fs"
	"os"
	"time"
)

// settleTime is how old the times of a file must be before equal times prove equal content. Coarse
// file systems (FAT: 2 s) and clocks (1-4 ms before Linux 6.13) give two writes the same time.
const settleTime = 2 * time.Second

// A Stamp tells whether a file may have changed. It is only ever compared for equality, never for
// newer.
type Stamp struct {
	Dev, Ino, Nlink uint64
	Size            int64
	Mtime, Ctime    int64 // nanoseconds since 1970
	Racy            bool  // the times were less than 2 s old when noted: an equal stamp proves nothing
}

// StampOf notes the stamp of a file as of now.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), Mtime: info.ModTime().UnixNano()}
	known := identify(info, &s)
	// A time in the future is racy, too: the next change may set the same one.
	s.Racy = !known || time.Now().UnixNano()-max(s.Mtime, s.Ctime) < int64(settleTime)
	return s
}

// Same says that nothing which the stamps show has changed.
func (s Stamp) Same(t Stamp) bool {
	s.Racy, t.Racy = false, false
	return s == t
}

// Proves says that the file whose stamp is now t still has the content that it had when s was noted.
func (s Stamp) Proves(t Stamp) bool { return !s.Racy && s.Same(t) }

// ProvesDisplaced is Proves for a file that was renamed since s was noted, which sets its ctime.
func (s Stamp) ProvesDisplaced(t Stamp) bool {
	s.Ctime = t.Ctime
	return s.Ino != 0 && s.Proves(t)
}

// Restamp notes the stamp of an open file.
func Restamp(f *os.File) (Stamp, error) {
	info, err := f.Stat()
	if err != nil {
		return Stamp{}, err
	}
	return StampOf(info), nil
}

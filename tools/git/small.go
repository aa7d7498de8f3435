package git

import (
	"context"
	"os"
	"path/filepath"

	"codehand/filestate/disk"
)

// ReadSmall returns the content of a regular file, to which path may lead through links. It never waits for a FIFO or a
// device. The error is that of the system, disk.ErrTooLarge if the file has more than most bytes, or another of disk's.
func ReadSmall(path string, most int64) ([]byte, error) {
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(filepath.Dir(at))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	return ReadSmallIn(dir, filepath.Base(at), most)
}

// ReadSmallIn is ReadSmall of a name below dir. It follows no link at the end of name, and none that leads out of dir.
func ReadSmallIn(dir *os.Root, name string, most int64) ([]byte, error) {
	f, stamp, err := disk.OpenRegular(dir, name, filepath.Join(dir.Name(), name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if stamp.Size > most {
		return nil, disk.ErrTooLarge
	}
	return disk.ReadAll(context.Background(), f, stamp.Size)
}

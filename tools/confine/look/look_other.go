//go:build !linux

package look

import "io/fs"

// No profile here hides single files, so nothing is kept: every directory is read each time.
func StampOf(fs.FileInfo) (at Stamp, known bool) { return Stamp{}, false }

// Mine says that nobody is known to own a file.
func Mine(fs.FileInfo) bool { return false }

func shut(string) error { return nil }

// Shut says that every directory can be looked into: no profile here keeps single files.
func Shut(string) bool { return false }

// A File is one on the disk, whatever its names.
type File struct{}

// FileOf returns which file that is, and whether it has other names. Here nothing needs it.
func FileOf(fs.FileInfo) (file File, several bool) { return File{}, false }

// Born is when a file was made. Here nothing needs it.
func Born(string) (nanoseconds int64) { return 0 }

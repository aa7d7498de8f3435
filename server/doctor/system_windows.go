package doctor

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

func networkKind(dir string) string {
	volume, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err == nil && windows.GetDriveType(volume) == windows.DRIVE_REMOTE {
		return "a network drive"
	}
	return ""
}

func freeSpace(dir string) (bytes int64, ok bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(free), true
}

// openFiles is not limited here.
func openFiles() (most uint64, ok bool) { return 0, false }

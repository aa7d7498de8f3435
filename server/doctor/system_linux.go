package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func networkKind(dir string) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if kind := mountOf(string(mounts), dir); slices.Contains(remoteKinds, kind) {
		return kind
	}
	return ""
}

func freeSpace(dir string) (bytes int64, ok bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true //nolint:unconvert // the types differ between architectures
}

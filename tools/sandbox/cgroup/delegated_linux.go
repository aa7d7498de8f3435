package cgroup

import "golang.org/x/sys/unix"

// delegated reports whether systemd marked dir as delegated. Older versions use the name that only root can read.
func delegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

//go:build !unix

package caches

import "os"

// locked opens a lock file. Nothing here tells whether another process has it, so nothing is removed for room.
func locked(path string, alone bool) (*os.File, error) {
	if alone {
		return nil, ErrInUse
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
}

//go:build !linux

package caches

import (
	"io/fs"
	"time"
)

// usedAt is when a file was last changed.
func usedAt(info fs.FileInfo) time.Time { return info.ModTime() }

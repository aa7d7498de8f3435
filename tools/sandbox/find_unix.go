//go:build !windows

package sandbox

import "io/fs"

// suffixes are what the name of a program may end with besides what was given.
var suffixes = []string{""}

func runnable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

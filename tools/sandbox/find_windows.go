package sandbox

import "io/fs"

// suffixes are what the name of a program may end with besides what was given.
var suffixes = []string{"", ".exe", ".cmd", ".bat"}

func runnable(fs.FileInfo) bool { return true }

//go:build unix && !linux

package sandbox

import "os"

// enter names dir by its path: these systems have no other way to start a child in an open directory. A directory
// that was replaced since it was opened is not noticed.
func enter(dir *os.File) string { return dir.Name() }

func closeOnExec() { closeEachOnExec() }

// Hide does nothing: these systems have no such switch for a single process.
func Hide() error { return nil }

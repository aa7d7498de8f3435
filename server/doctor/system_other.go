//go:build !linux && !darwin && !windows

package doctor

// networkKind is not known here.
func networkKind(string) string { return "" }

// freeSpace is not known here.
func freeSpace(string) (bytes int64, ok bool) { return 0, false }

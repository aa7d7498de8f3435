//go:build !linux

package probe

// Probes are none where the kernel offers nothing to prove.
func Probes() []Attempt { return nil }

//go:build !linux

package sandbox

func child(string) int { return 1 }

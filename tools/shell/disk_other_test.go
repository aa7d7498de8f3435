//go:build !linux

package shell

import "testing"

func usedBytes(*testing.T, string) int64 { return 0 }

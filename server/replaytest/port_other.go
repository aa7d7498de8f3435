//go:build !linux

package replaytest

import "testing"

// Reserved is any address. Elsewhere than on Linux a port that is let go cannot be kept from others.
func Reserved(*testing.T) string { return "127.0.0.1:0" }

//go:build !linux

package server

import "testing"

// reserved is any address. Elsewhere than on Linux a port that is let go cannot be kept from others.
func reserved(*testing.T) string { return "127.0.0.1:0" }

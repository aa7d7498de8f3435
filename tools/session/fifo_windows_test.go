package session_test

import "testing"

func fifo(t *testing.T, _ string) {
	t.Helper()
	t.Skip("this system has no FIFOs in directories")
}

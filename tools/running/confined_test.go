package running

import (
	"strings"
	"testing"

	"codehand/tools/confine"
	"codehand/tools/sandbox"
)

// A busy machine is no reason to give up, as a weak one is.
func TestUnavailableWords(t *testing.T) {
	t.Parallel()
	failed := sandbox.Failure{Level: sandbox.LevelFull, Probe: "start: out of time", Remedy: "Wait."}
	weak := unavailable(&confine.UnavailableError{Proven: 1, Needed: 3, Failed: &failed}).Error()
	if strings.Contains(weak, "Try again") || !strings.Contains(weak, "level 3") {
		t.Errorf("a weak machine: %s", weak)
	}
	failed.Passing = true
	busy := unavailable(&confine.UnavailableError{Proven: 1, Failed: &failed}).Error()
	if !strings.Contains(busy, "too busy") || !strings.Contains(busy, "Try again") || !strings.Contains(busy, "Wait.") {
		t.Errorf("a busy machine: %s", busy)
	}
}

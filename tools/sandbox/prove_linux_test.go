package sandbox

import (
	"context"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/probe"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := Probe(t.Context(), state)
	if r.Failed != nil {
		cannot(t, fmt.Errorf("%+v", *r.Failed))
	}
	t.Logf("%+v", r)
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("left in the state directory: %v, %v", left, err)
	}
}

func BenchmarkProbe(b *testing.B) {
	for b.Loop() {
		Probe(b.Context(), b.TempDir())
	}
}

// Levels that had failed in passing gave way to lower ones, at which commands then ran.
func TestPassingFailureLowersNothing(t *testing.T) {
	t.Parallel()
	busy, never := fmt.Errorf("start: %w", unix.EAGAIN), fmt.Errorf("start: %w", unix.EPERM)
	for name, c := range map[string]struct {
		full, kernel []error // of each attempt
		level        Level
		unknown      bool
	}{
		"once":               {full: []error{busy, nil}, level: LevelFull},
		"time":               {full: []error{context.DeadlineExceeded, context.DeadlineExceeded}, level: LevelLimits, unknown: true},
		"lasting":            {full: []error{never}, kernel: []error{nil}, level: LevelKernel},
		"lasting, then once": {full: []error{never}, kernel: []error{busy, nil}, level: LevelKernel},
		"lasting, then busy": {full: []error{never}, kernel: []error{busy, busy}, level: LevelLimits, unknown: true},
		"busy, then lasting": {full: []error{busy, never}, kernel: []error{nil}, level: LevelKernel},
	} {
		left := map[Level][]error{LevelFull: c.full, LevelKernel: c.kernel, LevelLimits: {nil}}
		r := proveDown(func(level Level) ([]probe.Attempt, error) {
			if len(left[level]) == 0 {
				t.Fatalf("%s: level %d was tried once more", name, level)
			}
			err := left[level][0]
			left[level] = left[level][1:]
			return nil, err
		})
		if r.Level != c.level || r.Unknown() != c.unknown || len(left[LevelFull])+len(left[LevelKernel]) > 0 {
			t.Errorf("%s: got %+v, want level %d, unknown %v; left %v", name, r, c.level, c.unknown, left)
		}
	}
}

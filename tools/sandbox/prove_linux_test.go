package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
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

// A state directory below /opt, which every command reads, made the machine prove level 1, with a remedy about its kernel.
func TestProbeWhereCommandsRead(t *testing.T) {
	t.Parallel()
	state, err := os.MkdirTemp("/opt", "codehand-test-") //nolint:usetesting // it has to be below /opt
	if err != nil {
		t.Skip("needs to write to /opt")
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) }) // it is this test's
	elsewhere, here := Probe(t.Context(), t.TempDir()), Probe(t.Context(), state)
	switch {
	case elsewhere.Level == LevelFull && here.Level != LevelFull:
		t.Errorf("below /opt: %+v, %+v", here, here.Failed)
	case here.Level < LevelKernel && !here.Unknown() && !strings.Contains(here.Failed.Remedy, "lies in /opt"):
		t.Errorf("remedy: %s", here.Failed.Remedy)
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

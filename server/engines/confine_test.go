package engines

import (
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/sandbox"
)

// A machine that stays too busy was probed anew for every question, each for many seconds.
func TestProverKeepsBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		r := sandbox.Report{Level: sandbox.LevelLimits, Failed: &sandbox.Failure{Passing: true}}
		p := prover{prove: func() sandbox.Report { probes++; return r }}
		for range 3 {
			if got := p.report(); !got.Unknown() {
				t.Errorf("got %+v", got)
			}
		}
		if _, known := p.known(); known || probes != 1 {
			t.Errorf("%d probes, want 1; known for good: %v", probes, known)
		}
		time.Sleep(busyFor)
		r = sandbox.Report{Level: sandbox.LevelFull}
		for range 3 {
			if got := p.report(); got.Level != sandbox.LevelFull {
				t.Errorf("got %+v", got)
			}
		}
		if _, known := p.known(); !known || probes != 2 {
			t.Errorf("%d probes, want 2; known for good: %v", probes, known)
		}
	})
}

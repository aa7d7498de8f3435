package engines

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
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
		p := newProver(slog.New(slog.DiscardHandler))
		defer p.close()
		p.prove = func(context.Context) sandbox.Report { probes++; return r }
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

// A first command waited for the probes at each start, although nothing had changed since the last one.
func TestProverProvesAgain(t *testing.T) {
	t.Parallel()
	full := sandbox.Report{Level: sandbox.LevelFull, Gaps: []string{"memory"}}
	less := sandbox.Report{Level: sandbox.LevelKernel, Failed: &sandbox.Failure{Probe: "start in namespaces"}}
	busy := sandbox.Report{Level: sandbox.LevelLimits, Failed: &sandbox.Failure{Passing: true}}
	for name, c := range map[string]struct {
		recalled, proven, then sandbox.Report
		lowered, keeps         bool
	}{
		"the same": {full, full, full, false, false},
		"less":     {full, less, less, true, true},
		"more":     {less, full, full, false, true},
		"busy":     {full, busy, full, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			var kept []sandbox.Report
			p := newProver(slog.New(slog.NewTextHandler(&log, nil)))
			p.recall = func() (sandbox.Report, error) { return c.recalled, nil }
			p.keep = func(r sandbox.Report) error { kept = append(kept, r); return nil }
			goOn := make(chan struct{})
			p.prove = func(context.Context) sandbox.Report { <-goOn; return c.proven }
			if got := p.report(); !got.Same(c.recalled) {
				t.Errorf("%s: at first %+v", name, got)
			}
			close(goOn)
			synctest.Wait()
			got := p.report()
			if !got.Same(c.then) || got.Lowered != c.lowered {
				t.Errorf("%s: then %+v", name, got)
			}
			if c.keeps != (len(kept) == 1 && kept[0].Same(c.then)) || c.keeps != strings.Contains(log.String(), "WARN") {
				t.Errorf("%s: kept %+v, logged %q", name, kept, log.String())
			}
			p.close()
		})
	}
}

// A model was told how far its commands are confined only from the second connection on: what an earlier process proved
// says it, and nothing is probed for that.
func TestProverExpects(t *testing.T) {
	t.Parallel()
	full := sandbox.Report{Level: sandbox.LevelFull}
	for name, c := range map[string]struct {
		recall func() (sandbox.Report, error)
		known  bool
	}{
		"recalled": {func() (sandbox.Report, error) { return full, nil }, true},
		"changed":  {func() (sandbox.Report, error) { return full, errors.New("another kernel") }, false},
		"none":     {nil, false},
	} {
		p := newProver(slog.New(slog.DiscardHandler))
		p.recall = c.recall
		p.prove = func(context.Context) sandbox.Report { t.Errorf("%s: probed", name); return full }
		for range 2 {
			if r, known := p.expected(); known != c.known || known && !r.Same(full) {
				t.Errorf("%s: %+v, known: %v", name, r, known)
			}
		}
		if _, known := p.known(); known {
			t.Errorf("%s: what was recalled counts for commands", name)
		}
		p.close()
	}
}

// Without a record that counts the machine is probed before anything runs, and what shows is kept.
func TestProverKeeps(t *testing.T) {
	t.Parallel()
	full := sandbox.Report{Level: sandbox.LevelFull}
	var kept []sandbox.Report
	p := newProver(slog.New(slog.DiscardHandler))
	p.recall = func() (sandbox.Report, error) { return sandbox.Report{}, errors.New("another program") }
	p.prove = func(context.Context) sandbox.Report { return full }
	p.keep = func(r sandbox.Report) error { kept = append(kept, r); return errors.New("no room") }
	if got := p.report(); !got.Same(full) || len(kept) != 1 || !kept[0].Same(full) {
		t.Errorf("got %+v, kept %+v", got, kept)
	}
	p.close()
}

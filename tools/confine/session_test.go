package confine

import (
	"errors"
	"testing"

	"codehand/tools/sandbox"
)

// A command ran at the lowest level if the machine was too busy to prove a higher one.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	o := Options{
		Proven: func() sandbox.Report {
			return sandbox.Report{Level: sandbox.LevelLimits, Failed: &sandbox.Failure{Probe: "start", Passing: true}}
		},
		Needed: func() sandbox.Level { return sandbox.LevelNone },
	}
	s := &Session{Confiner: New(o, func() []string { return nil })}
	_, err := s.Command(Use{ReadOnly: true})
	if e, is := errors.AsType[*UnavailableError](err); !is || !e.Failed.Passing {
		t.Errorf("got %v", err)
	}
	if got := o.Level(); got != sandbox.LevelFull {
		t.Errorf("programs of the server run at level %d", got)
	}
}

// A job runs beside what a person does: what changes meanwhile is not taken for its work.
func TestBackgroundIsUnwatched(t *testing.T) {
	t.Parallel()
	c := New(Options{}, func() []string { return nil })
	for _, background := range []bool{false, true} {
		if p, _, _, _ := c.profile(&Use{Background: background}); p.Unwatched != background {
			t.Errorf("background %v: unwatched is %v", background, p.Unwatched)
		}
	}
}

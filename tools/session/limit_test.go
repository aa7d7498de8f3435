package session

import (
	"errors"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// TestNarrow: what a person set for a session, and for those whose sub-agent it is, is added to the rules, whose own stay;
// a rule that is not understood, and a Store that does not answer, leave nothing that may run.
func TestNarrow(t *testing.T) {
	t.Parallel()
	base, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Edit(a)"}}})
	if err != nil {
		t.Fatal(err)
	}
	cell := func(rules ...SetRule) Cell[Limit] {
		c := NewCell[Limit](newDrawer(), "cell.limit")
		_, err := c.Change(t.Context(), func(l Limit) (Limit, error) { l.Rules = rules; return l, nil })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := &State{Rules: base.At([]string{"/w"}, "/w")}
	s.Limit = cell(SetRule{Rule: "Edit(b)"}, SetRule{Rule: "Edit(c)", Asks: true})
	s.Over = []Cell[Limit]{cell(SetRule{Rule: "Edit(d)"}), {}}
	if err := s.Narrow(t.Context(), Snapshot{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]permission.Verdict{"/w/a": permission.Deny, "/w/b": permission.Deny, "/w/c": permission.Ask,
		"/w/d": permission.Deny, "/w/e": permission.Allow} {
		if got := s.Rules.Ruled(path, true); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if got := base.At([]string{"/w"}, "/w").Ruled("/w/b", true); got != permission.Allow {
		t.Errorf("the settings' own rules changed: %v", got)
	}
	s.Limit = cell(SetRule{Rule: "Edit("})
	if err := s.Narrow(t.Context(), Snapshot{}); err == nil || !strings.Contains(err.Error(), `"Edit("`) {
		t.Errorf("a rule that is not understood: %v", err)
	}
	down := newDrawer()
	down.fault = errors.New("down")
	s.Limit, s.Over = cell(), []Cell[Limit]{NewCell[Limit](down, "cell.limit")}
	if err := s.Narrow(t.Context(), Snapshot{}); !errors.Is(err, down.fault) {
		t.Errorf("a Store that does not answer: %v", err)
	}
}

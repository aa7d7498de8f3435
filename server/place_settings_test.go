package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/replaytest"
	"codehand/tools/permission"
)

// An additional directory is touched like a root, and what the operator fixed for the machine holds for every place.
func TestPlaceFollowsSettings(t *testing.T) {
	work, more, outside := replaytest.RealDir(t), replaytest.RealDir(t), replaytest.RealDir(t)
	must(t, os.WriteFile(filepath.Join(more, "a.txt"), nil, 0o600))
	cfg := testSettings(t, work, filepath.Join(replaytest.RealDir(t), "state"), map[string]string{"permissions.additional_dirs": more, "permissions.mode": "acceptEdits"})
	cfg.Permissions.Highest = permission.Default // as Load does when the administrator fixed the mode
	s, err := New(Options{Config: cfg})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })

	local := s.local
	if !local.space.Inside(filepath.Join(more, "a.txt")) || local.space.Inside(filepath.Join(outside, "a.txt")) {
		t.Errorf("roots %q, want %s among them", local.space.Roots(), more)
	}
	if local.space.Cwd() != work {
		t.Errorf("relative paths start in %s, want %s", local.space.Cwd(), work)
	}
	if local.start != permission.Default || local.highest != permission.Default {
		t.Errorf("mode %v, at most %v; want what is fixed", local.start, local.highest)
	}
}

// A rule of a token names whose it is; it allows nothing where the administrator alone makes such rules.
func TestRulesOfTokens(t *testing.T) {
	work := replaytest.RealDir(t)
	cfg := testSettings(t, work, filepath.Join(replaytest.RealDir(t), "state"), nil)
	cfg.Permissions.ManagedRulesOnly = true
	s, err := New(Options{Config: cfg})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	ps := newPlaces(s)
	who := auth.Principal{ID: "bo", Slug: "bo", Roots: []string{work}, Mode: "auto", MaxMode: "acceptEdits", Deny: []string{"Read(secret)"}, Allow: []string{"Edit(x)"}}
	p, err := ps.make(who)
	must(t, err)
	t.Cleanup(func() { _ = p.space.Close() })
	d := p.rules.Decide(permission.Request{
		Tool: "read_file", Family: permission.FamilyRead, Cwd: work, ReadOnly: true, Own: permission.Allow,
		Targets: []permission.Target{{Kind: permission.Path, Value: filepath.Join(work, "secret"), Inside: true}},
	})
	if d.Verdict != permission.Deny || d.Origin != "principal bo" {
		t.Errorf("%+v", d)
	}
	if !p.prefs.ManagedRules {
		t.Error("skills may lend rules")
	}
	d = p.rules.Decide(permission.Request{
		Tool: "edit_file", Aliases: []string{"Edit"}, Family: permission.FamilyEdit, Cwd: work, Own: permission.Allow, Mode: p.start,
		Targets: []permission.Target{{Kind: permission.Path, Value: filepath.Join(work, "x"), Real: filepath.Join(work, "x"), Inside: true}},
	})
	if d.Verdict != permission.Ask || strings.Contains(d.Rule, "Edit") {
		t.Errorf("a token's rule allows, where the administrator alone may make such rules: %+v", d)
	}
	if p.start != permission.Default {
		t.Errorf("auto without a classifier starts as %v", p.start)
	}
}

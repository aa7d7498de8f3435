package tenants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/tools/permission"
)

// An additional directory is touched like a root, and what the operator fixed for the machine holds for every tenant.
func TestTenantFollowsSettings(t *testing.T) {
	work, more, outside := leaktest.Dir(t), leaktest.Dir(t), leaktest.Dir(t)
	must(t, os.WriteFile(filepath.Join(more, "a.txt"), nil, 0o600))
	m := maker(t, work, map[string]string{"permissions.additional_dirs": more, "permissions.mode": "acceptEdits"})
	m.Config.Permissions.Highest = permission.Default // as Load does when the administrator fixed the mode
	local := localOf(t, m)
	if !local.Space.Inside(filepath.Join(more, "a.txt")) || local.Space.Inside(filepath.Join(outside, "a.txt")) {
		t.Errorf("roots %q, want %s among them", local.Space.Roots(), more)
	}
	if local.Space.Cwd() != work {
		t.Errorf("relative paths start in %s, want %s", local.Space.Cwd(), work)
	}
	if local.Start != permission.Default || local.Highest != permission.Default {
		t.Errorf("mode %v, at most %v; want what is fixed", local.Start, local.Highest)
	}
}

// A rule of a token names whose it is; it allows nothing where the administrator alone makes such rules.
func TestRulesOfTokens(t *testing.T) {
	work := leaktest.Dir(t)
	m := maker(t, work, nil)
	m.Config.Permissions.ManagedRulesOnly = true
	who := auth.Principal{ID: "bo", Slug: "bo", Roots: []string{work}, Mode: "auto", MaxMode: "acceptEdits", Deny: []string{"Read(secret)"}, Allow: []string{"Edit(x)"}}
	p, err := NewRegistry(m).make(who)
	must(t, err)
	t.Cleanup(func() { _ = p.Space.Close() })
	d := p.Rules.Decide(permission.Request{
		Tool: "read_file", Family: permission.FamilyRead, Cwd: work, ReadOnly: true, Own: permission.Allow,
		Targets: []permission.Target{{Kind: permission.Path, Value: filepath.Join(work, "secret"), Inside: true}},
	})
	if d.Verdict != permission.Deny || d.Origin != "principal bo" {
		t.Errorf("%+v", d)
	}
	if !p.Prefs.ManagedRules {
		t.Error("skills may lend rules")
	}
	d = p.Rules.Decide(permission.Request{
		Tool: "edit_file", Aliases: []string{"Edit"}, Family: permission.FamilyEdit, Cwd: work, Own: permission.Allow, Mode: p.Start,
		Targets: []permission.Target{{Kind: permission.Path, Value: filepath.Join(work, "x"), Real: filepath.Join(work, "x"), Inside: true}},
	})
	if d.Verdict != permission.Ask || strings.Contains(d.Rule, "Edit") {
		t.Errorf("a token's rule allows, where the administrator alone may make such rules: %+v", d)
	}
	if p.Start != permission.Default {
		t.Errorf("auto without a classifier starts as %v", p.Start)
	}
}

package auth

import (
	"slices"
	"strings"
	"testing"

	"codehand/server/auth/limits"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	onUnix(t)
	builtin := func(change func(*Principal)) Principal {
		p := Principal{
			ID: "Ann", Slug: Slug("Ann"), Roots: []string{"/ws/" + Slug("Ann")}, Mode: "acceptEdits", MaxMode: "acceptEdits", Profile: "default",
			Scopes: Read | Write | Shell | Web, Quota: limits.Resolve(nil),
		}
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		token, named, general Values
		want                  func(*Principal)
		disabled              bool
	}{
		"nothing is said": {want: func(*Principal) {}},
		"key by key": {
			token:   Values{Mode: new("plan"), Quota: map[string]string{"burst": "1"}},
			named:   Values{Mode: new("default"), Profile: new("readonly"), Quota: map[string]string{"burst": "2", "streams": "2"}},
			general: Values{Profile: new("default"), Seed: new("/seed"), Quota: map[string]string{"burst": "3", "streams": "3", "sessions": "3"}},
			want: func(p *Principal) {
				p.Mode, p.Profile, p.Seed = "plan", "readonly", "/seed"
				p.Quota.Burst, p.Quota.Streams, p.Quota.Sessions = 1, 2, 3
			},
		},
		"roots of the most specific source": {
			token: Values{Roots: []string{"/t/{principal}", "/shared"}}, named: Values{Roots: []string{"/n"}},
			want: func(p *Principal) { p.Roots = []string{"/t/" + p.Slug, "/shared"} },
		},
		"an empty list of roots says nothing": {
			named: Values{Roots: []string{}}, general: Values{Roots: []string{"/g"}},
			want: func(p *Principal) { p.Roots = []string{"/g"} },
		},
		"allow: one source; deny: all": {
			token: Values{Deny: []string{"d1", "d2"}}, named: Values{Allow: []string{"a1"}, Deny: []string{"d2", "d3"}}, general: Values{Allow: []string{"a2"}, Deny: []string{"d4"}},
			want: func(p *Principal) { p.Allow, p.Deny = []string{"a1"}, []string{"d1", "d2", "d3", "d4"} },
		},
		"an empty allow takes away": {
			token: Values{Allow: []string{}}, named: Values{Allow: []string{"a1"}}, want: func(*Principal) {},
		},
		"scopes": {
			token: Values{Scopes: []string{"mcp:write"}}, general: Values{Scopes: []string{"mcp:all"}},
			want: func(p *Principal) { p.Scopes = Read | Write },
		},
		"no scopes": {
			token: Values{Scopes: []string{}}, general: Values{Scopes: []string{"mcp:all"}}, want: func(p *Principal) { p.Scopes = 0 },
		},
		"admin by key": {
			general: Values{Admin: new(true)}, want: func(p *Principal) { p.Admin, p.Scopes = true, p.Scopes|AdminConsole },
		},
		"admin by scope": {
			named: Values{Admin: new(false), Scopes: []string{"mcp:admin"}}, want: func(p *Principal) { p.Admin, p.Scopes = true, AdminConsole },
		},
		"admin taken away": {token: Values{Admin: new(false)}, general: Values{Admin: new(true)}, want: func(*Principal) {}},
		"max_mode bounds": {
			token: Values{Mode: new("bypassPermissions")}, general: Values{MaxMode: new("auto")},
			want: func(p *Principal) { p.Mode, p.MaxMode = "auto", "auto" },
		},
		"max_mode bounds the default": {
			general: Values{MaxMode: new("dontAsk")}, want: func(p *Principal) { p.Mode, p.MaxMode = "dontAsk", "dontAsk" },
		},
		"equal rank is not bounded": {
			general: Values{Mode: new("default"), MaxMode: new("dontAsk")}, want: func(p *Principal) { p.Mode, p.MaxMode = "default", "dontAsk" },
		},
		"disabled":      {named: Values{Enabled: new(false)}, general: Values{Enabled: new(true)}, want: func(*Principal) {}, disabled: true},
		"enabled again": {named: Values{Enabled: new(true)}, general: Values{Enabled: new(false)}, want: func(*Principal) {}},
	} {
		got, enabled := Resolve("Ann", "/ws", c.token, c.named, c.general)
		want := builtin(c.want)
		if !got.sameRights(want) || got.Seed != want.Seed || got.Quota != want.Quota || enabled == c.disabled {
			t.Errorf("%s: got %+v (enabled: %v), want %+v", name, got, enabled, want)
		}
	}
	if p, _ := Resolve("ann", ""); p.Roots != nil {
		t.Errorf("without a directory of workspaces the roots are %q", p.Roots)
	}
	if p, _ := Resolve("ann", "/w/{x}"); !slices.Equal(p.Roots, []string{"/w/{x}/ann"}) {
		t.Errorf("the directory of workspaces is no template: %q", p.Roots)
	}
}

// Modes are bounded as their order says, whatever the pair.
func TestModesAreBounded(t *testing.T) {
	t.Parallel()
	order := []string{"plan", "dontAsk", "acceptEdits", "auto", "bypassPermissions"}
	for i, mode := range order {
		for j, most := range order {
			p, _ := Resolve("a", "", Values{Mode: &mode, MaxMode: &most})
			if want := order[min(i, j)]; p.Mode != want || p.MaxMode != most {
				t.Errorf("%s with at most %s: got %s, want %s", mode, most, p.Mode, want)
			}
		}
	}
}

func TestValuesCheck(t *testing.T) {
	t.Parallel()
	onUnix(t)
	for want, v := range map[string]Values{ // by the beginning of the error
		"roots: ":         {Roots: []string{"/ok", "rel"}},
		"seed ":           {Seed: new("rel")},
		"mode: ":          {Mode: new("Plan")},
		"max_mode: ":      {MaxMode: new("")},
		"profile: ":       {Profile: new("all")},
		"allow or deny: ": {Allow: []string{"ok", " "}},
		"scopes: ":        {Scopes: []string{"read"}},
		"quota burst: ":   {Quota: map[string]string{"burst": "x", "streams": "1"}},
		"unknown quota ":  {Quota: map[string]string{"bursts": "1"}},
	} {
		if err := v.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if err := (Values{Deny: []string{"a\xff"}}).Check(); err == nil {
		t.Error("a rule that is not UTF-8 is taken; JSON would change it")
	}
	if err := (Values{Seed: new(""), Roots: []string{}, Mode: new("auto"), Allow: []string{}, Quota: map[string]string{"job_life": "7d"}}).Check(); err != nil {
		t.Error(err)
	}
}

// Each right counts when what a token means is compared with what it meant.
func TestSameRights(t *testing.T) {
	t.Parallel()
	p := Principal{ID: "a", Slug: "a", Roots: []string{"/a"}, Mode: "plan", MaxMode: "plan", Profile: "default", Allow: []string{"x"}, Deny: []string{"y"}, Scopes: Read}
	for name, change := range map[string]func(*Principal){
		"ID": func(p *Principal) { p.ID = "b" }, "slug": func(p *Principal) { p.Slug = "b" }, "roots": func(p *Principal) { p.Roots = nil },
		"mode": func(p *Principal) { p.Mode = "auto" }, "max mode": func(p *Principal) { p.MaxMode = "auto" }, "profile": func(p *Principal) { p.Profile = "readonly" },
		"allow": func(p *Principal) { p.Allow = nil }, "deny": func(p *Principal) { p.Deny = []string{"z"} }, "scopes": func(p *Principal) { p.Scopes = 0 },
		"admin": func(p *Principal) { p.Admin = true },
	} {
		q := p.clone()
		if !p.sameRights(q) {
			t.Fatal("a clone has other rights")
		}
		if change(&q); p.sameRights(q) || q.sameRights(p) {
			t.Errorf("%s does not count", name)
		}
	}
	q := p.clone()
	q.Quota.Burst, q.Seed = 9, "/seed"
	if !p.sameRights(q) {
		t.Error("a quota or a seed counts: what runs would end for it")
	}
	q.Roots[0] = "/b"
	if p.Roots[0] != "/a" {
		t.Error("a clone shares its lists")
	}
}

package auth

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/server/auth/limits"
)

// Values are what an operator says about a principal: in the configuration for all or one, and in a token. A nil field
// says nothing, and the next source is asked.
type Values struct {
	Enabled *bool    // false: 403
	Roots   []string // templates with {principal}; empty says nothing, too
	Seed    *string  // directory that is copied into a new workspace
	Mode    *string
	MaxMode *string
	Profile *string
	Allow   []string // empty, but not nil: no rules
	Deny    []string // those of all sources hold
	Scopes  []string // empty, but not nil: good for nothing
	Admin   *bool
	Quota   map[string]string // keys of Quota, values as written
}

// What holds by default.
const (
	defaultMode    = "acceptEdits"
	defaultMaxMode = "acceptEdits"
	defaultProfile = "default"
)

// modes are the permission modes with their ranks. Those of equal rank do not bound each other.
var modes = map[string]int{"plan": 0, "dontAsk": 1, "default": 1, "acceptEdits": 2, "auto": 3, "bypassPermissions": 4}

// profiles are the names that Values.Profile takes.
var profiles = []string{"default", "readonly"}

// Check refuses what Values cannot mean. The error begins with the key as it is written in files.
func (v Values) Check() error {
	for _, r := range v.Roots {
		if err := CheckRoot(r); err != nil {
			return fmt.Errorf("roots: %w", err)
		}
	}
	if v.Seed != nil && *v.Seed != "" && !filepath.IsAbs(*v.Seed) {
		return fmt.Errorf("seed %q must be absolute", *v.Seed)
	}
	for _, m := range []struct {
		key  string
		name *string
	}{{"mode", v.Mode}, {"max_mode", v.MaxMode}} {
		if m.name == nil {
			continue
		}
		if _, ok := modes[*m.name]; !ok {
			return fmt.Errorf("%s: unknown mode %q; the modes are plan, dontAsk, default, acceptEdits, auto, "+
				"bypassPermissions", m.key, *m.name)
		}
	}
	if v.Profile != nil && !slices.Contains(profiles, *v.Profile) {
		return fmt.Errorf("profile: unknown profile %q; the profiles are %s", *v.Profile, strings.Join(profiles, ", "))
	}
	for _, rule := range slices.Concat(v.Allow, v.Deny) {
		if strings.TrimSpace(rule) == "" || !utf8.ValidString(rule) {
			return fmt.Errorf("allow or deny: %q is not a rule", rule)
		}
	}
	if _, err := ParseScopes(v.Scopes); err != nil {
		return fmt.Errorf("scopes: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(v.Quota)) {
		if err := limits.Check(key, v.Quota[key]); err != nil {
			return err
		}
	}
	return nil
}

// said returns what the first source that says something says, else otherwise.
func said[T any](sources []Values, otherwise T, field func(Values) *T) T {
	for _, v := range sources {
		if p := field(v); p != nil {
			return *p
		}
	}
	return otherwise
}

// Resolve makes the principal of id from sources that passed Check, the most specific one first, and says whether it is
// enabled. workspaces is as in Options. Via stays empty.
func Resolve(id, workspaces string, sources ...Values) (p Principal, enabled bool) {
	quotas := make([]map[string]string, len(sources))
	for i, v := range sources {
		quotas[i] = v.Quota
	}
	p = Principal{
		ID:      id,
		Slug:    Slug(id),
		Seed:    said(sources, "", func(v Values) *string { return v.Seed }),
		Mode:    said(sources, defaultMode, func(v Values) *string { return v.Mode }),
		MaxMode: said(sources, defaultMaxMode, func(v Values) *string { return v.MaxMode }),
		Profile: said(sources, defaultProfile, func(v Values) *string { return v.Profile }),
		Admin:   said(sources, false, func(v Values) *bool { return v.Admin }),
		Scopes:  everything,
		Quota:   limits.Resolve(quotas),
	}
	if modes[p.Mode] > modes[p.MaxMode] {
		p.Mode = p.MaxMode
	}
	if workspaces != "" {
		p.Roots = []string{filepath.Join(workspaces, p.Slug)}
	}
	for _, v := range slices.Backward(sources) {
		if len(v.Roots) > 0 {
			p.Roots = nil
			for _, r := range v.Roots {
				p.Roots = append(p.Roots, expand(r, p.Slug))
			}
		}
		if v.Allow != nil {
			p.Allow = slices.Clone(v.Allow)
		}
		if v.Scopes != nil {
			p.Scopes, _ = ParseScopes(v.Scopes) // checked
		}
	}
	for _, v := range sources {
		for _, rule := range v.Deny {
			if !slices.Contains(p.Deny, rule) {
				p.Deny = append(p.Deny, rule)
			}
		}
	}
	// The scope and the key say the same thing, so that a client need not ask for both.
	if p.Admin = p.Admin || p.Scopes.Has(AdminConsole); p.Admin {
		p.Scopes |= AdminConsole
	}
	return p, said(sources, true, func(v Values) *bool { return v.Enabled })
}

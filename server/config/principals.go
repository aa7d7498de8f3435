package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/tools/permission"
)

// The tables of settings whose middle name is a principal's ID, or `default`. They stand in the operator's file only.
const (
	principalsTable = "principals"
	quotaTable      = "quota"
	everyone        = "default" // about all of whom nothing else is said
	groups          = "groups"  // holds one table for each group of an issuer
)

// named says whether path leads to or into a table of principals.
func named(path []string) bool {
	return len(path) > 0 && (path[0] == principalsTable || path[0] == quotaTable)
}

// depth is how many names lead from the table to the one whom path is about: one for a principal, two for a group.
func depth(path []string) int {
	if len(path) > 1 && path[1] == groups {
		return 2
	}
	return 1
}

// ofLater are the tables and keys that belong to later versions: a person who copies them from a document should read
// that this version does not have them, not that they are misspelt.
func ofLater(path []string) bool {
	for _, later := range [...][]string{
		{"auth", "token_source"}, {"auth", "front_secret_file"}, {"auth", "front_old_secret_file"},
		{"store", "redis"}, {"store", "open_timeout"}, {"store", "timeout"}, {"store", "job_output"},
		{"replica"}, {"console"}, {"worker"}, {"front"},
	} {
		if len(path) >= len(later) && slices.Equal(path[:len(later)], later) {
			return true
		}
	}
	return named(path) && len(path) == 2+depth(path) && path[len(path)-1] == "init"
}

// notThere is what is wrong with a key that this version does not take.
func notThere(e entry) string {
	switch {
	case len(e.path) > 2 && issuerArray(e.path[:2]):
		return e.key + `: write it into its table of [[auth.oidc]], as scope_map = {"api.write" = "mcp:write"}`
	case ofLater(e.path):
		return e.key + ": not in this version"
	case e.key == managedRulesOnly:
		return e.key + ": counts only in the administrator's file"
	}
	var known []string
	for _, s := range Settings() {
		known = append(known, s.Key)
	}
	return fmt.Sprintf("unknown key %q", e.key) + meant(e.key, known)
}

// principal applies one key of a principal, or of all.
func (l *loader) principal(e entry, in input) {
	at := depth(e.path)
	if len(e.path) != at+2 || ofLater(e.path) {
		l.problems.add(e.origin, notThere(e))
		return
	}
	id, key := e.path[at], e.path[at+1]
	if err := auth.CheckID(id); err != nil {
		l.problems.add(e.origin, fmt.Sprintf("%s: %v", e.key, err))
		return
	}
	p := &l.config.Principals
	about := p.Default
	switch {
	case at == 2:
		about = p.group(id)
	case id != everyone:
		about = p.Named[id]
	}
	var err error
	known := true
	if e.path[0] == quotaTable {
		err = setQuota(&about, key, in)
	} else {
		known, err = setPersonal(&about, key, in)
	}
	if !known {
		l.problems.add(e.origin, notThere(e))
		return
	}
	if err != nil {
		l.refuse(e.key, in.origin, err)
		return
	}
	l.config.origins[e.key] = e.origin
	if key == "allow" || key == "deny" {
		l.ruleLines(dotted(e.path[1:at+1]), key, in)
	}
	if at == 2 {
		p.setGroup(id, about)
		return
	}
	if id == everyone {
		p.Default = about
		return
	}
	if p.Named == nil {
		p.Named = map[string]auth.Values{}
	}
	p.Named[id] = about
}

// group returns what was said about a group.
func (p *Principals) group(name string) auth.Values {
	for _, g := range p.Groups {
		if g.Name == name {
			return g.Values
		}
	}
	return auth.Values{}
}

// setGroup keeps what is said about a group. The order is that in which the file names them first.
func (p *Principals) setGroup(name string, v auth.Values) {
	for i, g := range p.Groups {
		if g.Name == name {
			p.Groups[i].Values = v
			return
		}
	}
	p.Groups = append(p.Groups, auth.Group{Name: name, Values: v})
}

// ruleLines remembers where the rules of a principal stand.
func (l *loader) ruleLines(id, list string, in input) {
	p := &l.config.Principals
	if p.lines == nil {
		p.lines = map[principalRule]string{}
	}
	texts, _ := entries(in) // it was read once
	for i, text := range texts {
		p.lines[principalRule{id, list, text}] = in.at(i)
	}
}

// setPersonal sets one key of a table of principals; known is false if there is no such key.
func setPersonal(v *auth.Values, key string, in input) (known bool, err error) {
	switch key {
	case "enabled":
		err = keep(&v.Enabled, in, func(p *bool) value { return toggle{p} })
	case "roots":
		var roots []string
		if err = (terms{&roots, readTemplate}).set(in); err == nil && len(roots) > 0 { // [] says nothing
			v.Roots = roots
		}
	case "seed":
		err = keep(&v.Seed, in, func(p *string) value { return term{p, absolute} })
	case "mode":
		err = keep(&v.Mode, in, func(p *string) value { return modeName{p} })
	case "max_mode":
		err = keep(&v.MaxMode, in, func(p *string) value { return modeName{p} })
	case "profile":
		err = keep(&v.Profile, in, func(p *string) value { return choice{p, []string{"readonly", "default"}} })
	case "allow":
		v.Allow, err = ruleTexts(v.Allow, in, permission.Allow)
	case "deny":
		v.Deny, err = ruleTexts(v.Deny, in, permission.Deny)
	case "scopes":
		err = (terms{&v.Scopes, readScope}).set(in)
	case "admin":
		err = keep(&v.Admin, in, func(p *bool) value { return toggle{p} })
	default:
		return false, nil
	}
	return true, err
}

// PersonalSettings lists the keys of principals and their quotas, as they are written about all principals. Env and
// Flag are empty: only the operator's file has them. The slice is the caller's.
func PersonalSettings() []Setting {
	const table = principalsTable + "." + everyone + "."
	list := []Setting{
		{Key: table + "enabled", Default: "true", Doc: "whether the principal can connect"},
		{Key: table + "roots", Doc: "directories to work in, where {principal} stands for the principal's name; " +
			"empty: workspaces/{principal} in http.data_dir"},
		{Key: table + "seed", Doc: "directory that is copied into a new workspace; empty: none"},
		{Key: table + "mode", Doc: "permission mode at the start of a session; empty: permissions.mode"},
		{Key: table + "max_mode", Default: "acceptEdits", Doc: "highest permission mode of a session"},
		{Key: table + "profile", Default: "default", Doc: "which tools exist: readonly or default"},
		{Key: table + "allow", Doc: "rules for what needs no approval, besides permissions.allow"},
		{Key: table + "deny", Doc: "rules for what is refused, besides permissions.deny; /x starts at " +
			"each of the roots"},
		{Key: table + "scopes", Default: "mcp:all",
			Doc: "what calls may do: mcp:read, mcp:write, mcp:shell, mcp:web or mcp:all, and mcp:admin as admin"},
		{Key: table + "admin", Default: "false", Doc: "whether a token opens /metrics and the details of /readyz"},
	}
	for _, q := range limits.Keys() {
		list = append(list, Setting{Key: quotaTable + "." + everyone + "." + q.Key, Default: q.Default, Doc: q.Doc})
	}
	return list
}

// values are what is said about a principal, or about all.
type values = auth.Values

// keep stores what an input says in a field that is nil as long as nothing was said.
func keep[T any](to **T, in input, as func(*T) value) error {
	var said T
	if err := as(&said).set(in); err != nil {
		return err
	}
	*to = &said
	return nil
}

// ruleTexts returns the rules of a list, which all parse, or the ones that were there.
func ruleTexts(before []string, in input, of permission.Verdict) ([]string, error) {
	good, bad := parseRules(in, of)
	if len(bad) > 0 {
		return before, bad
	}
	texts := make([]string, len(good))
	for i, r := range good {
		texts[i] = r.Text
	}
	return texts, nil
}

func readScope(s string, _ input) (string, error) {
	_, err := auth.ParseScopes([]string{s})
	return s, err
}

// modeName is a permission mode of serve, by name.
type modeName struct{ p *string }

func (v modeName) set(in input) error {
	var m permission.Mode
	if err := (mode{&m}).set(in); err != nil {
		return err
	}
	if m == permission.Bypass {
		return errors.New(noBypass)
	}
	*v.p = m.String()
	return nil
}

func (v modeName) text() string { return *v.p }

// setQuota sets one quota. What keys there are, and what they take, is known where they are kept.
func setQuota(v *auth.Values, key string, in input) error {
	var text string
	switch raw := in.raw.(type) {
	case int64:
		text = strconv.FormatInt(raw, 10)
	case string:
		text = strings.TrimSpace(raw)
	default:
		return errors.New(`must be a whole number, a duration such as "2h", or a size such as "32MiB"`)
	}
	if err := limits.Check(key, text); err != nil {
		return err
	}
	if v.Quota == nil {
		v.Quota = map[string]string{}
	}
	v.Quota[key] = text
	return nil
}

package permission

import (
	"path"
	"path/filepath"
	"strings"
)

// Options of a Policy.
type Options struct {
	Deny, Ask, Allow []Rule

	Protect   []string // names as in the built-in list, whose change a person must allow, besides that list
	Unprotect []string // names of the built-in lists (protected names, secrets to ask about) that are ordinary files here
	Own       []string // absolute paths of codehand's own configuration and state: never changed

	Home string // what `~/` in a pattern means, links resolved; "": such patterns are refused
}

// A Policy is a set of parsed rules. It does not change after New and is safe for concurrent use. The zero Policy and
// a nil one deny everything.
type Policy struct {
	made  bool // by New
	rules []rule
	roots []string
	cwd   string

	// For secrets, in lower case.
	homeLower  string
	rootsLower []string
}

// New parses the rules. A rule that does not parse, can never match, or has a form that this version does not
// understand is an error that names its origin: a rule that is silently ignored would be a hole.
func New(o Options) (*Policy, error) {
	home := clean(o.Home)
	p := &Policy{made: true, homeLower: strings.ToLower(home)}
	for _, r := range o.Deny {
		parsed, err := parse(r, home)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, parsed)
	}
	return p, nil
}

// At returns the policy for one session: patterns without an anchor then start from each of its roots (canonical),
// from cwd, and from the rule's own directory. From the roots, too, because the cwd moves with the session's commands,
// and a `cd` must not lift a rule. A secret of the home directory that a root was placed in is an ordinary file there.
func (p *Policy) At(roots []string, cwd string) *Policy {
	if p == nil {
		return nil
	}
	at := *p
	at.cwd, at.roots, at.rootsLower = clean(cwd), nil, nil
	for _, r := range roots {
		at.roots = append(at.roots, clean(r))
		at.rootsLower = append(at.rootsLower, strings.ToLower(clean(r)))
	}
	return &at
}

// Unmatched returns the bare rules that name none of tools (all names and aliases) and no family: a misspelt deny rule
// denies nothing, so the server refuses to start. Rules about mounted servers are left out, as mounts come and go.
func (p *Policy) Unmatched(tools []string) []Rule {
	var lost []Rule
	for _, r := range p.rules {
		known := r.list != nil || families[r.name] != nil || strings.HasPrefix(r.name, mountPrefix)
		for _, name := range tools {
			known = known || r.name == name
		}
		if !known {
			lost = append(lost, r.Rule)
		}
	}
	return lost
}

// Off says whether a bare deny rule switches a tool off altogether: it is then not listed either.
func (p *Policy) Off(tool string, aliases []string) bool {
	return p == nil || !p.made || p.off(tool, aliases) != nil
}

func (p *Policy) off(tool string, aliases []string) *rule {
	for i := range p.rules {
		if r := &p.rules[i]; r.list == nil && r.names(tool, aliases) {
			return r
		}
	}
	return nil
}

// Hidden says that a deny rule keeps path (absolute) out of listings and searches.
func (p *Policy) Hidden(path string) bool {
	if p == nil || !p.made {
		return true
	}
	path = clean(path)
	return p.secret(path) != "" || p.deniedPath(path, p.cwd, true) != nil
}

// Withheld says that a person must be asked before path (absolute) is read, so listings and searches leave it out unless
// it was named.
func (p *Policy) Withheld(path string) bool { return false }

// deniedPath returns the rule that denies path, which is clean; nil: none does. readOnly leaves out the rules that
// are about changes only.
func (p *Policy) deniedPath(path, cwd string, readOnly bool) *rule {
	for i := range p.rules {
		r := &p.rules[i]
		if r.list == nil || readOnly && !r.reads || !strings.Contains(path, r.must) {
			continue
		}
		if r.covers(path, r.dir) {
			return r
		}
		if !r.relative {
			continue
		}
		if r.covers(path, cwd) || cwd != p.cwd && r.covers(path, p.cwd) {
			return r
		}
		for _, root := range p.roots {
			if r.covers(path, root) {
				return r
			}
		}
	}
	return nil
}

// clean returns a path as patterns see it, with slashes; "" stays empty.
func clean(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(filepath.ToSlash(p))
}

// below returns path relative to dir, both clean; false if it is not below it. Whole components are compared.
func below(dir, path string) (string, bool) {
	if dir == "/" {
		rel := strings.TrimPrefix(path, "/")
		return rel, rel != ""
	}
	rest, ok := strings.CutPrefix(path, dir)
	if !ok || dir == "" || len(rest) < 2 || rest[0] != '/' {
		return "", false
	}
	return rest[1:], true
}

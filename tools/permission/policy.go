package permission

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/guarded"
	"codehand/tools/search/ignore"
)

// Options of a Policy.
type Options struct {
	Deny, Ask, Allow []Rule

	Protect []string // names as in the built-in list, whose change a person must allow, besides that list
	// names of the built-in lists (protected names, secrets to ask about) that are ordinary files here
	Unprotect []string
	Own       []string // absolute paths of codehand's own configuration and state: never changed

	Home string // what `~/` in a pattern means, links resolved; "": such patterns are refused
}

// A Policy is a set of parsed rules. It does not change after New and is safe for concurrent use. The zero Policy and
// a nil one deny everything.
type Policy struct {
	made             bool // by New
	deny, ask, allow []rule

	protected *guarded.Names // names whose change a person must allow
	secrets   *guarded.Names // names inside the roots that a person must let a call read
	omit      *ignore.List   // secrets, for searches
	own       []string       // folded, clean
	home      string         // clean; "": not known

	roots  []string
	cwd    string
	folds  bool // in Hidden and Withheld, see Folding
	starts starts

	// For secrets, in lower case.
	homeLower  string
	rootsLower []string
	openLower  []string // see Reading
}

// starts are where patterns begin besides the roots and the cwd.
type starts struct {
	cwd  string   // that At was given first: for relative patterns of rules that allow, so that no `cd` widens them
	more []string // see AlsoFrom
}

// New parses the rules. A rule that does not parse, can never match, or has a form that this version does not
// understand is an error that names its origin: a rule that is silently ignored would be a hole.
func New(o Options) (*Policy, error) {
	home := clean(o.Home)
	p := &Policy{made: true, home: home, homeLower: strings.ToLower(home)}
	for _, list := range []struct {
		to    *[]rule
		rules []Rule
		v     Verdict
	}{{&p.deny, o.Deny, Deny}, {&p.ask, o.Ask, Ask}, {&p.allow, o.Allow, Allow}} {
		for _, r := range list.rules {
			parsed, err := parse(r, home, list.v)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, parsed)
		}
	}
	var err error
	if p.protected, err = guarded.ProtectedNames(o.Protect, o.Unprotect); err != nil {
		return nil, err
	}
	if p.secrets, err = guarded.SecretNames(o.Unprotect); err != nil {
		return nil, err
	}
	p.omit = omitted(p.secrets)
	for _, own := range o.Own {
		if own != "" {
			p.own = append(p.own, foldPath(clean(own)))
		}
	}
	return p, nil
}

// With returns the policy with more rules that deny and that ask. The error names the one that does not parse.
func (p *Policy) With(deny, ask []Rule) (*Policy, error) {
	if p == nil || len(deny)+len(ask) == 0 {
		return p, nil
	}
	at := *p
	for _, list := range []struct {
		to    *[]rule
		rules []Rule
		v     Verdict
	}{{&at.deny, deny, Deny}, {&at.ask, ask, Ask}} {
		*list.to = slices.Clip(*list.to)
		for _, r := range list.rules {
			parsed, err := parse(r, p.home, list.v)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, parsed)
		}
	}
	return &at, nil
}

// At returns the policy for one session. `/x` of a rule that no project has then starts from each of its roots
// (canonical). A relative pattern starts from each of them, from cwd, and from the rule's own directory: from the
// roots, too, because the cwd moves with the session's commands, and a `cd` must not lift a rule; for the same reason
// those that allow start from the cwd of the first At only. A secret of the home directory that a root was placed in is
// an ordinary file there.
func (p *Policy) At(roots []string, cwd string) *Policy {
	if p == nil {
		return nil
	}
	at := *p
	at.cwd, at.roots, at.rootsLower = clean(cwd), nil, nil
	if at.starts.cwd == "" {
		at.starts.cwd = at.cwd
	}
	for _, r := range roots {
		at.roots = append(at.roots, clean(r))
		at.rootsLower = append(at.rootsLower, strings.ToLower(clean(r)))
	}
	return &at
}

// AlsoFrom returns the policy with more directories (canonical) that are like roots to rules which deny or ask, and not
// to those which allow: the parts of the roots that a client wants, since to the person who opened one it is the
// workspace; or what a token leaves out of its principal's roots.
func (p *Policy) AlsoFrom(dirs []string) *Policy {
	if p == nil {
		return nil
	}
	at := *p
	at.starts.more = slices.Clip(p.starts.more)
	for _, dir := range dirs {
		at.starts.more = append(at.starts.more, clean(dir))
	}
	return &at
}

// Moved returns the policy for the same roots and another cwd.
func (p *Policy) Moved(cwd string) *Policy {
	if p == nil || p.cwd == clean(cwd) {
		return p
	}
	at := *p
	at.cwd = clean(cwd)
	return &at
}

// Reading returns the policy for sessions that may read what is in these directories (canonical), although one lies
// within a secret of a home directory: the operator named it, or it is there for that.
func (p *Policy) Reading(dirs ...string) *Policy {
	if p == nil {
		return nil
	}
	r := *p
	r.openLower = nil
	for _, dir := range dirs {
		r.openLower = append(r.openLower, strings.ToLower(clean(dir)))
	}
	return &r
}

// Guards says whether no call changes the file at path (canonical, inside the roots) unless a person allows just that,
// in whatever mode. A rule about a whole tool guards nothing: another tool may change the file.
func (p *Policy) Guards(path string) bool {
	if p == nil || !p.made {
		return true
	}
	path = clean(path)
	rel, _ := p.inRoot(path)
	return p.ownFile(path) != "" || p.protected.Find(rel) != "" || p.Ruled(path, true) != Allow
}

// Folding returns the policy for roots on a file system that does not tell letter cases apart, where a rule hides a
// file however it is spelt. A decision goes by Target.Folds.
func (p *Policy) Folding() *Policy {
	if p == nil {
		return nil
	}
	f := *p
	f.folds = true
	return &f
}

// Unmatched returns the rules whose name is that of none of tools (all names and aliases) and of no family: a misspelt
// deny rule denies nothing, so the server refuses to start. Rules about mounted servers are left out, as mounts come
// and go.
func (p *Policy) Unmatched(tools []string) []Rule {
	var lost []Rule
	for _, rules := range [][]rule{p.deny, p.ask, p.allow} {
		for i := range rules {
			r := &rules[i]
			_, family := takes[r.name]
			if family || strings.HasPrefix(r.name, mountPrefix) || r.name == "*" {
				continue
			}
			if !slices.ContainsFunc(tools, func(t string) bool { return r.names(t, nil, FamilyNone) }) {
				lost = append(lost, r.Rule)
			}
		}
	}
	return lost
}

// Off says whether a bare deny rule switches a tool off altogether: it is then not listed either.
func (p *Policy) Off(tool string, aliases []string, f Family) bool {
	return p == nil || !p.made || bareRule(p.deny, tool, aliases, f) != nil
}

// bareRule returns the first rule that is about every use of a tool; nil: there is none.
func bareRule(rules []rule, tool string, aliases []string, f Family) *rule {
	for i := range rules {
		if r := &rules[i]; r.bare() && r.names(tool, aliases, f) {
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
	return p.secret(path) != "" || ruledBy(p, p.deny, path, false) != nil
}

// Withheld says that a person must be asked before path (absolute) is read. So listings and searches leave it out, even
// if a person allowed a search in place: allowing place does not allow path.
func (p *Policy) Withheld(place, path string) bool {
	return p.AskedFor(place, path) || !p.SecretName(place) && p.SecretName(path)
}

// AskedFor is Withheld for the operator's own rules: one is about path that is not about place.
func (p *Policy) AskedFor(place, path string) bool {
	if p == nil || !p.made {
		return true
	}
	path, place = clean(path), clean(place)
	if p.folds {
		path, place = foldPath(path), foldPath(place)
	}
	for i := range p.ask {
		r := &p.ask[i]
		if r.path != nil && r.reads && p.forbidden(r, path, p.cwd, p.folds) && !p.forbidden(r, place, p.cwd, p.folds) {
			return true
		}
	}
	return false
}

// AsksToRead says whether any of the operator's rules may be a reason for AskedFor in place.
func (p *Policy) AsksToRead(place string) bool {
	if p == nil {
		return false
	}
	if place = clean(place); p.folds {
		place = foldPath(place)
	}
	return slices.ContainsFunc(p.ask,
		func(r rule) bool { return r.path != nil && r.reads && !p.forbidden(&r, place, p.cwd, p.folds) })
}

// SecretName says whether path (absolute) is inside a root and has the name of a secret there.
func (p *Policy) SecretName(path string) bool { return p.secretInside(clean(path)) != "" }

// SecretNames are the names, inside the roots, of what a person must be asked about before it is read, in their usual
// spelling, as a search leaves them out. The rest of the spellings is for Withheld.
func (p *Policy) SecretNames() *ignore.List {
	if p == nil || !p.made {
		return nil
	}
	return p.omit
}

// omitted makes the list of names for searches.
func omitted(secrets *guarded.Names) *ignore.List {
	return ignore.Parse([]byte(strings.Join(append(secrets.Texts(), "!.env.example", "!.env.sample", "!.env.template",
		"!.env.dist", "!id_*.pub"), "\n")))
}

// ruledBy returns the first of the rules, which deny or ask, whose pattern covers reading a clean path, or changing it;
// nil: none does.
func ruledBy(p *Policy, rules []rule, path string, change bool) *rule {
	if p.folds {
		path = foldPath(path)
	}
	for i := range rules {
		if r := &rules[i]; r.path != nil && r.about(change) && p.forbidden(r, path, p.cwd, p.folds) {
			return r
		}
	}
	return nil
}

// Ruled says what a rule with a pattern makes of reading path (absolute), or of changing it: Deny, Ask, or Allow where
// none is about it. Letter case counts as in Hidden.
func (p *Policy) Ruled(path string, change bool) Verdict {
	if p == nil || !p.made {
		return Deny
	}
	path = clean(path)
	for v, rules := range [...][]rule{Deny: p.deny, Ask: p.ask} {
		if ruledBy(p, rules, path, change) != nil {
			return Verdict(v)
		}
	}
	return Allow
}

// Compares says whether Ruled may say anything but Allow about reading, or about changing.
func (p *Policy) Compares(change bool) bool {
	is := func(r rule) bool { return r.path != nil && r.about(change) }
	return p != nil && (slices.ContainsFunc(p.deny, is) || slices.ContainsFunc(p.ask, is))
}

// ComparesPaths says whether any rule that denies or asks has a pattern of paths, so that it matters whether a file
// system tells letter cases apart.
func (p *Policy) ComparesPaths() bool { return p.Compares(false) || p.Compares(true) }

// about says whether a rule is about changing files, or else about reading them.
func (r *rule) about(change bool) bool { return change && r.writes || !change && r.reads }

// forbidden holds a clean path against the pattern of a rule that denies or asks.
func (p *Policy) forbidden(r *rule, path, cwd string, folds bool) bool {
	if r.path.from == atCwd && r.path.forbids(path, folds, cwd, p.cwd) || r.path.forbids(path, folds, p.roots...) {
		return true
	}
	return r.path.from != atDir && r.path.forbids(path, folds, p.starts.more...)
}

// secretInside returns the built-in rule that asks before path (clean) is read: a name of secrets below a root. "":
// none.
func (p *Policy) secretInside(path string) string {
	if p == nil || !p.made {
		return ""
	}
	if rel, inside := p.inRoot(path); inside && p.secrets.Find(rel) != "" {
		return "Read(**/" + p.secrets.Find(rel) + ")"
	}
	return ""
}

// inRoot returns path relative to the longest root that contains it; else path itself.
func (p *Policy) inRoot(path string) (rel string, inside bool) {
	rel = path
	for _, root := range p.roots {
		if r, ok := below(root, path); ok && (!inside || len(r) < len(rel)) {
			rel, inside = r, true
		}
	}
	return rel, inside
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

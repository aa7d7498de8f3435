package permission

import (
	"slices"
	"strings"

	"codehand/tools/search/ignore"
)

// A Coverage is what one rule is about, in the roots of its policy.
type Coverage struct {
	Rule    Rule
	Verdict Verdict  // what the rule says
	Kind    Kind     // of what stands in its parentheses; NoKind: nothing does, or a parameter
	Paths   []string // of Kind Path: absolute patterns; empty where they start from the roots, and there are none

	rule   *rule
	policy *Policy
	starts []string // of each of Paths
}

// Coverage returns what each rule is about: those that deny, that ask, that allow, each in the order of their sources.
func (p *Policy) Coverage() []Coverage {
	if p == nil {
		return nil
	}
	var all []Coverage
	for v, rules := range [...][]rule{Deny: p.deny, Ask: p.ask, Allow: p.allow} {
		for i := range rules {
			r := &rules[i]
			c := Coverage{Rule: r.Rule, Verdict: Verdict(v), Kind: r.kind(), rule: r, policy: p}
			if r.path != nil {
				c.starts = startsOf(r, p)
			}
			for _, dir := range c.starts {
				c.Paths = append(c.Paths, inDir(dir, r.path.rest))
			}
			all = append(all, c)
		}
	}
	return all
}

// startsOf returns the directories from which the pattern of a rule starts, each once. What counts at any depth starts
// only from those that lie in no other.
func startsOf(r *rule, p *Policy) []string {
	var dirs []string
	switch {
	case r.path.from == atDir:
		dirs = []string{r.path.dir}
	case r.path.from == atRoots && r.allows:
		dirs = slices.Clone(p.roots)
	case r.path.from == atRoots:
		dirs = slices.Concat(p.roots, p.starts.more)
	case r.allows:
		dirs = []string{p.starts.cwd}
	default:
		dirs = append(slices.Concat(p.roots, p.starts.more), p.cwd, r.path.dir)
	}
	all := slices.Clone(dirs)
	deep := strings.HasPrefix(r.path.rest, "**")
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		again := seen[dir] || deep && slices.ContainsFunc(all, func(up string) bool {
			_, below := below(up, dir)
			return below
		})
		seen[dir] = true
		return again
	})
}

// kind says what a rule holds against its pattern.
func (r *rule) kind() Kind {
	switch {
	case r.path != nil:
		return Path
	case r.host != nil:
		return Domain
	case r.text != nil && takes[r.name].what == aCommand:
		return Command
	case r.text != nil:
		return Name
	}
	return NoKind
}

// Names says whether the rule is about a tool, whatever the call.
func (c Coverage) Names(tool string, aliases []string, f Family) bool {
	return c.rule.names(tool, aliases, f)
}

// Covers says whether the rule, of Kind Path, is about a file by this absolute path.
func (c Coverage) Covers(path string) bool {
	p := c.policy
	if path = clean(path); c.rule.allows {
		return c.rule.path.allows(path, p.starts.cwd, p.roots)
	}
	if p.folds {
		path = foldPath(path)
	}
	return p.forbidden(c.rule, path, p.cwd, p.folds)
}

// Below returns the files and directories at or below dir (absolute) that hold all that the rule, of Kind Path, can
// match there, whether they exist or not; nil: it can match nothing there.
func (c Coverage) Below(dir string) []string {
	dir = clean(dir)
	var places []string
	for _, start := range c.starts {
		rest := c.rule.path.rest
		if c.policy.folds && !c.rule.allows {
			start, rest, dir = foldPath(start), foldPath(rest), foldPath(dir)
		}
		if place := reach(start, rest, dir); place != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}

// Component returns what says whether a name fits one component of a pattern, as the rule itself compares it.
func (c Coverage) Component(part string) func(name string) bool {
	folds := c.policy.folds && !c.rule.allows
	if folds {
		part = foldPath(part)
	}
	list := ignore.Parse([]byte("/" + part))
	return func(name string) bool {
		if folds {
			name = foldPath(name)
		}
		return list.Match(name, true) == ignore.Ignore
	}
}

// Dirs returns, for each of Paths, the directory that all it can match lies in.
func (c Coverage) Dirs() []string {
	var dirs []string
	for _, start := range c.starts {
		parts := components(c.rule.path.rest)
		at, _ := plainHead(start, parts[:len(parts)-1])
		dirs = append(dirs, at)
	}
	return dirs
}

// reach returns the deepest place at or below dir that holds all that a pattern can match there; "": it can match
// nothing there. All are clean.
func reach(start, rest, dir string) string {
	at, parts := plainHead(start, components(rest))
	if _, deeper := below(dir, at); deeper || at == dir {
		return at
	}
	between, above := below(at, dir)
	if !above {
		return ""
	}
	// dir lies below the place at which the wildcards begin: they must match what is between, or a directory of it.
	names := components(between)
	for i, part := range parts {
		if i == len(names) || part == "**" {
			break
		}
		if ignore.Parse([]byte("/"+part)).Match(names[i], true) != ignore.Ignore {
			return ""
		}
	}
	return dir
}

// plainHead goes on from a directory by the components of a pattern, up to the first with a wildcard.
func plainHead(at string, parts []string) (string, []string) {
	for len(parts) > 0 {
		name, plain := plainName(parts[0])
		if !plain {
			break
		}
		at, parts = inDir(at, name), parts[1:]
	}
	return at, parts
}

// components parts a path or a pattern.
func components(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// plainName returns the one name that a component of a pattern means; plain is false if it has a wildcard.
func plainName(part string) (name string, plain bool) {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			i++
		}
		b.WriteByte(part[i])
	}
	return b.String(), true
}

// inDir puts a path behind a directory, both clean.
func inDir(dir, path string) string { return strings.TrimSuffix(dir, "/") + "/" + path }

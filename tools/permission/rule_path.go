package permission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"codehand/tools/guarded"
	"codehand/tools/search/ignore"
)

// A pathPattern is the pattern of a Read or Edit rule.
type pathPattern struct {
	list *ignore.List // what a gitignore file in the directory that it starts from would say
	from start
	dir  string // of atDir; of atCwd that of the rule, which only counts for deny and ask; else ""
	must string // occurs in every path that the pattern matches: a cheap test before the dear one
	rest string // the pattern as it is written behind its start, with `**/` before what counts at any depth

	folded     *ignore.List // list, without letter case; nil: for rules that allow
	foldedMust string
}

// A start says which directories a pattern is relative to.
type start int

const (
	atDir   start = iota // one, whatever the session
	atRoots              // each root of the workspace; for deny and ask also those of Policy.AlsoFrom
	atCwd                // the cwd; for deny and ask these, too
)

// readPattern finds what the pattern starts from, and makes of the rest what a gitignore file in that directory
// would say.
func (r *rule) readPattern(spec, home string, v Verdict) error {
	if spec != strings.TrimSpace(spec) || strings.HasPrefix(spec, "!") ||
		strings.ContainsFunc(spec, guarded.Invisible) {
		return errors.New(`a pattern has no "!", no invisible characters, and no blanks at its ends`)
	}
	p := &pathPattern{}
	rest, floating, err := p.anchor(spec, home, r.Dir)
	if err != nil {
		return err
	}
	if err := checkPattern(rest); err != nil {
		return err
	}
	line := "/" + rest
	if p.rest = rest; floating && rest != "**" {
		p.rest = "**/" + rest
	}
	switch {
	case floating && strings.HasSuffix(rest, "/**"):
		if v == Allow { // `allow dir/**` means the one in the cwd
			p.rest = rest
		}
		line = "/" + p.rest
	case floating && rest[0] == '#':
		line = `\` + rest // else it were a comment
	case floating:
		line = rest
	}
	p.list, p.must = ignore.Parse([]byte(line)), literal(rest)
	if v != Allow {
		p.folded, p.foldedMust = ignore.Parse([]byte(foldPath(line))), foldPath(p.must)
	}
	r.path = p
	return nil
}

// anchor finds what a pattern starts from. floating: it has one component and counts at any depth.
func (p *pathPattern) anchor(spec, home, dir string) (rest string, floating bool, err error) {
	switch {
	case strings.HasPrefix(spec, "//"):
		p.dir, rest = "/", spec[2:]
	case strings.HasPrefix(spec, "~/"):
		if home == "" {
			return "", false, errors.New("the home directory is not known")
		}
		p.dir, rest = home, spec[2:]
	case strings.HasPrefix(spec, "~"):
		return "", false, errors.New(`"~" is only understood as "~/"; a name that begins so is written "\~"`)
	case strings.HasPrefix(spec, "/"):
		if p.dir, rest = clean(dir), spec[1:]; dir == "" {
			p.from = atRoots
		}
	default:
		p.dir, p.from = clean(dir), atCwd
		rest = strings.TrimPrefix(spec, "./")
		name := strings.TrimSuffix(strings.TrimSuffix(rest, "/"), "/**")
		floating = rest == spec && !strings.Contains(name, "/")
	}
	return rest, floating, nil
}

// checkPattern refuses what could never match a clean path.
func checkPattern(rest string) error {
	if rest == "" {
		return errors.New("the pattern names nothing; write ** for everything below")
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("the component %q never matches", part)
		}
		for i := 0; i < len(part); i++ {
			switch part[i] {
			case '\\':
				if i++; i == len(part) {
					return errors.New("a backslash at the end of a component never matches")
				}
			case '[':
				n := class(part[i:])
				if n == 0 {
					return errors.New(`a "[" without its "]" never matches; a name with one is written "\["`)
				}
				i += n - 1
			}
		}
	}
	return nil
}

// class returns the length of the character class at the start of p; 0 if it is not closed, or holds a named class,
// which this version leaves to git.
func class(p string) int {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i++
	}
	for first := true; i < len(p); first = false {
		switch {
		case p[i] == ']' && !first:
			return i + 1
		case p[i] == '\\':
			i++
		case strings.HasPrefix(p[i:], "[:"):
			return 0
		}
		i++
	}
	return 0
}

// literal returns the longest run of ordinary characters within one component.
func literal(rest string) string {
	best, start := "", 0
	end := func(i int) {
		if i-start > len(best) {
			best = rest[start:i]
		}
	}
	for i := 0; i < len(rest); i++ {
		next := i
		switch rest[i] {
		case '/', '*', '?':
		case '\\':
			next++
		case '[':
			next += class(rest[i:]) - 1
		default:
			continue
		}
		end(i)
		i = next
		start = i + 1
	}
	end(len(rest))
	return best
}

// forbids says whether a path, or a directory on the way to it, matches the pattern as a rule that denies or asks means
// it. path is clean, and with folds already folded; from are the directories that one without a directory of its own
// starts from. Everything is taken for a directory: a rule about a directory holds whether it exists or not.
func (p *pathPattern) forbids(path string, folds bool, from ...string) bool {
	list, must := p.list, p.must
	if folds {
		list, must = p.folded, p.foldedMust
	}
	if !strings.Contains(path, must) {
		return false
	}
	if covers(list, path, p.dir, folds, true) {
		return true
	}
	if p.from == atDir {
		return false
	}
	for i, dir := range from {
		if (i == 0 || dir != from[i-1]) && covers(list, path, dir, folds, true) {
			return true
		}
	}
	return false
}

// allows says whether a path, or a directory on the way to it, matches the pattern as a rule that allows means it.
func (p *pathPattern) allows(path, cwd string, roots []string) bool {
	if !strings.Contains(path, p.must) {
		return false
	}
	switch p.from {
	case atRoots:
		return slices.ContainsFunc(roots, func(root string) bool { return covers(p.list, path, root, false, false) })
	case atCwd:
		return covers(p.list, path, cwd, false, false)
	}
	return covers(p.list, path, p.dir, false, false)
}

// covers says whether path, or a directory on the way to it, is on the list of a directory. isDir: what path itself
// names is taken for a directory.
func covers(list *ignore.List, path, dir string, folds, isDir bool) bool {
	if folds {
		dir = foldPath(dir)
	}
	rel, ok := below(dir, path)
	if !ok {
		return false
	}
	for i := range len(rel) {
		if rel[i] == '/' && list.Match(rel[:i], true) == ignore.Ignore {
			return true
		}
	}
	return list.Match(rel, isDir) == ignore.Ignore
}

// foldPath makes one text of all spellings that a file system without letter case takes for the same path.
func foldPath(path string) string {
	for i := range len(path) {
		if c := path[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			return strings.Map(guarded.FoldRune, norm.NFC.String(path))
		}
	}
	return path
}

// Package ignore reads gitignore patterns and decides about names, exactly as git does.
//
// A List holds the patterns of one file. A Stack holds all Lists, of several kinds and directories, that apply in one
// place. Both are immutable and know paths as strings only: the package never touches the disk.
package ignore

import (
	"bytes"
	"strings"
)

// A Verdict is what a list says about a name.
type Verdict int

// The verdicts. None: no rule matches.
const (
	None Verdict = iota
	Ignore
	Keep
)

// A List is one parsed ignore file. It is safe for concurrent use. A nil List has no rules.
//
// Most rules of most files are plain names and extensions, so these are found by one look-up each; only
// the others are tried one by one. Numbers of rules begin at 1, so that 0 means none.
type List struct {
	keep  []bool          // by number: the rule begins with "!"
	names map[string]best // rules without a special character and without "/", by the name they want
	exts  map[string]best // rules "*.ext", by ".ext" with exactly one dot
	rest  []rule          // all others, in the order of the file
}

// best is the highest number of the rules under one key.
type best struct {
	file int // of the rules that also match what is no directory
	dir  int // of all rules, because a directory is matched by every kind
}

func (b best) of(dir bool) int {
	if dir {
		return b.dir
	}
	return b.file
}

// Parse reads an ignore file. It never fails; a line that git would not understand matches nothing.
// Bytes, not runes, are what patterns match, as in git.
func Parse(data []byte) *List {
	l := &List{keep: []bool{false}, names: map[string]best{}, exts: map[string]best{}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		l.add(string(line))
	}
	return l
}

// add takes over one line, without its LF.
func (l *List) add(line string) {
	if strings.HasPrefix(line, "#") {
		return
	}
	line = strings.TrimSuffix(line, "\r")
	if i := strings.IndexByte(line, 0); i >= 0 {
		line = line[:i] // git's strings end there
	}
	line = trimBlanks(line)
	text, keep := strings.CutPrefix(line, "!")
	text, dirOnly := strings.CutSuffix(text, "/")
	if text == "" {
		return
	}
	r, ok := newRule(text)
	if !ok {
		return
	}
	r.dirOnly = dirOnly
	r.number = len(l.keep)
	l.keep = append(l.keep, keep)
	switch {
	case r.byName && len(r.tail) == 0:
		raise(l.names, r.head, r)
	case r.byName && r.head == "" && isExt(r.suffix, r.tail):
		raise(l.exts, r.suffix, r)
	default:
		l.rest = append(l.rest, r)
	}
}

// raise notes a rule under its key. Rules come in ascending order, so the newest is the highest.
func raise(m map[string]best, key string, r rule) {
	b := m[key]
	b.dir = r.number
	if !r.dirOnly {
		b.file = r.number
	}
	m[key] = b
}

// isExt reports whether a rule by name is "*" and then suffix, which has its only dot at the start.
func isExt(suffix string, tail []atom) bool {
	return len(tail) == 1+len(suffix) && tail[0].kind == star && strings.LastIndexByte(suffix, '.') == 0
}

// trimBlanks drops blanks at the end that no backslash escapes. A backslash that ends the line keeps all
// before it, as in git.
func trimBlanks(s string) string {
	cut := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if cut < 0 {
				cut = i
			}
		case '\\':
			i++
			if i == len(s) {
				return s
			}
			cut = -1
		default:
			cut = -1
		}
	}
	if cut >= 0 {
		return s[:cut]
	}
	return s
}

// Match says what the last matching rule says about rel, a slash path below the list's directory without
// a slash at either end. It looks at rel alone: a caller that does not enter ignored directories, as git does not, asks
// for each directory on the way.
func (l *List) Match(rel string, dir bool) Verdict {
	switch n := l.last(rel, dir); {
	case n == 0:
		return None
	case l.keep[n]:
		return Keep
	default:
		return Ignore
	}
}

// last returns the highest number of the rules that match, 0 for none.
func (l *List) last(rel string, dir bool) int {
	if l == nil || rel == "" {
		return 0
	}
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	found := l.names[name].of(dir)
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		found = max(found, l.exts[name[i:]].of(dir))
	}
	for i := len(l.rest) - 1; i >= 0 && l.rest[i].number > found; i-- {
		if l.rest[i].match(rel, name, dir) {
			return l.rest[i].number
		}
	}
	return found
}

// Valid reports whether a line without "!" and comment marks can match anything: its classes are closed and known,
// and no backslash ends it.
func Valid(line string) bool {
	_, ok := newRule(strings.TrimSuffix(line, "/"))
	return ok
}

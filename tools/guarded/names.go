package guarded

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A fileName is a pattern for files wherever they stand: components with `*` in them, and `**` for any number of
// components, as in `.git/modules/**/config`. It matches what it names and everything below.
type fileName struct {
	text  string // as written
	parts []part
	last  bool // nothing below it is meant
	// a component after it that makes it an ordinary path, exactly so spelt; "": there is none
	but   string
	plain func(first string) bool // spellings of the first component that are ordinary; nil: none
}

// A part is one component of a name.
type part struct {
	deep    bool   // `**`
	literal []byte // folded; without stars
	pieces  [][]byte
	short   shortName
}

// A Names finds names in paths. It does not change after it was made, and is safe for concurrent use. nil finds
// nothing.
type Names struct {
	all   []*fileName
	first map[string][]*fileName // names without a star in their first component, by that component
	stars []*fileName            // the others
	start [utf8.RuneSelf]bool    // ASCII that a component may begin with: a cheap test before the dear one
}

// errDeep keeps matching linear in the length of a path.
var errDeep = errors.New("** may stand once before the end")

// parseName reads a name as an operator writes it. A `/**` at its end says what holds without it.
func parseName(text string) (*fileName, error) {
	trimmed := strings.TrimSuffix(strings.TrimSuffix(text, "**"), "/")
	switch {
	case trimmed == "":
		return nil, errors.New("it names nothing")
	case strings.ContainsFunc(text, Invisible) || !utf8.ValidString(text):
		return nil, errors.New("it has invisible characters")
	case strings.HasPrefix(text, "/"), strings.HasPrefix(text, "~"):
		return nil, errors.New("a name counts at any depth, so it does not begin with / or ~")
	case strings.ContainsAny(text, `?[]\!`):
		return nil, errors.New("only * and ** are understood in names")
	}
	n := &fileName{text: text}
	deep := 0
	for component := range strings.SplitSeq(trimmed, "/") {
		p, err := parsePart(component)
		if err != nil {
			return nil, err
		}
		if p.deep {
			deep++
		}
		n.parts = append(n.parts, p)
	}
	if deep > 1 || n.parts[0].deep || n.parts[len(n.parts)-1].deep {
		return nil, errDeep
	}
	return n, nil
}

func parsePart(component string) (part, error) {
	if component == "**" {
		return part{deep: true}, nil
	}
	folded := fold(nil, component)
	if len(folded) == 0 {
		return part{}, fmt.Errorf("the component %q never matches", component)
	}
	p := part{short: shorten(string(folded))}
	if bytes.IndexByte(folded, '*') < 0 {
		p.literal = folded
	} else {
		p.pieces = bytes.Split(folded, []byte("*"))
	}
	return p, nil
}

// newNames indexes names.
func newNames(names []*fileName) *Names {
	s := &Names{all: names, first: map[string][]*fileName{}}
	for _, n := range names {
		lead := n.parts[0].literal
		if lead != nil {
			s.first[string(lead)] = append(s.first[string(lead)], n)
		} else {
			s.stars = append(s.stars, n)
			lead = n.parts[0].pieces[0]
		}
		if len(lead) == 0 || lead[0] >= utf8.RuneSelf { // what composes to it may begin with an ASCII letter
			for c := range s.start {
				s.start[c] = true
			}
			continue
		}
		s.start[lead[0]] = true
		if 'a' <= lead[0] && lead[0] <= 'z' {
			s.start[lead[0]-'a'+'A'] = true
		}
	}
	return s
}

// Texts are the names as written.
func (s *Names) Texts() []string {
	texts := make([]string, len(s.all))
	for i, n := range s.all {
		texts[i] = n.text
	}
	return texts
}

// Find returns the name, as written, that file or a directory on its way falls under; "": none. file is a path with
// slashes and may be relative.
func (s *Names) Find(file string) string {
	if s == nil {
		return ""
	}
	found := s.search(file)
	if found == nil && strings.Contains(file, "..") {
		found = s.search(path.Clean(file))
	}
	if found == nil {
		return ""
	}
	return found.text
}

func (s *Names) search(path string) *fileName {
	var space [64]byte
	for path != "" {
		component, rest, _ := strings.Cut(path, "/")
		path = rest
		if component == "" || component[0] < utf8.RuneSelf && !s.start[component[0]] && strings.IndexByte(component,
			'~') < 0 {
			continue
		}
		folded := fold(space[:0], component)
		for _, n := range s.first[string(folded)] {
			if n.goesOn(component, rest) {
				return n
			}
		}
		for _, n := range s.stars {
			if n.parts[0].is(folded) && n.goesOn(component, rest) {
				return n
			}
		}
		if bytes.IndexByte(folded, '~') < 0 {
			continue
		}
		for _, n := range s.all {
			if n.parts[0].short.is(folded) && n.goesOn(component, rest) {
				return n
			}
		}
	}
	return nil
}

// goesOn says whether rest, the path after the component first, goes on as the name does.
func (n *fileName) goesOn(first, rest string) bool {
	if n.plain != nil && n.plain(first) || n.but != "" && excepted(rest, n.but) {
		return false
	}
	rest, ok := follow(n.parts[1:], rest)
	if !ok || !n.last {
		return ok
	}
	var space [64]byte
	folded, _ := next(space[:0], rest)
	return len(folded) == 0
}

// excepted says whether rest begins with the component but. No exception is made for a path with components that some
// system leaves out, as they may lead out of the directory again.
func excepted(rest, but string) bool {
	first, rest, _ := strings.Cut(rest, "/")
	if first != but {
		return false
	}
	var space [64]byte
	for rest != "" {
		var component string
		component, rest, _ = strings.Cut(rest, "/")
		if component != "" && len(fold(space[:0], component)) == 0 {
			return false
		}
	}
	return true
}

// follow matches parts against the beginning of path and returns what comes after them.
func follow(parts []part, path string) (rest string, ok bool) {
	var space [64]byte
	for i := range parts {
		if parts[i].deep {
			return followDeep(parts[i+1:], path)
		}
		var folded []byte
		if folded, path = next(space[:0], path); len(folded) == 0 ||
			!parts[i].is(folded) && !parts[i].short.is(folded) {
			return "", false
		}
	}
	return path, true
}

// followDeep matches parts from any component of path on.
func followDeep(parts []part, path string) (rest string, ok bool) {
	for path != "" {
		if rest, ok = follow(parts, path); ok {
			return rest, true
		}
		_, path, _ = strings.Cut(path, "/")
	}
	return "", false
}

// next returns the next component of path that counts, folded into space, and what comes after it.
func next(space []byte, path string) (folded []byte, rest string) {
	for path != "" {
		component, after, _ := strings.Cut(path, "/")
		path = after
		if folded = fold(space, component); len(folded) > 0 {
			return folded, path
		}
	}
	return nil, ""
}

// is says whether a folded component is what the part says; each star stands for any text.
func (p *part) is(folded []byte) bool {
	if p.literal != nil {
		return bytes.Equal(p.literal, folded)
	}
	if len(p.pieces) == 0 || !bytes.HasPrefix(folded, p.pieces[0]) {
		return false
	}
	folded = folded[len(p.pieces[0]):]
	last := len(p.pieces) - 1
	for _, piece := range p.pieces[1:last] {
		i := bytes.Index(folded, piece)
		if i < 0 {
			return false
		}
		folded = folded[i+len(piece):]
	}
	return bytes.HasSuffix(folded, p.pieces[last])
}

// Invisible says whether a character does not show on a screen. In a rule or a name it is a mistake or a trick.
func Invisible(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == unicode.ReplacementChar
}

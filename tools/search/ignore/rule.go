package ignore

import "strings"

// A rule is one line that means something.
type rule struct {
	number  int    // its place in the list, from 1
	dirOnly bool   // the line ended in "/"
	byName  bool   // no "/" in it: compared with the last component only
	head    string // the bytes before the first special one; compared first, as in git
	suffix  string // literal bytes that every match ends with
	tail    []atom // what follows head
}

// newRule reads the text of a line without "!" and without the final "/". It reports false for a text
// that can match nothing: an unclosed or unknown class, or a backslash at the end.
func newRule(text string) (rule, bool) {
	r := rule{byName: !strings.Contains(text, "/")}
	text = strings.TrimPrefix(text, "/")
	special := strings.IndexAny(text, `*?[\`)
	if special < 0 {
		r.head = text
		return r, true
	}
	r.head = text[:special]
	tail, ok := compile(text[special:], !r.byName)
	if !ok {
		return rule{}, false
	}
	r.tail = tail
	r.suffix = literalEnd(tail)
	return r, true
}

// literalEnd returns the literal bytes at the end of a pattern.
func literalEnd(tail []atom) string {
	i := len(tail)
	for i > 0 && tail[i-1].kind == literal {
		i--
	}
	b := make([]byte, 0, len(tail)-i)
	for _, a := range tail[i:] {
		b = append(b, a.char)
	}
	return string(b)
}

// match decides for one path; name is its last component.
func (r *rule) match(rel, name string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	text := rel
	if r.byName {
		text = name
	}
	if !strings.HasPrefix(text, r.head) {
		return false
	}
	text = text[len(r.head):]
	if len(r.tail) == 0 {
		return text == ""
	}
	return strings.HasSuffix(text, r.suffix) && wild(r.tail, text)
}

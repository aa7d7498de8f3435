package notebook

import (
	"bytes"
	"iter"
	"strings"
)

// newline is only read.
var newline = []byte("\n")

// mark is the byte order mark of UTF-8. It is only read.
var mark = []byte("\xef\xbb\xbf")

// A span is where a value is in the file: the offset of its first byte, and of the byte after its last.
type span struct{ from, to int }

// A member is one key of an object and its value.
type member struct{ key, value span }

// A doc is the whole file, and check has accepted it: nothing here looks for errors in it, or goes past its end.
type doc []byte

func (d doc) bytes(s span) []byte { return d[s.from:s.to] }

// blank returns the first offset from at on that is not white space.
func (d doc) blank(at int) int {
	for at < len(d) && (d[at] == ' ' || d[at] == '\n' || d[at] == '\r' || d[at] == '\t') {
		at++
	}
	return at
}

// blankBefore returns the offset where the white space begins that ends at at.
func (d doc) blankBefore(at int) int {
	for at > 0 && (d[at-1] == ' ' || d[at-1] == '\n' || d[at-1] == '\r' || d[at-1] == '\t') {
		at--
	}
	return at
}

// value returns the value that begins at at.
func (d doc) value(at int) span {
	switch d[at] {
	case '"':
		return span{at, d.quoteEnd(at)}
	case '{', '[':
		return span{at, d.bracketEnd(at)}
	}
	to := at
	for to < len(d) && strings.IndexByte(",]} \t\r\n", d[to]) < 0 {
		to++
	}
	return span{at, to}
}

// quoteEnd returns the offset after the string that begins at at.
func (d doc) quoteEnd(at int) int {
	for i := at + 1; ; {
		i += bytes.IndexByte(d[i:], '"')
		slashes := 0
		for d[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
}

// bracketEnd returns the offset after the list or object that begins at at.
func (d doc) bracketEnd(at int) int {
	depth := 0
	for {
		switch d[at] {
		case '"':
			at = d.quoteEnd(at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		at++
	}
}

// members walks over an object; nothing else has members.
func (d doc) members(v span) iter.Seq[member] {
	return func(yield func(member) bool) {
		if d[v.from] != '{' {
			return
		}
		for at := d.blank(v.from + 1); d[at] != '}'; {
			key := d.value(at)
			value := d.value(d.blank(d.blank(key.to) + 1))
			if !yield(member{key, value}) {
				return
			}
			at = d.next(value.to)
		}
	}
}

// elements walks over a list; nothing else has elements.
func (d doc) elements(v span) iter.Seq[span] {
	return func(yield func(span) bool) {
		if d[v.from] != '[' {
			return
		}
		for at := d.blank(v.from + 1); d[at] != ']'; {
			value := d.value(at)
			if !yield(value) {
				return
			}
			at = d.next(value.to)
		}
	}
}

// next goes over white space and a comma.
func (d doc) next(at int) int {
	if at = d.blank(at); d[at] == ',' {
		at = d.blank(at + 1)
	}
	return at
}

// get returns the value of a key. Of two with the same name the last counts, as for every program that reads notebooks.
func (d doc) get(v span, name string) (found span, ok bool) {
	for m := range d.members(v) {
		if string(d.name(m.key)) == name {
			found, ok = m.value, true
		}
	}
	return found, ok
}

// maxName is how many bytes of a key with escapes are looked at; no key that counts here is as long.
const maxName = 64

// name is what a key says.
func (d doc) name(key span) []byte {
	inner := d[key.from+1 : key.to-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	out, _ := d.appendText(nil, key, maxName)
	return out
}

// is says whether v begins like a list ('['), an object ('{') or a string ('"').
func (d doc) is(v span, first byte) bool { return d[v.from] == first }

package bash

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A spelt is one word as the program would see it.
type spelt struct {
	text  string // without quotes and backslashes; expansions as written: `"$x"/*` is `$x/*`
	bare  string // text without the expansions, which may turn out empty: `r$@m` is `rm`
	shape shape
	from  int // where it stands in the text of its script, in bytes; from == to: it was made, not written
	to    int
}

// A shape says what of a word only the shell knows.
type shape uint16

// The shapes.
const (
	computed shape = 1 << iota // an expansion or a substitution
	escaped                    // $'…' or $"…"
	globbed                    // an unquoted * ? [
	braced                     // {a,b} or {1..3}
	homely                     // it begins with an unquoted ~
	runs                       // computed by a command: $(…), <(…)
	lavish                     // its braces stand for more words than are read
	perhaps                    // not written at all: a name in what may be a directory
	dotted                     // found: its globs also match names that begin with a dot
	ofGit                      // not written at all: git's own configuration
	odd                        // an unquoted backslash or lone [, braces that only bash tells, ~ behind = or :
)

// spell reads words, and gives each alternative of braces a word of its own. text is what the positions count in.
func spell(text string, words []*syntax.Word) []spelt {
	read := make([]spelt, 0, len(words))
	for _, w := range words {
		read = spellOne(read, text, w)
	}
	return read
}

// spellOne appends what the word w stands for.
func spellOne(read []spelt, text string, w *syntax.Word) []spelt {
	one := spelt{from: int(w.Pos().Offset()), to: int(w.End().Offset())}
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, `\*?[{~`) {
			one.text, one.bare = lit.Value, lit.Value
			return append(read, one)
		}
	}
	sp := speller{source: text, braces: hasBraces(w)}
	sp.parts(w.Parts, false)
	one.text, one.shape = string(sp.text), sp.shape
	if one.bare = one.text; sp.shape&computed != 0 {
		one.bare = string(sp.bare)
	}
	return sp.finish(read, one)
}

// finish appends a word that is put together, or what its braces stand for.
func (sp *speller) finish(read []spelt, one spelt) []spelt {
	if !sp.braces {
		return append(read, one)
	}
	if strings.Contains(one.text, string(braceComma)) || strings.Contains(one.text, "..") {
		one.shape |= odd
	}
	texts, whole := expandBraces(one.text)
	bares, _ := expandBraces(one.bare)
	if !whole {
		one.shape |= lavish
	}
	if len(texts) > 1 {
		one.shape |= braced
	}
	for i := range texts {
		one.text, one.bare = unmark(texts[i]), unmark(bares[min(i, len(bares)-1)])
		read = append(read, one)
	}
	return read
}

// A speller puts the text of one word together.
type speller struct {
	source string
	text   []byte
	bare   []byte // only once the word is computed: until then it is text
	shape  shape
	braces bool // unquoted braces are marked
}

func (sp *speller) write(s string) {
	sp.text = append(sp.text, s...)
	if sp.shape&computed != 0 {
		sp.bare = append(sp.bare, s...)
	}
}

// expansion writes what only the shell knows.
func (sp *speller) expansion(p syntax.WordPart) {
	if sp.shape&computed == 0 {
		sp.shape |= computed
		sp.bare = append(sp.bare, sp.text...)
	}
	switch p.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		sp.shape |= runs
	case *syntax.ExtGlob:
		sp.shape |= globbed
	}
	sp.text = append(sp.text, cut(sp.source, p)...)
}

func (sp *speller) parts(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if quoted {
				sp.inQuotes(p.Value)
			} else {
				sp.plain(p.Value, i == 0)
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				sp.shape |= escaped
				sp.write(unescape(p.Value))
			} else {
				sp.write(p.Value)
			}
		case *syntax.DblQuoted:
			if p.Dollar {
				sp.shape |= escaped
			}
			sp.parts(p.Parts, true)
		default:
			sp.expansion(p)
		}
	}
}

// cut returns the source of a node.
func cut(source string, n syntax.Node) string {
	return between(source, int(n.Pos().Offset()), int(n.End().Offset()))
}

// between is source[from:to], as far as there is any.
func between(source string, from, to int) string {
	from, to = min(max(from, 0), len(source)), min(max(to, 0), len(source))
	if from >= to {
		return ""
	}
	return source[from:to]
}

// plain writes an unquoted literal.
func (sp *speller) plain(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		sp.shape |= homely
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case '\\':
			sp.shape |= odd
			if i++; i < len(s) {
				sp.write(s[i : i+1])
			}
			continue
		case '~':
			if n := len(sp.text); n > 0 && (sp.text[n-1] == '=' || sp.text[n-1] == ':') {
				sp.shape |= odd
			}
		case '*', '?', '[':
			if c != '[' || strings.IndexByte(s[i:], ']') > 0 {
				sp.shape |= globbed
			} else {
				sp.shape |= odd
			}
		case '.':
			if sp.braces && strings.HasPrefix(s[i:], "..") && strings.LastIndexByte(s[:i], '{') >= 0 &&
				strings.IndexByte(s[i:], '}') > 0 {
				sp.shape |= braced
			}
		}
		if sp.braces {
			if k := strings.IndexByte("{,}", c); k >= 0 {
				c = [...]byte{braceOpen, braceComma, braceClose}[k]
			}
		}
		sp.text = append(sp.text, c)
		if sp.shape&computed != 0 {
			sp.bare = append(sp.bare, c)
		}
	}
}

// inQuotes writes a literal between double quotes, where a backslash counts before few characters only.
func (sp *speller) inQuotes(s string) {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			break
		}
		if strings.IndexByte("$`\"\\", s[i+1]) < 0 {
			sp.write(s[:i+2])
		} else {
			sp.write(s[:i])
			sp.write(s[i+1 : i+2])
		}
		s = s[i+2:]
	}
	sp.write(s)
}

// name is what the word means as the name of a command: its last path component.
func (w *spelt) name() string {
	if i := strings.LastIndexByte(w.bare, '/'); i >= 0 {
		return path.Base(w.bare)
	}
	return w.bare
}

// known says that the word is what it looks like, whatever the shell knows.
func (w *spelt) known() bool { return w.shape&(computed|globbed|braced|homely) == 0 }

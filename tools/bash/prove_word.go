package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is one word of a simple command as the program will see it, if no glob in it matches.
type word struct {
	text  string
	shape string // text with `q` for each quoted byte; equal to text: nothing is quoted; "": everything is
	in    *syntax.Word
	skip  int // bytes of the word before text: it is a value that is glued to an option
}

// globs are what makes an unquoted word match names of files.
const globs = "*?["

// glob says whether the word may become other words, or several.
func (w word) glob() bool { return strings.ContainsAny(w.shape, globs) }

// leads says whether it may become any word, such as an option.
func (w word) leads() bool { return w.shape != "" && strings.IndexByte(globs, w.shape[0]) >= 0 }

// from returns the word without its first n bytes.
func (w word) from(n int) word {
	w.text, w.skip = w.text[n:], w.skip+n
	if w.shape != "" {
		w.shape = w.shape[n:]
	}
	return w
}

// word is rule R2 for one word. why: it is not plain.
func (p *prover) word(in *syntax.Word) (word, string) {
	w, why := p.plain(in)
	w.in = in
	return w, why
}

func (p *prover) plain(in *syntax.Word) (w word, why string) {
	if len(in.Parts) == 1 {
		switch part := in.Parts[0].(type) {
		case *syntax.Lit:
			switch part.Value {
			case `\(`, `\)`, `\!`:
				return word{text: part.Value[1:]}, ""
			}
			w = word{text: part.Value, shape: part.Value}
			return w, shapeFault(w, true)
		case *syntax.SglQuoted:
			if !part.Dollar {
				return word{text: part.Value}, ""
			}
		}
	}
	var text, shape strings.Builder
	for i, part := range in.Parts {
		plain := false
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(part.Value)
			shape.WriteString(part.Value)
			// `$` before a quote means something to bash. The parser knows that, but nothing is lost by not relying on
			// it.
			plain = i == len(in.Parts)-1 || !strings.HasSuffix(part.Value, "$")
		case *syntax.SglQuoted:
			text.WriteString(part.Value)
			pad(&shape, len(part.Value))
			plain = !part.Dollar
		case *syntax.DblQuoted:
			before := text.Len()
			plain = !part.Dollar && unquote(&text, part.Parts)
			pad(&shape, text.Len()-before)
		}
		if !plain {
			return w, p.partFault(part)
		}
	}
	w = word{text: text.String(), shape: shape.String()}
	return w, shapeFault(w, false)
}

func pad(b *strings.Builder, n int) {
	for range n {
		b.WriteByte('q')
	}
}

// unquote writes what double quotes hold. false: something in them is expanded.
func unquote(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return false
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			switch {
			case c == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\", lit.Value[i+1]) >= 0:
				i++
				c = lit.Value[i]
			case c == '$' && expands(lit.Value[i+1:]), c == '`':
				return false
			}
			b.WriteByte(c)
		}
	}
	return true
}

// expands says whether bash might expand a `$` before rest. The parser gives such a `$` nodes of their own; this holds
// even if it should miss one.
func expands(rest string) bool {
	if rest == "" {
		return false
	}
	c := rest[0]
	return c >= 0x80 || c == '_' || isAlpha(c) || isDigit(c) || strings.IndexByte("{([@*#?$!-'\"`", c) >= 0
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// partFault names the part of a word that is not plain.
func (p *prover) partFault(part syntax.WordPart) string {
	name := nodeName(part)
	switch part := part.(type) {
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			if _, ok := inner.(*syntax.Lit); !ok {
				return nodeName(inner) + ": " + p.source(inner)
			}
		}
		name = `$"…"`
	case *syntax.SglQuoted:
		name = "$'…'"
	case *syntax.Lit:
		name = "$ before a quote"
	}
	return name + ": " + p.source(part)
}

// shapeFault says what bash would make of unquoted characters that the parser leaves in literals; "": nothing. whole:
// the word is one literal.
func shapeFault(w word, whole bool) string {
	s := w.shape
	if s == "" {
		return ""
	}
	switch {
	case s[0] == '~':
		return "tilde: " + snippet(w.text)
	case s[0] == '=' && !(whole && (s == "=" || s == "==")):
		return "leading =: " + snippet(w.text)
	case strings.IndexByte(s, '\\') >= 0:
		return "backslash: " + snippet(w.text)
	}
	// `a=~` and `a=b:~` are expanded wherever they stand, unlike `--a=~`; the difference is not worth a rule.
	if strings.Contains(s, "=~") || strings.Contains(s, ":~") {
		return "tilde: " + snippet(w.text)
	}
	if braces(s) {
		return "braces: " + snippet(w.text)
	}
	for i := 0; i < len(s); i++ {
		if s[i] == '`' || s[i] == '$' && expands(s[i+1:]) {
			return "expansion: " + snippet(w.text)
		}
	}
	return ""
}

// braces says whether bash might make several words of one. It looks for the end as bash 5.2 does, braces.c
// brace_gobble: the first `}` of the same depth that has a `,` or `..` before it, so that `{a},b}` is `a}` and `b`.
func braces(s string) bool {
	for {
		i := strings.IndexByte(s, '{')
		if i < 0 {
			return false
		}
		s = s[i+1:]
		if group(s) {
			return true
		}
	}
}

// group says whether s, which follows a `{`, goes on to its end.
func group(s string) bool {
	depth, parts := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '}' && depth == 0 && parts:
			return true
		case s[i] == '{':
			depth++
		case s[i] == '}' && depth > 0:
			depth--
		case depth == 0 && (s[i] == ',' || strings.HasPrefix(s[i:], "..")):
			parts = true
		}
	}
	return false
}

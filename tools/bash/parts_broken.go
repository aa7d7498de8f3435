package bash

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// despite reads a text with mistakes: bash runs the lines before the first, ends a here-document where the text does,
// and may see no mistake where our parser does. Trees with a mistake in them have holes, so only whole ones are looked
// at.
func (f *finding) despite(s *script, sc scope) {
	rest, err := s.text, s.err
	for range maxMistakes {
		mistake, ok := errors.AsType[syntax.ParseError](err)
		if !ok {
			e, ok := errors.AsType[syntax.LangError](err)
			if !ok {
				return
			}
			mistake.Pos = e.Pos
		}
		if _, word, ok := strings.Cut(mistake.Text, "unclosed here-document `"); ok {
			rest += "\n" + strings.TrimSuffix(word, "`") + "\n"
		} else {
			at := min(int(mistake.Pos.Offset()), len(rest))
			f.before(rest[:at], sc)
			_, rest, _ = strings.Cut(rest[at:], "\n")
		}
		part := newScript(rest)
		if part.file != nil {
			sc.in = part
			f.stmts(part.file.Stmts, &sc)
			return
		}
		err = part.err
	}
}

// before reads the lines before a mistake. The last of them may belong to what the mistake is in.
func (f *finding) before(text string, sc scope) {
	for range maxUnfinished {
		text = text[:strings.LastIndexByte(text, '\n')+1]
		if text == "" {
			return
		}
		if part := newScript(text); part.file != nil {
			sc.in = part
			f.stmts(part.file.Stmts, &sc)
			return
		}
		text = text[:len(text)-1]
	}
}

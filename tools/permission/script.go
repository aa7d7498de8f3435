package permission

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A script is a command text with its syntax tree.
type script struct {
	text string
	file *syntax.File // nil: it does not parse
	err  error        // why not

	finding *finding // see found; nil: not yet worked out
}

func newScript(text string) *script {
	s := &script{text: text}
	s.file, s.err = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if s.err != nil {
		s.file = nil
	}
	return s
}

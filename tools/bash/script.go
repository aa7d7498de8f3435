package bash

import (
	"errors"
	"io"
	"runtime"

	"mvdan.cc/sh/v3/syntax"
)

// maxFrames is how deep the calls of the parser may go before it is given the next KiB of text. It has no limit of its
// own: 100 KB of `(` took 512 MiB of stack, and 300 KB ended the process, which nothing can recover (v3.14.1). This
// leaves some 1,000 nested parentheses, and a stack of some 10 MiB at most.
const maxFrames = 20_000

// errNested is why a text is not read that nests deeper than maxFrames allows.
var errNested = errors.New("it nests too deep")

// A script is a command text with its syntax tree.
type script struct {
	text string
	file *syntax.File // nil: it does not parse
	err  error        // why not

	finding *finding // see found; nil: not yet worked out
	fault   *string  // see textFault; nil: not yet worked out
	prover  *prover  // see newProver; nil: nobody asked
}

func newScript(text string) *script {
	s := &script{text: text}
	s.file, s.err = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(&textReader{text}, "")
	if s.err != nil {
		s.file = nil
	}
	return s
}

// A textReader gives the parser its text. The parser asks for a KiB at a time in the midst of its recursion, so this is
// where its depth can be seen.
type textReader struct{ text string }

func (r *textReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	if runtime.Callers(maxFrames, make([]uintptr, 1)) > 0 {
		return 0, errNested
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

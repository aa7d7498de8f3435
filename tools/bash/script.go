package bash

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"

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
	pieced  string   // see pieces; "": not computed yet
}

// parsers are used again, since a new one costs as much as a short text.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

func newScript(text string) *script {
	s := &script{text: text}
	p := parsers.Get().(*syntax.Parser)
	s.file, s.err = p.Parse(&textReader{text}, "")
	parsers.Put(p)
	if s.err == nil && !certainDelimiters(s.file, text) {
		s.err = errDelimiter
	}
	if s.err != nil {
		s.file = nil
	}
	return s
}

// Unfinished says that a shell which has read text, with the end of its last line, waits for more of the same command.
func Unfinished(text string) bool {
	if strings.HasSuffix(strings.TrimSuffix(text, "\n"), `\`) {
		return true
	}
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(&textReader{text}, "")
	return err != nil && syntax.IsIncomplete(err)
}

// errDelimiter is why a text is not read in which bash may end a here-document elsewhere: for `<<'E'#` the parser
// (v3.14.1) takes E for the delimiter and the rest of the line for a comment, bash takes `E#`, and runs what follows.
var errDelimiter = errors.New("the delimiter of a here-document is not certain")

// certainDelimiters says whether each delimiter of a here-document ends where a word ends for bash.
func certainDelimiters(file *syntax.File, text string) bool {
	if !strings.Contains(text, "<<") {
		return true
	}
	certain := true
	syntax.Walk(file, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) {
			rest := text[min(int(r.Word.End().Offset()), len(text)):]
			certain = certain && (rest == "" || strings.IndexByte(" \t\n;|&<>()", rest[0]) >= 0)
		}
		return certain
	})
	return certain
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

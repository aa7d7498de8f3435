package bash

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// piped reads what `echo TEXT |` and here-documents give to a shell.
func (f *finding) piped(c *syntax.BinaryCmd, sc *scope) {
	from, ok := c.X.Cmd.(*syntax.CallExpr)
	if !ok || len(from.Args) == 0 || !f.feedsCommands(c.Y) {
		return
	}
	if words := spell(sc.in.text, from.Args); words[0].name() == "echo" || words[0].name() == "printf" {
		f.nested(joined(words[1:]), *sc)
	}
	for _, r := range c.X.Redirs {
		if text, ok := hereText(sc.in.text, r); ok {
			f.nested(text, *sc)
		}
	}
}

// feedsCommands says whether a statement that was read runs command lines of its input.
func (f *finding) feedsCommands(stmt *syntax.Stmt) bool {
	for i := len(f.commands) - 1; i >= 0; i-- {
		if c := &f.commands[i]; c.stmt == stmt {
			_, call := c.node.(*syntax.CallExpr)
			return call &&
				slices.ContainsFunc(c.heads, head.readsCommands)
		}
	}
	return false
}

// hereText is the text of a here-document or here-string; not ok: r is none.
func hereText(text string, r *syntax.Redirect) (string, bool) {
	switch {
	case r.Hdoc != nil:
		return literalText(text, r.Hdoc), true
	case r.Op == syntax.WordHdoc:
		return literalText(text, r.Word), true
	}
	return "", false
}

// fedTexts reads here-documents and here-strings that feed a shell.
func (f *finding) fedTexts(c *simple, sc *scope) {
	shell := false
	for _, h := range c.heads {
		shell = shell || h.readsCommands()
	}
	if !shell {
		return
	}
	for _, r := range c.stmt.Redirs {
		if text, ok := hereText(sc.in.text, r); ok {
			f.nested(text, *sc)
		}
	}
}

// literalText is the text of a here-document or here-string.
func literalText(text string, w *syntax.Word) string {
	sp := speller{source: text}
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			sp.write(lit.Value)
			continue
		}
		sp.parts([]syntax.WordPart{p}, false)
	}
	return string(sp.text)
}

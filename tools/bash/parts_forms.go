package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// blanks are what separates words for the shell; other white space is part of them.
const wordBreaks = " \t\n"

// harmless says whether rules that allow look past assigning to a variable.
func harmless(name string) bool {
	switch name {
	case "LANG", "TZ", "TERM", "NO_COLOR", "FORCE_COLOR", "CI", "GOOS", "GOARCH", "CGO_ENABLED", "RUST_BACKTRACE",
		"NODE_ENV", "PYTHONUNBUFFERED":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// allowText is the text that a rule which allows must match: as written, without harmless assignments, without wrappers
// that only say how to run, and without redirections that keep nothing.
func allowText(c *simple) string {
	from := -1
	if _, call := c.node.(*syntax.CallExpr); call && len(c.words) > 0 {
		plain := true
		for _, a := range c.assigns {
			plain = plain && harmless(a.Name.Value) && a.Value != nil && literalWord(a.Value) && !a.Append
		}
		if plain {
			from = c.words[innermost(c)].from
		}
	}
	return written(c, from, true)
}

// innermost is where the command begins behind all wrappers that rules look past.
func innermost(c *simple) int {
	at := 0
	for _, h := range c.heads[1:] {
		if !h.sure || !looksPast(c.words, at, h.at) || h.via == "find" {
			break
		}
		at = h.at
	}
	return at
}

// written is the source of a command with its redirections, without the bodies of here-documents: all of it (from < 0),
// or the words from an offset on. quiet leaves out redirections to nowhere and of one output into the other.
func written(c *simple, from int, quiet bool) string {
	text := c.in.text
	if len(c.stmt.Redirs) == 0 && c.node != nil { // as most are
		start := int(c.node.Pos().Offset())
		return strings.Trim(between(text, max(start, from), int(c.node.End().Offset())), wordBreaks)
	}
	type span struct{ from, to int }
	var spans []span
	if c.node != nil {
		start := int(c.node.Pos().Offset())
		spans = append(spans, span{max(start, from), int(c.node.End().Offset())})
	}
	dropped := false
	for _, r := range c.stmt.Redirs {
		if quiet && keepsNothing(r) {
			dropped = true
			continue
		}
		spans = append(spans, span{int(r.Pos().Offset()), int(r.Word.End().Offset())})
	}
	if len(spans) == 0 {
		return strings.Trim(cut(text, c.stmt), wordBreaks)
	}
	inside := false // a redirection between the words
	for _, s := range spans[1:] {
		inside = inside || s.from < spans[0].to
	}
	if c.node != nil && len(c.words) > 0 && (inside || dropped && betweenWords(c)) {
		return strings.Join(pieced(c, from, quiet), " ")
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	if !dropped {
		return strings.Trim(between(text, spans[0].from, spans[len(spans)-1].to), wordBreaks)
	}
	parts := make([]string, len(spans))
	for i, s := range spans {
		parts[i] = between(text, s.from, s.to)
	}
	return strings.Join(parts, " ")
}

// betweenWords says whether a redirection stands before the last word.
func betweenWords(c *simple) bool {
	end := int(c.node.End().Offset())
	return slices.ContainsFunc(c.stmt.Redirs, func(r *syntax.Redirect) bool { return int(r.Pos().Offset()) < end })
}

// pieced puts assignments, words and redirections together that are mixed in the source.
func pieced(c *simple, from int, quiet bool) []string {
	var pieces []string
	if from < 0 {
		for _, a := range c.assigns {
			pieces = append(pieces, cut(c.in.text, a))
		}
	}
	last := -1
	for _, w := range c.words {
		if w.from != last && w.from >= from {
			pieces = append(pieces, between(c.in.text, w.from, w.to))
		}
		last = w.from // words that braces made stand at one place
	}
	for _, r := range c.stmt.Redirs {
		if !quiet || !keepsNothing(r) {
			pieces = append(pieces, between(c.in.text, int(r.Pos().Offset()), int(r.Word.End().Offset())))
		}
	}
	return pieces
}

// keepsNothing says whether a redirection only drops an output or joins two.
func keepsNothing(r *syntax.Redirect) bool {
	to := r.Word.Lit()
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return to == "/dev/null"
	case syntax.DplOut:
		return to == "1" || to == "2"
	}
	return false
}

// formsOf are all texts of a part that rules which deny or ask match.
func formsOf(c *simple) (forms []string, whole bool) {
	forms = append(make([]string, 0, 4), written(c, -1, false))
	if len(c.stmt.Redirs) > 0 {
		if t := written(c, -1, true); t != forms[0] && t != "" {
			forms = append(forms, t)
		}
	}
	for _, h := range c.heads {
		if !h.quiet && (h.at > 0 || len(c.assigns) > 0) {
			// of one text
			forms = appendForm(forms, strings.Trim(between(c.in.text, c.words[h.at].from, c.words[h.end-1].to),
				wordBreaks), "")
		}
	}
	return c.appendForms(forms)
}

// maxForms bounds the bytes of all forms of a part: a line of wrappers has as many forms as words, and each is as long
// as the rest of the line.
const maxForms = 1 << 20

// appendForms adds what words mean without quotes and backslashes, from each head on: with the name as written and by
// its last component, with expansions as written and taken for empty, and git also without its own options. whole is
// false if there are more than maxForms.
func (c *simple) appendForms(forms []string) (all []string, whole bool) {
	size := 0
	for n, h := range c.heads {
		if h.quiet {
			continue
		}
		words := c.words[h.at:h.end]
		rest := joined(words[1:])
		if size += len(rest); size > maxForms {
			return forms, false
		}
		if len(words) == 1 {
			rest = ""
		}
		forms = appendForm(forms, words[0].text, rest)
		name := h.name
		forms = appendForm(forms, name, rest)
		bare := false
		for i := range words {
			bare = bare || words[i].text != words[i].bare
		}
		if bare {
			forms = appendForm(forms, name, joinedBare(words[1:]))
		}
		if name == "git" {
			if git := c.reading(n).gitCall(); git.sub != "" {
				forms = appendForm(forms, "git "+git.sub, joined(git.args))
			}
		}
	}
	return forms, true
}

func appendForm(forms []string, name, rest string) []string {
	same := func(form string) bool {
		return len(form) == len(name)+1+len(rest) && form[:len(name)] == name && form[len(name)] == ' ' &&
			form[len(name)+1:] == rest
	}
	if slices.ContainsFunc(forms, same) { // no text is put together then
		return forms
	}
	t := strings.Trim(name+" "+rest, wordBreaks)
	if t == "" || slices.Contains(forms, t) {
		return forms
	}
	return append(forms, t)
}

// joinedBare is joined without expansions; words that were nothing else are gone, as for the shell.
func joinedBare(words []spelt) string {
	var kept []string
	for i := range words {
		if words[i].bare != "" || words[i].shape&computed == 0 {
			kept = append(kept, words[i].bare)
		}
	}
	return strings.Join(kept, " ")
}

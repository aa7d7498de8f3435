package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// takeApart finds the parts of the command, and the files that it is known to touch. inside is what the class of a part
// depends on; Class and Why of the whole are not its business.
func (s *script) takeApart(inside func(string) bool) Analysis {
	f := s.found()
	_, fault := s.readable()
	a := Analysis{
		Parts:   make([]Part, 0, len(f.commands)),
		Unclear: fault != "" || f.odd || f.tooDeep || f.loops || len(f.broken) > 0 || len(s.text) > maxCommand,
	}
	piped := slices.ContainsFunc(f.commands, feeds)
	var fills []fill
	for i := range f.commands {
		before := len(a.Files)
		a.touch(f, &f.commands[i], piped)
		if len(a.Files) > before {
			fills = append(fills, makes(&f.commands[i], a.Files[before:])...)
		}
		a.add(f, &f.commands[i], inside)
	}
	if len(fills) > 0 && a.Hidden == "" {
		if file := f.runsMade(fills); file != "" {
			a.Hidden = file + ": the command writes it before it runs it"
		}
	}
	for _, text := range f.broken {
		a.addBroken(text, text != s.text)
	}
	a.Unclear = a.Unclear || len(a.Parts) > maxParts
	if f.tooDeep {
		a.unread()
	}
	switch {
	case f.data.hidden != "":
		a.Hidden, a.Unclear = f.data.hidden, true
	case len(f.broken) > 0:
		a.Hidden = "it cannot be parsed" // bash may: it takes `! ! rm x`
	}
	return a
}

// feeds says whether a command may start another one for each line of a pipe.
func feeds(c simple) bool {
	return slices.ContainsFunc(c.heads, func(h head) bool { return !h.quiet && h.row.Has("feeds") })
}

// add makes a part of one simple command.
func (a *Analysis) add(f *finding, c *simple, inside func(string) bool) {
	if a.Person == "" {
		a.Person = personFor(c)
	}
	if c.node == nil && c.stmt.Cmd != nil { // redirections of a loop or a block
		a.Unclear = a.Unclear || computedRedirection(c)
		return
	}
	p := Part{Text: allowText(c), Exact: isExact(c), Inner: c.inner}
	var whole bool
	if p.Forms, whole = formsOf(c); !whole {
		a.unread()
	}
	p.Open = c.openForms()
	p.Class, p.Why = c.class(inside)
	// a person decides about what is longer
	if len(c.in.text) <= maxCommand && !p.mayRun(c) {
		a.unread()
	}
	if from, to := leadOf(c); to > 0 && !p.Exact {
		p.Lead = between(c.in.text, from, to)
		p.Exact = !strings.HasPrefix(p.Text, p.Lead)
	}
	for i := range c.uses {
		if c.uses[i].open && !c.heads[i].quiet {
			a.unsure(true, true, "what "+c.heads[i].name+" runs is put together: "+c.uses[i].code)
			t := toucher{a: a, c: c, f: f}
			t.guess(false)
			t.guess(true)
		}
		if !c.heads[i].quiet && a.Hidden == "" && c.uses[i].code != "" {
			a.Hidden = c.heads[i].name + ": " + c.uses[i].code + " runs what no rule can see"
		}
	}
	if !p.Exact {
		p.Edits = editsOf(c)
	}
	a.Parts = append(a.Parts, p)
}

// addBroken gives rules that deny something to look at in a text that does not parse: bash runs the lines before its
// mistake.
func (a *Analysis) addBroken(text string, inner bool) {
	for _, piece := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(";|&\n(){}`", c) }) {
		words := strings.Fields(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(piece))
		if len(words) == 0 {
			continue
		}
		p := Part{Text: strings.Trim(piece, wordBreaks), Exact: true, Inner: inner, Why: "R1: does not parse"}
		c := simple{words: make([]spelt, len(words))}
		for i, w := range words {
			c.words[i] = spelt{text: w, bare: w}
		}
		heads := headsOf(c.words)
		c.heads = heads[:min(len(heads), maxHeads)]
		var whole bool
		p.Forms, whole = c.appendForms([]string{p.Text})
		if !whole || len(heads) > maxHeads {
			a.unread()
		}
		a.Parts = append(a.Parts, p)
	}
}

// unread notes that rules which deny do not see everything: then a person must.
func (a *Analysis) unread() {
	a.Unclear = true
	if a.Person == "" {
		a.Person = "too many nested or chained commands to be checked"
	}
}

// personFor returns why a person must decide, whatever the rules say; "": nothing does.
func personFor(c *simple) string {
	for i := range c.words {
		if c.words[i].shape&lavish != 0 {
			return "braces expand to too many words to be checked"
		}
	}
	for _, h := range c.heads {
		if h.quiet {
			continue
		}
		switch name := h.name; name {
		case "eval", "source", ".", "exec", "zmodload", "emulate":
			return name + " runs commands that no rule can see"
		}
	}
	return ""
}

// isExact says whether a part may be more than its text says, so that no rule with a star allows it.
func isExact(c *simple) bool {
	switch c.node.(type) {
	case nil, *syntax.CallExpr:
	default:
		return true
	}
	for i := range c.words {
		if c.words[i].shape&(computed|escaped|braced) != 0 {
			return true
		}
	}
	for _, as := range c.assigns {
		if as.Name == nil || poisons(as.Name.Value) || as.Name.Value == "PATH" || as.Array != nil || as.Index != nil ||
			as.Value != nil && !literalWord(as.Value) {
			return true
		}
	}
	return computedRedirection(c) || runsWords(c)
}

// literalWord says whether a word has no expansion and no substitution.
func literalWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
		case *syntax.SglQuoted:
			if p.Dollar {
				return false
			}
		case *syntax.DblQuoted:
			for _, p := range p.Parts {
				if _, ok := p.(*syntax.Lit); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

func computedRedirection(c *simple) bool {
	for _, r := range c.stmt.Redirs {
		if !literalWord(r.Word) || r.Hdoc != nil && !literalWord(r.Hdoc) {
			return true
		}
	}
	return false
}

// runsWords says whether a command runs its words as another one, and is no wrapper that rules look past.
func runsWords(c *simple) bool {
	for i, h := range c.heads {
		if h.quiet {
			continue
		}
		words := c.words[h.at:h.end]
		past := i == 0 || looksPast(c.words, c.heads[i-1].at, h.at) || h.sure && leads(h.via)
		if !past || words[0].shape&globbed != 0 || c.uses[i].exact() {
			return true
		}
		if h.row.Has("exact") {
			return true
		}
		switch h.name {
		case "eval", "source", ".", "alias", "trap":
			return true
		case "find", "gfind":
			for j := range words {
				switch words[j].bare {
				case "-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls":
					return true
				}
			}
		}
	}
	return false
}

// leadOf returns where the text of a part begins, and where the name of the command ends that its last package runner
// runs; 0, 0: none runs one.
func leadOf(c *simple) (from, to int) {
	for _, h := range c.heads {
		if h.sure && leads(h.via) {
			from, to = c.words[innermost(c)].from, c.words[h.at].to
		}
	}
	return from, to
}

// looksPast says whether rules that allow look past the wrapper at words[at], whose command begins at next.
func looksPast(words []spelt, at, next int) bool {
	name := words[at].text
	return stripped(name) || name == "xargs" && next == at+1
}

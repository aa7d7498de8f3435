package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Arithmetic, subscripts and prompts run the substitutions in the values that they meet: after `v='a[$(rm x)]'`, bash
// runs `rm x` for `$((v))`, `[[ v -eq 0 ]]` and `unset "$v"`. So once a line evaluates anything, the substitutions in
// all of its literal text count as run.

// An evaluation is what a script evaluates besides its commands.
type evaluation struct {
	f        *finding
	wanted   bool    // something runs the substitutions in values: arithmetic, a subscript, a prompt
	literals []spelt // words outside of commands that may carry a substitution as text
	hidden   string  // why rules that deny may not see everything; "": they do
}

// hide notes why rules that deny may not see everything.
func (e *evaluation) hide(why string) {
	if e.hidden == "" {
		e.hidden = why
	}
}

// in notes what below a node evaluates text, and the words that stand there.
func (e *evaluation) in(n syntax.Node, text string) {
	switch n := n.(type) {
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		e.wanted = true
	case *syntax.UnaryTest:
		e.wanted = e.wanted || n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			e.wanted = true
		}
	case *syntax.ParamExp:
		e.wanted = e.wanted || n.Excl || n.Slice != nil || n.Index != nil && !wholeArray(n.Index) ||
			n.Exp != nil && n.Exp.Op == syntax.OtherParamOps
	case *syntax.Assign:
		e.wanted = e.wanted || n.Index != nil || n.Name != nil &&
			isOneOf(n.Name.Value, "PS0 PS1 PS2 PS4 OPTIND RANDOM SECONDS HISTCMD")
	case *syntax.Word:
		for _, w := range spellOne(nil, text, n) {
			if strings.ContainsAny(w.bare, "$`") { // it may carry a substitution as text
				e.literals = append(e.literals, w)
			}
		}
	}
}

// wholeArray says whether a subscript is `@` or `*`.
func wholeArray(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// by notes what a command evaluates among its words: names with a subscript, and what completion expands.
func (e *evaluation) by(c *simple, n int) {
	h := &c.heads[n]
	words := c.words[h.at:h.end]
	args, r := words[1:], c.reading(n)
	switch name := h.name; name {
	case "let":
		e.wanted = true
	case "declare", "typeset", "local", "export", "readonly":
		e.wanted = e.wanted || r.has("-a", "-A", "-i", "-n") != "" || namesComputed(args)
	case "read", "unset", "getopts", "mapfile", "readarray":
		e.wanted = e.wanted || namesComputed(args)
	case "printf":
		e.wanted = e.wanted || r.has("-v") != "" && namesComputed(args)
	case "wait":
		e.wanted = e.wanted || r.has("-p") != "" && namesComputed(args)
	case "test", "[":
		e.wanted = e.wanted || slices.ContainsFunc(args, func(w spelt) bool {
			return isOneOf(w.bare, "-v -R -eq -ne -lt -le -gt -ge")
		}) && namesComputed(args)
	case "compgen", "complete":
		e.wanted = e.wanted || r.has("-W") != ""
	case "bind", "fc":
		e.hide(name + " runs text that no rule can see")
	case "alias":
		if textsOf(words) != nil {
			e.hide("an alias gives commands another name")
		}
	case "shopt":
		if slices.ContainsFunc(args, func(w spelt) bool { return w.bare == "expand_aliases" }) {
			e.hide("an alias gives commands another name")
		}
	case "set":
		if slices.ContainsFunc(args, func(w spelt) bool { return isOneOf(w.bare, "history histexpand -H") }) {
			e.hide("the history of commands is expanded")
		}
	}
}

// namesComputed says whether a name among words may have a subscript that is more than a number or a word.
func namesComputed(words []spelt) bool {
	return slices.ContainsFunc(words, func(w spelt) bool {
		return w.shape&computed != 0 || strings.Contains(w.bare, "[") && strings.ContainsAny(w.bare, "$`")
	})
}

// all reads the substitutions in all literal text of a line that evaluates something. What it finds may hold
// others.
func (e *evaluation) all() {
	before := len(e.f.commands)
	for i, v, l := 0, 0, 0; i < len(e.f.commands) || v < len(e.literals) || l < len(e.f.loose); {
		for ; v < len(e.literals); v++ {
			e.expand(e.literals[v].bare, scope{}, true)
		}
		for ; l < len(e.f.loose); l++ {
			e.expand(e.f.loose[l].bare, scope{}, true)
		}
		if i < len(e.f.commands) {
			e.expandCommand(e.f.commands[i])
			i++
		}
	}
	e.f.loops = e.f.loops || len(e.f.commands) > before
}

// expandCommand reads the substitutions in the literal words of one command, and in what it is fed.
func (e *evaluation) expandCommand(c simple) {
	sc := scope{stand: c.stand}
	whole := len(c.words) > 0 && isOneOf(c.words[0].bare, "set printf declare export")
	for n := range c.words {
		e.expand(c.words[n].bare, sc, whole)
	}
	for _, r := range c.stmt.Redirs {
		if text, ok := hereText(c.in.text, r); ok {
			e.expand(text, sc, false)
		}
	}
}

// expand reads the substitutions in a text, as bash expands it between double quotes. whole: the text is a value, of
// which no part may stay unread, since the line may put several together.
func (e *evaluation) expand(text string, sc scope, whole bool) {
	if !strings.ContainsAny(text, "$`") {
		return
	}
	if e.f.texts++; e.f.texts > maxTexts {
		e.f.tooDeep = true
		return
	}
	sc.in = &script{text: text, file: &syntax.File{}}
	sc.inner = true
	w, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Document(&textReader{text})
	if err != nil {
		e.hide("it evaluates text that cannot be read")
		return
	}
	e.f.word(w, &sc)
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && whole && strings.ContainsAny(lit.Value, "$`") {
			e.hide("it evaluates text that is put together")
		}
	}
}

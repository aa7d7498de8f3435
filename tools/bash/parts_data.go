package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Arithmetic, subscripts and prompts run the substitutions in the values that they meet: after `v='a[$(rm x)]'`, bash
// runs `rm x` for `$((v))`, `[[ v -eq 0 ]]` and `unset "$v"`. So once a line evaluates anything, the substitutions in
// all of its literal text count as run.

// hide notes why rules that deny may not see everything.
func (f *finding) hide(why string) {
	if f.hidden == "" {
		f.hidden = why
	}
}

// evaluatesIn notes what below a node evaluates text, and the words that stand there.
func (f *finding) evaluatesIn(n syntax.Node, text string) {
	switch n := n.(type) {
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		f.evaluates = true
	case *syntax.UnaryTest:
		f.evaluates = f.evaluates || n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			f.evaluates = true
		}
	case *syntax.ParamExp:
		f.evaluates = f.evaluates || n.Excl || n.Slice != nil || n.Index != nil && !wholeArray(n.Index) ||
			n.Exp != nil && n.Exp.Op == syntax.OtherParamOps
	case *syntax.Assign:
		f.evaluates = f.evaluates || n.Index != nil || n.Name != nil &&
			isOneOf(n.Name.Value, "PS0 PS1 PS2 PS4 OPTIND RANDOM SECONDS HISTCMD")
	case *syntax.Word:
		for _, w := range spellOne(nil, text, n) {
			if strings.ContainsAny(w.bare, "$`") { // it may carry a substitution as text
				f.values = append(f.values, w)
			}
		}
	}
}

// wholeArray says whether a subscript is `@` or `*`.
func wholeArray(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// evaluatesBy notes what a command evaluates among its words: names with a subscript, and what completion expands.
func (f *finding) evaluatesBy(words []spelt) {
	name, args := words[0].name(), words[1:]
	r := read(name, args)
	switch name {
	case "let":
		f.evaluates = true
	case "declare", "typeset", "local", "export", "readonly":
		f.evaluates = f.evaluates || r.has("-a", "-A", "-i", "-n") != "" || namesComputed(args)
	case "read", "unset", "getopts", "mapfile", "readarray":
		f.evaluates = f.evaluates || namesComputed(args)
	case "printf":
		f.evaluates = f.evaluates || r.has("-v") != "" && namesComputed(args)
	case "wait":
		f.evaluates = f.evaluates || r.has("-p") != "" && namesComputed(args)
	case "test", "[":
		f.evaluates = f.evaluates || slices.ContainsFunc(args, func(w spelt) bool {
			return isOneOf(w.bare, "-v -R -eq -ne -lt -le -gt -ge")
		}) && namesComputed(args)
	case "compgen", "complete":
		f.evaluates = f.evaluates || r.has("-W") != ""
	case "bind", "fc":
		f.hide(name + " runs text that no rule can see")
	case "alias":
		if textsOf(words) != nil {
			f.hide("an alias gives commands another name")
		}
	case "shopt":
		if slices.ContainsFunc(args, func(w spelt) bool { return w.bare == "expand_aliases" }) {
			f.hide("an alias gives commands another name")
		}
	case "set":
		if slices.ContainsFunc(args, func(w spelt) bool { return isOneOf(w.bare, "history histexpand -H") }) {
			f.hide("the history of commands is expanded")
		}
	}
}

// namesComputed says whether a name among words may have a subscript that is more than a number or a word.
func namesComputed(words []spelt) bool {
	return slices.ContainsFunc(words, func(w spelt) bool {
		return w.shape&computed != 0 || strings.Contains(w.bare, "[") && strings.ContainsAny(w.bare, "$`")
	})
}

// evaluated reads the substitutions in all literal text of a line that evaluates something. What it finds may hold
// others.
func (f *finding) evaluated() {
	before := len(f.commands)
	for i, v, l := 0, 0, 0; i < len(f.commands) || v < len(f.values) || l < len(f.loose); {
		for ; v < len(f.values); v++ {
			f.expand(f.values[v].bare, scope{}, true)
		}
		for ; l < len(f.loose); l++ {
			f.expand(f.loose[l].bare, scope{}, true)
		}
		if i < len(f.commands) {
			f.expandCommand(f.commands[i])
			i++
		}
	}
	f.loops = f.loops || len(f.commands) > before
}

// expandCommand reads the substitutions in the literal words of one command, and in what it is fed.
func (f *finding) expandCommand(c simple) {
	sc := scope{dir: c.dir, lost: c.lost, astray: c.astray}
	whole := len(c.words) > 0 && isOneOf(c.words[0].bare, "set printf declare export")
	for n := range c.words {
		f.expand(c.words[n].bare, sc, whole)
	}
	for _, r := range c.stmt.Redirs {
		if text, ok := hereText(c.in.text, r); ok {
			f.expand(text, sc, false)
		}
	}
}

// expand reads the substitutions in a text, as bash expands it between double quotes. whole: the text is a value, of
// which no part may stay unread, since the line may put several together.
func (f *finding) expand(text string, sc scope, whole bool) {
	if !strings.ContainsAny(text, "$`") {
		return
	}
	if f.texts++; f.texts > maxTexts {
		f.tooDeep = true
		return
	}
	sc.in = &script{text: text, file: &syntax.File{}}
	sc.inner = true
	w, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Document(&textReader{text})
	if err != nil {
		f.hide("it evaluates text that cannot be read")
		return
	}
	f.word(w, &sc)
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && whole && strings.ContainsAny(lit.Value, "$`") {
			f.hide("it evaluates text that is put together")
		}
	}
}

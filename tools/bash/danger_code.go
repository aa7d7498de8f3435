package bash

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// code is the rest of D3: hidden code and code that is fed.
func (k *check) code(h head, name string, args []spelt) {
	switch {
	case h.row.Has("shell"):
		k.shell(h, name, args)
	case name == "." || name == "source":
		if len(args) > 0 && streams(&args[0]) {
			k.fed = cmp.Or(k.fed, name)
			k.found("D3", name, "runs what "+args[0].text+" says")
		}
	case h.row.Has("console"):
		if !h.quiet && k.chosenBy(h) == "" && k.isFed() {
			k.found("D3", name, "runs code from its input")
		}
	case h.row.Has("language"):
		k.interpreter(h, name, args)
	case name == "eval":
		if slices.ContainsFunc(args, func(w spelt) bool { return w.shape&runs != 0 }) {
			k.fed = cmp.Or(k.fed, name)
		}
	case h.row != nil && h.row.Name == "awk":
		k.awk(name, args)
	case name == "sed" || name == "gsed":
		if runsBySed(name, args) {
			k.found("D3", name, "the command or flag e runs programs")
		}
	}
}

// streams says whether a script is no file of its own.
func streams(w *spelt) bool {
	return w.shape&runs != 0 && strings.Contains(w.text, "<(") || w.bare != "-" && isStream(w.bare)
}

func (k *check) shell(h head, name string, args []spelt) {
	use := shellOf(args)
	if k.c.fed && !use.checks && use.text == nil || use.script != nil && streams(use.script) ||
		use.text != nil && use.text.shape&(computed|runs) != 0 {
		k.fed = cmp.Or(k.fed, name)
	}
	switch {
	case use.text != nil:
		if via := k.chosenBy(h); via != "" {
			k.found("D3", name, via+" chooses what sh -c runs")
		}
	case use.script != nil && streams(use.script):
		k.found("D3", name, "runs what "+use.script.text+" says")
	case use.checks:
	case use.script != nil && !use.input:
	case k.isFed():
		k.found("D3", name, "runs code from its input")
	case !h.quiet && k.chosenBy(h) != "" && use.script == nil:
		k.found("D3", name, k.chosenBy(h)+" chooses what the shell runs")
	}
}

// chosenBy returns the program that makes words of what it reads, if one stands before the head.
func (k *check) chosenBy(h head) string {
	for i := range h.at {
		switch name := k.c.words[i].name(); name {
		case "xargs", "gxargs", "parallel", "find", "gfind":
			return name
		}
	}
	return ""
}

// isFed says whether the input of the command in hand is a pipe, a here-document or a here-string. What xargs starts
// does not read the pipe.
func (k *check) isFed() bool {
	if k.c.fed {
		return true
	}
	for _, r := range k.c.stmt.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return true
		case syntax.RdrIn: // < <(…)
			for _, p := range r.Word.Parts {
				if _, ok := p.(*syntax.ProcSubst); ok {
					return true
				}
			}
		}
	}
	return false
}

// isInterpreter knows the programs that take code as an argument or on their input.
func isInterpreter(name string) bool { return programs.Of(name).Has("language") }

func (k *check) interpreter(h head, name string, args []spelt) {
	if name == "deno" {
		k.deno(args)
		return
	}
	r := read(name, args)
	for i := range r.Options {
		o := &r.Options[i]
		t := args[o.At].bare
		switch {
		case o.Option == nil && (t == "--version" || t == "--help"), isAny(t, r.row.Version), t == "-h":
			return
		case strings.HasPrefix(name, "py") && o.Option != nil && o.Name == "-m" && o.Value >= 0:
			module := r.value(o).bare
			if words, input := moduleRuns(module, args[o.Value+1:]); words {
				k.found("D3", name, "-m "+module+" runs code of the command line")
			} else if input {
				k.interpreted(h, name, args, -1)
			}
			return
		case o.Option != nil && o.Kind == programs.Code:
			if !perlLoop(name, t, args[o.At+1:]) {
				k.found("D3", name, t+" runs code of the command line")
			}
			return
		}
	}
	script := -1
	if len(r.Operands) > 0 {
		script = r.Operands[0]
	}
	k.interpreted(h, name, args, script)
}

// moduleRuns says what a module of Python runs besides itself, as the script that it is: code among its words, or on
// its input.
func moduleRuns(module string, args []spelt) (words, input bool) {
	module, _, _ = strings.Cut(module, ".")
	words = module == "timeit" || module == "pdb" && slices.ContainsFunc(args, func(w spelt) bool {
		return strings.HasPrefix(w.bare, "-c") || abbreviates(w.bare, "--command")
	})
	return words, isOneOf(module, "pdb bdb code asyncio idlelib IPython ptpython bpython")
}

func (k *check) deno(args []spelt) {
	if len(args) == 0 {
		return
	}
	switch sub := args[0].bare; sub {
	case "eval":
		k.found("D3", "deno", "eval runs code of the command line")
	case "run", "repl":
		if k.isFed() && (sub == "repl" || args[len(args)-1].bare == "-") {
			k.found("D3", "deno", "runs code from its input")
		}
	}
}

// interpreted looks at where the script of an interpreter comes from: args[at], if there is one.
func (k *check) interpreted(h head, name string, args []spelt, at int) {
	named := at >= 0 && at < len(args)
	if named && streams(&args[at]) || k.c.fed && (!named || args[at].bare == "-") {
		k.fed = cmp.Or(k.fed, name)
	}
	switch {
	case named && streams(&args[at]):
		k.found("D3", name, "runs what "+args[at].text+" says")
	case named && args[at].bare != "-":
	case h.quiet || name == "bun" || k.chosenBy(h) != "":
	case k.isFed():
		k.found("D3", name, "runs code from its input")
	}
}

// perlLoop says whether the words are `perl -ne print`: a loop over lines with a body of letters only, none of which
// runs or removes what the lines say.
func perlLoop(name, option string, rest []spelt) bool {
	loop := strings.HasSuffix(option, "e") && strings.Trim(option, "-aelnp") == "" && strings.ContainsAny(option, "np")
	if !strings.HasPrefix(name, "perl") || !loop || len(rest) == 0 || rest[0].bare == "" {
		return false
	}
	switch rest[0].bare {
	case "eval", "exec", "system", "do", "require", "unlink", "rmdir", "qx", "fork":
		return false
	}
	return strings.IndexFunc(rest[0].bare, func(c rune) bool { return (c|0x20) < 'a' || (c|0x20) > 'z' }) < 0
}

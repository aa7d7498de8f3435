package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// code is the rest of D3: hidden code and code that is fed.
func (k *check) code(h head, name string, args []spelt) {
	switch {
	case isShell(name):
		k.shell(h, name, args)
	case name == "." || name == "source":
		if len(args) > 0 && streams(&args[0]) {
			k.found("D3", name, "runs what "+args[0].text+" says")
		}
	case isInterpreter(name):
		k.interpreter(h, name, args)
	case isAwk(name):
		k.awk(name, args)
	case name == "sed" || name == "gsed":
		if runsBySed(args) {
			k.found("D3", name, "the command or flag e runs programs")
		}
	}
}

// streams says whether a script is no file of its own.
func streams(w *spelt) bool {
	return w.shape&runs != 0 && strings.Contains(w.text, "<(") || w.bare == "/dev/stdin" ||
		strings.HasPrefix(w.bare, "/dev/fd/") ||
		strings.HasPrefix(w.bare, "/proc/self/fd/")
}

func (k *check) shell(h head, name string, args []spelt) {
	use := shellOf(args)
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
func isInterpreter(name string) bool {
	switch name {
	case "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "osascript", "deno", "bun", "pypy", "pypy3",
		"ts-node", "tsx", "Rscript", "tclsh", "groovy", "elixir", "julia", "pwsh", "powershell":
		return true
	}
	for _, family := range [...]string{"python", "perl5", "ruby", "php", "lua"} {
		if rest, ok := strings.CutPrefix(name, family); ok && strings.Trim(rest, "0123456789.") == "" {
			return true
		}
	}
	return false
}

// A language is how an interpreter reads its options.
type language struct {
	code   string   // letters that give code
	rest   string   // letters that take the rest of their word
	next   string   // those of them that take the next word if there is no rest
	long   []string // long options that give code
	valued []string // long options that take the next word
	shows  string   // options that only show something
}

func languageOf(name string) language {
	switch {
	case strings.HasPrefix(name, "py"):
		return language{code: "c", rest: "mWXQ", next: "WXQ", shows: " -V -h -VV "}
	case strings.HasPrefix(name, "perl"):
		return language{code: "eE", rest: "ImMFxiD", next: "I", shows: " -v -V -h "}
	case strings.HasPrefix(name, "ruby"):
		return language{code: "e", rest: "ICErFxKTWi", next: "ICEr", shows: " -v -h "}
	case strings.HasPrefix(name, "node"):
		return language{code: "ep", rest: "rC", next: "rC", long: []string{"--eval", "--print"},
			valued: []string{"--require", "--import", "--loader", "--experimental-loader", "--conditions"},
			shows:  " -v -h "}
	case strings.HasPrefix(name, "php"):
		return language{code: "rBRE", rest: "cdfFtSzg", next: "cdfFtSzg",
			long: []string{"--run", "--process-begin", "--process-code", "--process-end"}, shows: " -v -h -i -m "}
	case strings.HasPrefix(name, "lua"):
		return language{code: "e", rest: "l", next: "l"}
	case name == "osascript":
		return language{code: "e", rest: "ls", next: "ls"}
	case strings.HasPrefix(name, "p"): // pwsh -Command, -EncodedCommand
		return language{code: "cCeE"}
	}
	return language{code: "ep", long: []string{"--eval", "--print"}}
}

// takesNext says whether the word after the option t is its value.
func (l *language) takesNext(t string) bool {
	if strings.HasPrefix(t, "--") {
		return slices.Contains(l.valued, t)
	}
	for i := 1; i < len(t); i++ {
		if strings.IndexByte(l.rest, t[i]) >= 0 {
			return i+1 == len(t) && strings.IndexByte(l.next, t[i]) >= 0
		}
	}
	return false
}

func (k *check) interpreter(h head, name string, args []spelt) {
	if name == "deno" {
		k.deno(args)
		return
	}
	l := languageOf(name)
	script := -1
	for i := 0; i < len(args) && script < 0; i++ {
		t := args[i].bare
		switch {
		case t == "--":
			script = i + 1
		case t == "" || t == "-" || t[0] != '-':
			script = i
		case strings.HasPrefix(name, "py") && strings.HasPrefix(t, "-m"):
			return // a module is a script
		case t == "--version", t == "--help", strings.Contains(l.shows, " "+t+" "):
			return
		case isOption(t, l.code, l.rest, l.long...):
			if !perlLoop(name, t, args[i+1:]) {
				k.found("D3", name, t+" runs code of the command line")
			}
			return
		case l.takesNext(t):
			i++
		}
	}
	k.interpreted(h, name, args, script)
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
	switch {
	case at >= 0 && at < len(args) && streams(&args[at]):
		k.found("D3", name, "runs what "+args[at].text+" says")
	case at >= 0 && at < len(args) && args[at].bare != "-":
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

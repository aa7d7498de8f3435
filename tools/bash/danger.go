package bash

import (
	"cmp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// danger is rule R7: what it recognises as harm, "" if nothing. It looks at all that the text would run, as far as the
// text tells: behind wrappers, in substitutions, nested shells, functions, traps, and what is fed to a shell.
// hidden: why rules that deny may not see what runs.
func (s *script) danger(inside func(string) bool) harm {
	f := s.found()
	k := check{inside: inside}
	for i := range f.broken {
		k.unreadable(f.broken[i])
	}
	switch {
	case f.tooDeep:
		k.found("D3", "sh", "shells are nested too deeply to be checked")
	case f.bomb != "":
		k.found("D10", f.bomb, "the function starts itself over and over")
	}
	for i := range f.commands {
		if k.all() {
			break
		}
		k.simple(&f.commands[i])
	}
	for i := range f.loose {
		k.secretWord(&f.loose[i], "")
	}
	if k.fetches != "" && k.fed != "" {
		k.reaches("D3", k.fed, "runs what "+k.fetches+" gets from the network")
	}
	return k.harm
}

// A harm is what makes a command dangerous, and what holds it apart from a person.
type harm struct {
	why    string // the first reason, whatever holds it
	hidden string // the first of what D3 and D4 found: code that is no command of the line
	beyond string // the first that neither the kernel holds, at sandbox level 3, nor the journal takes back
	lost   string // the first that discards content, which the journal can keep
	losses []Loss // in which places that is

	trees []string // where git starts that shows or changes what the text does not name, as far as the text tells
}

// reachesOut are the clauses of which the kernel holds nothing: what is done there is done elsewhere, or for good.
const reachesOut = "D2 D5 D6 D7 D9 D10"

// A check is one pass of R7. It keeps the first thing that it finds.
type check struct {
	inside func(string) bool
	c      *simple
	sure   bool // the words in hand are a command, not perhaps arguments of one
	seen   bool // rules see what its options name
	head   int  // of c, that is looked at
	noted  bool // what it discards
	harm

	fetches string // the first program that gets something from the network
	fed     string // the first that runs what a pipe or another command says
}

// all says that there is nothing left to find.
// Where something reaches beyond what is held, it does not matter what else is lost.
func (k *check) all() bool { return k.why != "" && k.hidden != "" && k.beyond != "" }

// found notes what is wrong with a word.
func (k *check) found(clause, word, text string) {
	k.held(clause, word, text)
	switch {
	case clause == "D1":
		k.lost = cmp.Or(k.lost, word+": "+text)
		k.lose()
	case isOneOf(clause, reachesOut):
		k.reaches(clause, word, text)
	}
}

// held is found for what the kernel holds at sandbox level 3.
func (k *check) held(clause, word, text string) {
	if k.hidden == "" && (clause == "D3" || clause == "D4") {
		k.hidden = word + ": " + text
	}
	if k.why == "" {
		k.why = "R7 " + clause + ": " + word + ": " + text
	}
}

// reaches notes what nothing holds. Where the kernel does not hold the rest, it is dangerous only if held says so, too.
func (k *check) reaches(clause, word, text string) {
	if k.beyond == "" {
		k.beyond = "R7 " + clause + ": " + word + ": " + text
	}
}

// program notes a word that names a program. Where rules see that program, nothing is hidden.
func (k *check) program(name, text string) {
	hidden := k.hidden
	if k.found("D3", name, text); k.seen {
		k.hidden = hidden
	}
}

// simple looks at one simple command with all that it may run.
func (k *check) simple(c *simple) {
	k.c = c
	k.environment(c)
	for _, r := range c.stmt.Redirs {
		k.redirection(r)
	}
	for i, h := range c.heads {
		if k.all() {
			return
		}
		k.sure = h.sure
		k.command(h, i)
	}
	if len(c.words) > 0 {
		k.words(c)
	}
}

// command looks at the words from a head on as a command, the one at n.
func (k *check) command(h head, n int) {
	words, use := k.c.words[h.at:h.end], &k.c.uses[n]
	k.head, k.noted = n, false
	if k.sure {
		k.computedName(&words[0])
	}
	name, args := h.name, words[1:]
	switch name {
	case "curl", "wget", "wget2", "fetch", "aria2c", "http", "https", "xh":
		if k.sure {
			k.fetches = cmp.Or(k.fetches, name)
		}
	}
	k.seen = use.texts != nil && use.code == ""
	if name == "git" {
		k.git(k.c.reading(n).gitCall(), args)
	} else {
		k.table(h, k.c.reading(n))
	}
	k.rights(name, args)
	k.code(h, name, args)
	k.options(name, args)
	k.network(name, args)
	k.remote(name, args)
	k.writesTo(h.row, name, args)
	if name == "ln" {
		k.link(args)
	}
}

// computedName is the beginning of D3: what runs is not in the text.
func (k *check) computedName(w *spelt) {
	if w.shape&(computed|escaped|globbed|braced) != 0 && w.bare != "[" {
		k.found("D3", w.text, "the name of the command is computed")
	}
}

// unreadable is D12, for a text that does not parse.
func (k *check) unreadable(text string) {
	for _, sign := range [...]string{"rm -r", "rm -f", "sudo", "/dev/tcp", "/dev/udp", ":(){"} {
		if strings.Contains(text, sign) {
			k.found("D12", sign, "stands in text that cannot be parsed")
			return
		}
	}
}

// forks is D10: a function that calls itself twice, or once in a pipe or in the background.
func forks(fn *syntax.FuncDecl) bool {
	if fn.Name == nil {
		return false // `()$&`, which the parser (v3.14.1) takes for a function of zsh
	}
	calls, beside := 0, false
	syntax.Walk(fn.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			beside = beside || n.Background && callsIn(n, fn.Name.Value) > 0
		case *syntax.BinaryCmd:
			beside = beside || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && callsIn(n, fn.Name.Value) > 0
		case *syntax.CallExpr:
			if isCall(n, fn.Name.Value) {
				calls++
			}
		}
		return true
	})
	return calls > 1 || beside
}

func callsIn(n syntax.Node, name string) int {
	calls := 0
	syntax.Walk(n, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && isCall(call, name) {
			calls++
		}
		return true
	})
	return calls
}

func isCall(call *syntax.CallExpr, name string) bool {
	return len(call.Args) > 0 && call.Args[0].Lit() == name
}

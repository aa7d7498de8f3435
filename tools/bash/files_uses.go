package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// maxPerhaps is how many words of one command line are taken for files that a program perhaps touches; if it has more,
// what it touches is unknown.
const maxPerhaps = 100

// touch notes the files that a command touches.
func (a *Analysis) touch(f *finding, c *simple, piped bool) {
	c = c.withTaken()
	a.touchFrom(f, c, piped)
	removes := len(a.Removes)
	for _, other := range c.others {
		elsewhere := *c
		elsewhere.stand = stand{ground: other}
		a.touchFrom(f, &elsewhere, piped)
	}
	a.Removes = a.Removes[:removes] // what a line removes is no question because a cd may fail
}

// touchFrom is touch for one place in which the command may start.
func (a *Analysis) touchFrom(f *finding, c *simple, piped bool) {
	t := toucher{a: a, c: c, f: f}
	for _, r := range c.stmt.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			continue
		}
		for _, w := range spellOne(nil, c.in.text, r.Word) {
			if (r.Op == syntax.DplOut || r.Op == syntax.DplIn) && strings.Trim(w.text, "0123456789-") == "" {
				continue
			}
			t.use(&w, FileUse{Write: r.Op != syntax.RdrIn && r.Op != syntax.DplIn})
			t.globs([]spelt{w}, r.Op != syntax.RdrIn && r.Op != syntax.DplIn)
		}
	}
	t.variables()
	for i, h := range c.heads {
		if !h.quiet {
			t.head(i, piped)
		}
	}
	a.Removes = append(a.Removes, removesOf(c)...)
	t.removesGuesses()
}

// unsure notes why rules about paths do not see all that is read or changed.
func (a *Analysis) unsure(reads, writes bool, why string) {
	if reads && a.UnsureReads == "" {
		a.UnsureReads = why
	}
	if writes && a.UnsureWrites == "" {
		a.UnsureWrites = why
	}
}

// A toucher notes what one command touches.
type toucher struct {
	a       *Analysis
	c       *simple
	f       *finding
	perhaps int // words that are perhaps files

	reads, writes bool // see guess
}

// variables notes the files that shells read, or write, because a variable names them.
func (t *toucher) variables() {
	for _, a := range t.c.assigns {
		if a.Name == nil || a.Value == nil || !namesShellFile(a.Name.Value) {
			continue
		}
		for _, w := range spellOne(nil, t.c.in.text, a.Value) {
			t.shellFile(a.Name.Value, w)
		}
	}
	for i := range t.c.words {
		if name := assigned(t.c.words[i].text); namesShellFile(name) {
			w := t.c.words[i]
			w.text, w.bare = w.text[len(name)+1:], w.bare[min(len(name)+1, len(w.bare)):]
			t.shellFile(name, w)
		}
	}
}

func (t *toucher) shellFile(variable string, w spelt) {
	if w.bare == "" {
		return
	}
	t.use(&w, FileUse{})
	if variable == "HISTFILE" {
		t.use(&w, FileUse{Write: true})
	}
}

// namesShellFile knows the variables of bash 5.2 and dash 0.5.12 that name a file which the shell reads by itself.
func namesShellFile(name string) bool {
	return name == "BASH_ENV" || name == "ENV" || name == "HISTFILE"
}

// head notes what the command touches that begins at a head.
func (t *toucher) head(n int, piped bool) {
	c, h := t.c, t.c.heads[n]
	name, r := h.name, c.reading(n)
	args := r.args
	reads, writes := operandsOf(name, r)
	moreReads, moreWrites := furtherOperands(name, r)
	reads, writes = append(slices.Clip(reads), moreReads...), append(slices.Clip(writes), moreWrites...)
	for i := range reads {
		t.use(&reads[i], FileUse{})
	}
	for i := range writes {
		t.use(&writes[i], FileUse{
			Write: true, InDir: writes[i].shape&perhaps != 0, Own: writes[i].shape&ofGit != 0,
		})
	}
	if !h.row.Has("names") {
		t.globs(reads, false)
	}
	t.globs(writes, true)
	roots, changes := deepOf(r, reads, writes, piped)
	for i := range roots {
		t.use(&roots[i], FileUse{Write: changes, Deep: true})
	}
	if name == "git" {
		git := r.gitCall()
		if git.does(programs.Unpacks) && git.has("-n", "--dry-run") == "" {
			t.a.unsure(false, true, "git "+git.sub+" changes files that the text does not name")
		}
	}
	if r.row != nil && r.row.Takes().Kind == "link" { // of a directory, by which all below it has another name
		for i := range reads {
			t.use(&reads[i], FileUse{Deep: true})
			t.use(&reads[i], FileUse{Write: true, Deep: true})
		}
	}
	if name == "sed" || name == "gsed" {
		if use := sedOf(name, args); len(use.scripts) > 0 || use.foreign {
			if !use.plain() {
				t.a.unsure(true, true, "not all that the script of sed does is in the text")
			}
			for _, w := range use.named("rRwW") {
				t.guessOne(w, false)
				t.guessOne(w, true)
			}
		}
	}
	showsSources := name == "go" && len(args) > 0 && isOneOf(args[0].bare, "doc list vet")
	if r.takes(programs.List) || r.does(programs.Lists) || showsSources {
		t.a.unsure(true, false, name+" reads files that the text does not name")
	}
	if r.does(programs.Unpacks) || strings.Contains(r.oldLetters(), "x") {
		t.a.unsure(false, true, name+" changes files that the text does not name")
	}
	if r.takes(programs.Into) && !isOneOf(r.row.Takes().Kind, "put move link") && name != "git" {
		t.a.unsure(true, true, name+" starts in another directory")
	}
	if r.row != nil && r.row.Takes().Kind == "path" && r.row.Takes().First == "" && r.row.Name != "find" {
		for i := range r.Options { // in case that an option has no value
			if o := &r.Options[i]; o.Option != nil && o.Value > o.At && o.Kind != programs.Reads {
				t.perhapsFile(&args[o.Value])
			}
		}
	}
	t.a.Opaque = t.a.Opaque || len(scriptsOf(c.words[h.at:])) > 0
	t.others(n, name, args, len(reads)+len(writes) > 0)
}

// others notes the words of a program that uses them in unknown ways.
func (t *toucher) others(n int, name string, args []spelt, known bool) {
	h := t.c.heads[n]
	if wraps(h.row) && (n+1 >= len(t.c.heads) || t.c.heads[n+1].sure) {
		return
	}
	switch {
	case !h.sure, understood(h.row), h.row.Has("no files"), t.f.funcs[name],
		h.row.Has("shell") && shellOf(args).text != nil:
		return
	case name == "git":
		git := t.c.reading(n).gitCall()
		if !git.row.Has("takes files") {
			return
		}
		args = git.args
	case t.c.words[h.at].shape&computed != 0:
		t.a.unsure(true, true, "the name of a command is not in the text: "+snippet(t.c.words[h.at].text))
	}
	t.a.Opaque = t.a.Opaque || name != "git"
	for _, r := range t.c.stmt.Redirs { // a program in a here-document
		if text, ok := hereText(t.c.in.text, r); ok {
			t.perhapsNames(text)
		}
	}
	for i := range args {
		w := &args[i]
		if w.shape&computed != 0 && !h.row.Has("project") && !known {
			t.a.unsure(true, true, "the value of "+snippet(w.text)+" is not in the text")
		}
		t.perhapsFile(w)
	}
}

// perhapsFile notes what a word of an unknown program may name.
func (t *toucher) perhapsFile(w *spelt) {
	if w.shape&globbed != 0 {
		t.a.unsure(true, true, matches(w.text))
		return
	}
	note := func(p string) bool {
		if p == "" || len(p) > maxPath || p[0] == '-' {
			return true
		}
		if t.perhaps++; t.perhaps > maxPerhaps {
			t.a.unsure(true, true, "a program has too many words to be checked")
			return false
		}
		one := *w
		one.text, one.bare = p, p
		if p != w.text {
			one.shape &^= homely
		}
		if w.shape&computed != 0 {
			one.text = w.text // what is not known is left out
		}
		t.use(&one, FileUse{Perhaps: true})
		return true
	}
	for p := range pieces(w.bare) {
		if !note(p) {
			return
		}
	}
	if strings.ContainsAny(w.bare, wordMarks) { // a program of its own language, or a list
		for _, p := range strings.FieldsFunc(w.bare, func(r rune) bool { return strings.ContainsRune(wordMarks, r) }) {
			if !note(p) {
				return
			}
		}
	}
}

// maxNames is how many names in a here-document are looked at.
const maxNames = 500

// perhapsNames notes what looks like names of files in a text for a program with an unknown grammar.
func (t *toucher) perhapsNames(text string) {
	n := 0
	marks := func(r rune) bool { return strings.ContainsRune(wordMarks+":\\", r) }
	for name := range strings.FieldsFuncSeq(text, marks) {
		if !strings.ContainsAny(name, "./") || len(name) > maxPath || n == maxNames {
			continue
		}
		n++
		t.use(&spelt{text: name, bare: name}, FileUse{Perhaps: true})
	}
}

// wordMarks separate names in a text with an unknown grammar.
const wordMarks = " \t\n\"'`()<>{}[];|&=@,"

// use notes the file that a word names, if the text tells which one it is.
func (t *toucher) use(w *spelt, u FileUse) {
	if w.shape&braced != 0 && strings.Contains(w.text, "..") { // a sequence
		t.a.unsure(!u.Write || u.Perhaps, u.Write || u.Perhaps, matches(w.text))
		return
	}
	p, ok := t.c.place(w)
	if !ok {
		through, plain := throughProc(w.text)
		lost := t.c.lost && !rooted(through)
		unknown := lost || !plain || w.shape&computed != 0 || strings.HasPrefix(w.text, "~-")
		if unknown && w.text != "" && w.text != "-" && !u.Perhaps && (u.Write || !t.harmless()) {
			why := "the value of " + snippet(w.text) + " is not in the text"
			switch {
			case w.shape&computed != 0:
			case lost:
				why = "the directory of " + snippet(w.text) + " is not in the text"
			default:
				why = snippet(w.text) + " leads where the kernel says"
			}
			t.a.unsure(!u.Write, u.Write, why)
			t.guess(u.Write)
		}
		p = t.c.guess(w)
	}
	u.Path = plainPath(p)
	if p == "" || p == NullDevice {
		return
	}
	if u.Deep { // it is perhaps known already as one that is touched itself
		for i := range t.a.Files {
			if f := &t.a.Files[i]; f.Path == u.Path && f.Write == u.Write && !f.Perhaps && !f.InDir {
				f.Deep = true
				return
			}
		}
	}
	t.a.Files = append(t.a.Files, u)
}

// plainPath is a path without the ./ that it may begin with.
func plainPath(p string) string {
	if rest, ok := strings.CutPrefix(p, "./"); ok && rest != "" && rest[0] != '~' && rest[0] != '/' {
		return rest
	}
	return p
}

// harmless says that the command shows names and no contents, or revisions of git, which stands for all of them
// (Analysis.GitShows).
func (t *toucher) harmless() bool {
	for _, h := range t.c.heads {
		if !h.quiet && !h.row.Has("names") {
			return h.name == "git" && len(t.c.stmt.Redirs) == 0
		}
	}
	return len(t.c.heads) > 0 && len(t.c.stmt.Redirs) == 0
}

// globs notes that unquoted globs among words stand for files which only the disk tells.
func (t *toucher) globs(words []spelt, write bool) {
	for i := range words {
		if words[i].shape&(globbed|computed) == globbed {
			t.a.unsure(!write, write, matches(words[i].text))
		}
	}
}

func matches(text string) string { return "what " + snippet(text) + " stands for is not in the text" }

// deepOf are the directories below which a program touches all that is there, and whether it changes it.
func deepOf(r *reading, reads, writes []spelt, piped bool) (roots []spelt, changes bool) {
	if r.row == nil {
		return nil, false
	}
	deep, takes := r.does(programs.Deep), r.row.Takes()
	switch {
	case takes.Kind == "archive":
		return reads, false
	case r.row.Name == "find":
		if !piped && !runsEach(r.args) {
			return nil, false
		}
		return orHere(r.operands()), false
	case takes.First == "pattern":
		if w := r.given("-d", "--directories"); !deep && (w == nil || w.text != "recurse") {
			return nil, false
		}
		return orHere(r.operands()[r.skipped():]), false
	case !deep || r.row.Has("names"):
		return nil, false
	case takes.Kind == "move":
		sources, _, _ := moved(r)
		return sources, true
	case takes.Kind == "write":
		return writes, true
	}
	return reads, false
}

// orHere is where a search looks: here, if nothing is said.
func orHere(words []spelt) []spelt {
	if len(words) == 0 {
		return []spelt{literalSpelt(".")}
	}
	return words
}

// runsEach says whether find runs a program for what it finds, or reads names from it.
func runsEach(args []spelt) bool {
	for i := range args {
		if isOneOf(args[i].bare, "-exec -execdir -ok -okdir") {
			return true
		}
	}
	return false
}

// understood says whether operandsOf knows which words of a program are files.
func understood(row *programs.Program) bool {
	if row == nil {
		return false
	}
	takes := row.Takes()
	return !isOneOf(takes.First, "script filter") && isOneOf(takes.Kind, "path write put move link key")
}

// furtherOperands are files of programs that operandsOf does not know, or not whole. Who makes a file another name may
// read and change it by that name, so what a link is made of counts as both.
func furtherOperands(name string, r *reading) (reads, writes []spelt) {
	args := r.args
	switch {
	case r.row == nil:
	case r.row.Takes().Kind == "link":
		sources, _, _ := moved(r)
		sources = slices.Concat(sources, linkedFrom(sources, r))
		return sources, sources
	case r.row.Has("shell"):
		if use := shellOf(args); use.start != nil {
			return []spelt{*use.start}, nil
		}
	case name == "history" && mayHave(args, "rn"):
		return plainDashes(args), nil
	case name == "history" && mayHave(args, "aw"):
		return nil, plainDashes(args)
	case name == "enable" && mayHave(args, "f"):
		return plainDashes(args), nil
	case r.row.Name == "cp" && r.has("-l", "-s", "--link", "--symbolic-link") != "":
		sources, _, _ := moved(r)
		return nil, sources
	case r.row.Name == "find":
		for i := range args {
			switch args[i].bare {
			case "-delete":
				for _, w := range foundWords(args) {
					w.shape |= globbed
					writes = append(writes, w)
				}
			case "-fprint", "-fprint0", "-fls", "-fprintf":
				if i+1 < len(args) {
					writes = append(writes, args[i+1])
				}
			}
		}
	}
	return reads, writes
}

// linkedFrom are the sources of a symbolic link as it means them: seen from where it stands.
func linkedFrom(sources []spelt, r *reading) (seen []spelt) {
	all := r.operands()
	dir := r.given("-t", "--target-directory")
	if dir == nil && len(all) > 1 {
		dir = &all[len(all)-1]
	}
	if dir == nil || r.has("-s", "--symbolic") == "" {
		return nil
	}
	at := dir.text[:strings.LastIndexByte(dir.text, '/')+1]
	for _, w := range sources {
		for _, from := range [...]string{at, dir.text + "/"} {
			if from != "" && from != "/" && !rooted(w.text) {
				one := w
				one.text = from + w.text
				one.bare, one.shape = one.text, w.shape|dir.shape
				seen = append(seen, one)
			}
		}
	}
	return seen
}

// takes says whether an option with a value of a kind is given.
func (r *reading) takes(kind programs.Kind) bool {
	for i := range r.Options {
		if o := &r.Options[i]; o.Option != nil && o.Kind == kind && (o.Value >= 0 || kind == programs.List) {
			return true
		}
	}
	return false
}

// mayHave says whether a word looks like one of the options, for programs that the table does not know whole: letters
// stand anywhere in a cluster, long names may be shortened.
func mayHave(args []spelt, letters string, long ...string) bool {
	for i := range args {
		t := args[i].bare
		switch {
		case t == "--":
			return false
		case len(t) < 2 || t[0] != '-':
		case t[1] != '-':
			if strings.ContainsAny(t[1:], letters) {
				return true
			}
		default:
			if slices.ContainsFunc(long, func(name string) bool { return abbreviates(t, name) }) {
				return true
			}
		}
	}
	return false
}

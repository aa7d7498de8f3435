package bash

import (
	"path"
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// A Spread is a place in which a command reads or changes files that its words do not name: `grep -r x .`, `cat *`,
// `mv dir x`. Which files there are, only the disk knows; whoever looks asks Reaches about each.
//
// Words with expansions count with what variables hold. Where that is not known, Analysis.UnsureReads and UnsureWrites
// say so.
type Spread struct {
	Dir     string // as FileUse.Path
	Write   bool
	Perhaps bool // as FileUse.Perhaps; Write means nothing

	pattern []string // components below Dir, as globs of the shell
	deep    bool     // also everything below what the pattern matches
	dotted  bool     // also names that begin with a dot
	folds   bool     // whatever the letter case
	names   []string // globs, one of which the name of a file must match; nil: any
}

// maxSpreads is how many places of one command are looked at.
const maxSpreads = 32

// Reaches says whether the command may touch the file at rel, which is relative to Dir and has slashes, or if dir,
// whether it may touch something below it.
func (s *Spread) Reaches(rel string, dir bool) bool {
	n := 0
	last := ""
	for rel != "" {
		last, rel, _ = strings.Cut(rel, "/")
		switch {
		case n < len(s.pattern):
			if last[0] == '.' && s.pattern[n][0] != '.' && !s.dotted || !s.matches(s.pattern[n], last) {
				return false
			}
		case !s.deep || last[0] == '.' && !s.dotted:
			return false
		}
		n++
	}
	if dir {
		return s.deep || n < len(s.pattern)
	}
	if n < len(s.pattern) || s.names == nil {
		return n >= len(s.pattern)
	}
	for _, name := range s.names {
		if s.matches(name, last) {
			return true
		}
	}
	return false
}

// matches says whether a glob of the shell may match a name. What path.Match reads otherwise matches.
func (s *Spread) matches(glob, name string) bool {
	if strings.Contains(glob, "[:") || strings.Contains(glob, "[=") || strings.Contains(glob, "[.") {
		return true
	}
	if s.folds {
		glob, name = strings.ToLower(glob), strings.ToLower(name)
	}
	ok, err := path.Match(strings.ReplaceAll(glob, "[!", "[^"), name)
	return ok || err != nil
}

// globOf is the place of an unquoted glob, of which like says what is done with it. Not ok: there is none in the word.
func (c *simple) globOf(w spelt, like Spread) (s Spread, ok bool) {
	// the glob of an option with a value glued to it may stand before the value
	first := strings.IndexAny(w.text, globs)
	if w.shape&globbed == 0 || w.shape&(computed|perhaps) != 0 || first < 0 {
		return s, false
	}
	s = like
	from := strings.LastIndexByte(w.text[:first], '/') + 1
	s.dotted = s.dotted || w.shape&dotted != 0
	for next := w.text[from:]; next != ""; {
		at, rest, _ := strings.Cut(next, "/")
		next = rest
		if strings.Contains(at, "**") { // with globstar any number of directories
			if s.deep = true; !like.deep && rest != "" && !strings.Contains(rest, "/") {
				s.names = []string{rest}
			}
			break
		}
		if at != "" && at != "." {
			s.pattern = append(s.pattern, at)
		}
	}
	w.text, w.shape = w.text[:from], w.shape&homely
	s.Dir = c.spreadFrom(&w)
	return s, s.Dir != ""
}

// equal says whether two places are the same.
func (s Spread) equal(o Spread) bool {
	return s.Dir == o.Dir && s.Write == o.Write && s.Perhaps == o.Perhaps && s.deep == o.deep && s.dotted == o.dotted &&
		s.folds == o.folds && slices.Equal(s.pattern, o.pattern) && slices.Equal(s.names, o.names)
}

// spreadFrom is the place that a word without a glob names; "": nobody knows.
func (c *simple) spreadFrom(w *spelt) string {
	if w.text == "" {
		w.text = "."
	}
	p, ok := c.place(w)
	if !ok {
		return ""
	}
	return path.Clean(p)
}

// namesOnly knows the programs that show what is there, and not what is in it.
func namesOnly(name string) bool {
	row := programs.Of(name)
	return row.Has("names")
}

// deepOf are the directories from which a program goes down, and what it takes there.
func deepOf(name string, args, reads, writes []spelt, piped bool) (s Spread, roots []spelt) {
	s.dotted = true
	r := read(name, args)
	if r.row == nil {
		return s, nil
	}
	deep, _ := r.deep()
	takes := r.row.Takes()
	switch {
	case takes.Kind == "archive":
		return s, reads
	case r.row.Name == "find":
		if !piped && !runsEach(args) {
			return s, nil
		}
		s.names = foundNames(args)
		return s, orHere(r.operands())
	case takes.First == "pattern":
		if w := r.given("-d", "--directories"); !deep && (w == nil || w.text != "recurse") {
			return s, nil
		}
		s.dotted = !r.row.Has("skips hidden") || r.has("-u", "-.", "--hidden", "--unrestricted") != ""
		s.names = optionValues(args, "--include")
		return s, orHere(r.operands()[r.skipped():])
	case !deep || r.row.Has("names"):
		return s, nil
	case takes.Kind == "move":
		s.Write = true
		sources, _, _ := moved(&r)
		return s, sources
	case takes.Kind == "write":
		s.Write = true
		return s, writes
	}
	return s, reads
}

// orHere is where a search looks: here, if nothing is said.
func orHere(words []spelt) []spelt {
	if len(words) == 0 {
		return []spelt{literalSpelt(".")}
	}
	return words
}

// optionValues are the values of a long option; nil: it is not there.
func optionValues(args []spelt, long string) (values []string) {
	for i := range args {
		switch value, glued := strings.CutPrefix(args[i].text, long+"="); {
		case glued:
			values = append(values, value)
		case args[i].text == long && i+1 < len(args):
			values = append(values, args[i+1].text)
		}
	}
	return values
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

// foundNames are the names that find looks for, if its expression is a plain list of tests; nil: any.
func foundNames(args []spelt) (names []string) {
	for i := range args {
		switch args[i].bare {
		case "!", "-not", "-o", "-or", ",":
			return nil
		case "-name":
			if i+1 < len(args) && names == nil {
				names = []string{args[i+1].text}
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			return names
		}
	}
	return names
}

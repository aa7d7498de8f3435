package bash

import (
	"path"
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// A Spread is a place in which a command reads or changes files that its words do not name: `grep -r x .`, `cat *`,
// `mv dir x`. Only the disk tells which files there are; a caller that lists them asks Reaches about each.
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

	exceptDirs, exceptFiles []string // globs of names that are left out
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
		case !s.deep || last[0] == '.' && !s.dotted, s.excepts(last, dir || rel != ""):
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

// Named says whether the words of the command stand for what the place holds: globs, or names that find looks for. What
// it touches below a directory that it goes down into is not named.
func (s *Spread) Named() bool { return s.pattern != nil || s.names != nil }

// Starts calls found for each path below Dir that the pattern of the place stands for, with what list says is in a
// directory, until it returns false; "": Dir itself, where there is no pattern. Paths are not clean: what stands before
// a `..` may be a link. What is behind the last glob need not be there. any: there were some.
func (s *Spread) Starts(list func(rel string) []string, found func(rel string) bool) (any bool) {
	s.start("", 0, list, func(rel string) bool {
		any = true
		return found(rel)
	})
	return any
}

// Text is the pattern as a path below Dir.
func (s *Spread) Text() string { return unquoted(strings.Join(s.pattern, "/")) }

func (s *Spread) start(rel string, n int, list func(string) []string, found func(string) bool) bool {
	if n == len(s.pattern) {
		return found(rel)
	}
	glob := s.pattern[n]
	if rel != "" {
		rel += "/"
	}
	if !strings.ContainsAny(strings.Join(s.pattern[n:], ""), globs) || glob == ".." {
		return s.start(rel+unquoted(glob), n+1, list, found)
	}
	for _, name := range list(rel) {
		if (name[0] != '.' || glob[0] == '.' || s.dotted) && s.matches(glob, name) &&
			!s.start(rel+name, n+1, list, found) {
			return false
		}
	}
	return true
}

// Beneath is what the command touches below one of Starts; not ok: nothing.
func (s *Spread) Beneath() (below Spread, ok bool) {
	below = *s
	below.pattern = nil
	return below, s.deep
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
	if c.wild != "" && w.shape&computed == 0 && !rooted(w.text) {
		w.text = c.globbed(w.text, w.shape&globbed != 0)
		w.bare, w.shape = w.text, w.shape|globbed
		c = &simple{}
	}
	first := strings.IndexAny(w.text, globs)
	if w.shape&globbed == 0 || w.shape&computed != 0 || first < 0 {
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

// inProc says whether a place leads through what the kernel makes of names in /proc, as `/proc/*/cwd` does.
func (s *Spread) inProc() bool {
	parts := append(strings.FieldsFunc(s.Dir, func(r rune) bool { return r == '/' }), s.pattern...)
	if !strings.HasPrefix(s.Dir, "/") || len(parts) == 0 {
		return false
	}
	if s.deep {
		return parts[0] == "proc"
	}
	return s.matches(parts[0], "proc") && len(parts) > 3 || s.matches(parts[0], "dev") && len(parts) > 2
}

// equal says whether two places are the same.
func (s Spread) equal(o Spread) bool {
	return s.Dir == o.Dir && s.Write == o.Write && s.Perhaps == o.Perhaps && s.deep == o.deep && s.dotted == o.dotted &&
		s.folds == o.folds && slices.Equal(s.pattern, o.pattern) && slices.Equal(s.names, o.names) &&
		slices.Equal(s.exceptDirs, o.exceptDirs) && slices.Equal(s.exceptFiles, o.exceptFiles)
}

// spreadFrom is the place that a word without a glob names; "": it is unknown.
func (c *simple) spreadFrom(w *spelt) string {
	if w.text == "" {
		w.text = "."
	}
	p, ok := c.place(w)
	if !ok {
		return ""
	}
	if strings.Contains(p, "..") {
		return strings.TrimSuffix(p, "/") // a link may stand before it
	}
	return path.Clean(p)
}

// deepOf are the directories from which a program goes down, and what it takes there.
func deepOf(r *reading, reads, writes []spelt, piped bool) (s Spread, roots []spelt) {
	s.dotted = true
	if r.row == nil {
		return s, nil
	}
	deep := r.does(programs.Deep)
	takes := r.row.Takes()
	switch {
	case takes.Kind == "archive":
		return s, reads
	case r.row.Name == "find":
		if !piped && !runsEach(r.args) {
			return s, nil
		}
		s.names = foundNames(r.args)
		return s, orHere(r.operands())
	case takes.First == "pattern":
		if w := r.given("-d", "--directories"); !deep && (w == nil || w.text != "recurse") {
			return s, nil
		}
		s.dotted = !r.row.Has("skips hidden") || r.has("-u", "-.", "--hidden", "--unrestricted") != ""
		s.searches(r)
		return s, orHere(r.operands()[r.skipped():])
	case !deep || r.row.Has("names"):
		return s, nil
	case takes.Kind == "move":
		s.Write = true
		sources, _, _ := moved(r)
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

// searches notes by what names a search takes or leaves out what it comes to.
func (s *Spread) searches(r *reading) {
	// what a value leaves open leaves nothing out
	values := func(plain bool, names ...string) (values []string, all bool) {
		all = true
		for i := range r.Options {
			o := &r.Options[i]
			if o.Option == nil || o.Value < 0 || !isAny(o.Name, names) {
				continue
			}
			w := r.value(o)
			if w.shape&computed != 0 || w.shape&globbed != 0 && o.Value != o.At ||
				plain && strings.ContainsAny(strings.TrimSuffix(w.text, "/"), `/[\{`) {
				all = false
				continue
			}
			values = append(values, w.text)
		}
		return values, all
	}
	switch r.row.Name {
	case "grep":
		var all bool
		if s.names, all = values(false, "--include"); !all {
			s.names = nil
		}
		s.exceptDirs, _ = values(true, "--exclude-dir")
		if s.names == nil && all {
			s.exceptFiles, _ = values(true, "--exclude")
		}
	case "rg":
		globs, all := values(true, "-g", "--glob", "--iglob")
		for _, glob := range globs { // the last that matches counts
			name, not := strings.CutPrefix(glob, "!")
			dir, isDir := strings.CutSuffix(name, "/")
			if all = all && not; !isDir {
				s.exceptFiles = append(s.exceptFiles, name)
			}
			s.exceptDirs = append(s.exceptDirs, dir)
		}
		if !all {
			s.exceptDirs, s.exceptFiles = nil, nil
		}
	}
}

// excepts says whether a search leaves out a name that it comes to.
func (s *Spread) excepts(name string, dir bool) bool {
	list := s.exceptFiles
	if dir {
		list = s.exceptDirs
	}
	return slices.ContainsFunc(list, func(glob string) bool {
		ok, err := path.Match(glob, name)
		return ok && err == nil
	})
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

// unquoted is a component of a pattern without the backslashes that quote.
func unquoted(component string) string {
	var text strings.Builder
	for i := 0; i < len(component); i++ {
		if component[i] == '\\' && i+1 < len(component) {
			i++
		}
		text.WriteByte(component[i])
	}
	return text.String()
}

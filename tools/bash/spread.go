package bash

import (
	"path"
	"strings"
)

// A Spread is a place in which a command reads or changes files that its words do not name: `grep -r x .`, `cat *`,
// `mv dir x`. Which files there are, only the disk knows; whoever looks asks Reaches about each.
//
// What is not known to spread: words with expansions (`cat $X/*`), what comes from a pipe but by `find | xargs`, and
// programs that are not understood. No such command is ReadOnly.
type Spread struct {
	Dir   string // as FileUse.Path
	Write bool

	pattern []string // components below Dir, as globs of the shell
	deep    bool     // also everything below what the pattern matches
	dotted  bool     // of that also names that begin with a dot
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
			if last[0] == '.' && s.pattern[n][0] != '.' || !globbedName(s.pattern[n], last) {
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
		if globbedName(name, last) {
			return true
		}
	}
	return false
}

// globbedName says whether a glob of the shell may match a name. What path.Match reads otherwise matches.
func globbedName(glob, name string) bool {
	if strings.Contains(glob, "[:") {
		return true
	}
	ok, err := path.Match(strings.ReplaceAll(glob, "[!", "[^"), name)
	return ok || err != nil
}

// spreadsOf are the places of one command. piped: the line starts xargs somewhere.
func spreadsOf(c *simple, piped bool) []Spread {
	var spreads []Spread
	for _, h := range c.heads {
		if h.quiet {
			continue
		}
		name, args := c.words[h.at].name(), c.words[h.at+1:h.end]
		reads, writes := operandsOf(name, args)
		if !namesOnly(name) {
			spreads = c.globs(spreads, reads, false)
		}
		spreads = c.globs(spreads, writes, true)
		s, roots := deepOf(name, args, reads, writes, piped)
		for i := range roots {
			if s.Dir, s.deep = c.spreadFrom(&roots[i]), true; s.Dir != "" {
				spreads = append(spreads, s)
			}
		}
	}
	for _, r := range c.stmt.Redirs {
		if r.Hdoc == nil && r.Word != nil {
			spreads = c.globs(spreads, spellOne(nil, c.in.text, r.Word), false)
		}
	}
	return spreads
}

// globs adds what unquoted globs among words may match.
func (c *simple) globs(spreads []Spread, words []spelt, write bool) []Spread {
	for i := range words {
		w := words[i]
		// the glob of an option with a value glued to it may stand before the value
		first := strings.IndexAny(w.text, globs)
		if w.shape&globbed == 0 || w.shape&(computed|perhaps) != 0 || first < 0 {
			continue
		}
		from := strings.LastIndexByte(w.text[:first], '/') + 1
		s := Spread{Write: write, deep: strings.Contains(w.text, "**")}
		for part := range strings.SplitSeq(w.text[from:], "/") {
			if strings.Contains(part, "**") { // with globstar any number of directories
				break
			}
			if part != "" && part != "." {
				s.pattern = append(s.pattern, part)
			}
		}
		w.text, w.shape = w.text[:from], w.shape&homely
		if s.Dir = c.spreadFrom(&w); s.Dir != "" {
			spreads = append(spreads, s)
		}
	}
	return spreads
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
	return isOneOf(name, "ls stat readlink realpath du tree find gfind")
}

// deepOf are the directories from which a program goes down, and what it takes there.
func deepOf(name string, args, reads, writes []spelt, piped bool) (s Spread, roots []spelt) {
	s.dotted = true
	switch name {
	case "grep", "egrep", "fgrep", "zgrep", "rgrep":
		if name != "rgrep" && optionOf(args, "rR", "ABCmDef", "--recursive", "--dereference-recursive") == "" &&
			!recursesBy(args) {
			return s, nil
		}
		s.names = optionValues(args, "--include")
		return s, orHere(reads)
	case "rg", "ag", "ack":
		s.dotted = name == "ack" || optionOf(args, "u.a", "ABCmefgjtTMEr", "--hidden", "--unrestricted") != ""
		return s, orHere(reads)
	case "find", "gfind":
		if !piped && !runsEach(args) {
			return s, nil
		}
		s.names = foundNames(args)
		return s, orHere(reads)
	case "diff":
		if optionOf(args, "r", "CUFILWx", "--recursive") != "" {
			return s, reads
		}
	case "cp", "gcp":
		if optionOf(args, "rRa", "St", "--recursive", "--archive") != "" {
			return s, reads
		}
	case "tar", "gtar", "bsdtar", "zip", "rsync", "scp", "7z":
		return s, reads
	case "mv", "gmv":
		s.Write = true
		sources, _, _ := moved(args, "St")
		return s, sources
	case "rm", "grm":
		if s.Write = true; optionOf(args, "rR", "", "--recursive") != "" {
			return s, writes
		}
	case "chmod", "gchmod":
		if s.Write = true; optionOf(args, "R", "", "--recursive") != "" {
			return s, writes
		}
	}
	return s, nil
}

// orHere is where a search looks: here, if nothing is said.
func orHere(words []spelt) []spelt {
	if len(words) == 0 {
		return []spelt{literalSpelt(".")}
	}
	return words
}

// recursesBy knows `-d recurse` of grep.
func recursesBy(args []spelt) bool {
	w := optionValue(args, 'd', "ABCmDef", "--directories")
	return w != nil && w.text == "recurse"
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

// archived are the files that a program packs or sends. The last place of rsync and scp is where they go.
func archived(name string, args []spelt) (reads []spelt) {
	switch name {
	case "tar", "gtar", "bsdtar":
		if len(args) == 0 || !packs(args) {
			return nil
		}
		if args[0].bare != "" && args[0].bare[0] != '-' { // tar cf a.tar x
			args = args[min(len(args), 1+strings.Count(args[0].bare, "f")):]
		}
		return plainWords(args, "fCTXbHLVFgIK", " --file --directory --exclude --exclude-from --files-from ")
	case "zip", "7z":
		if words := plainWords(args, "xitnb", longValued); len(words) > 1 {
			return words[1:]
		}
		return nil
	}
	words := plainWords(args, "efTBMiFoPSlcJ", longValued+" --rsh --filter --exclude-from --include-from --files-from ")
	for _, w := range words[:max(0, len(words)-1)] {
		if !strings.Contains(w.text, ":") {
			reads = append(reads, w)
		}
	}
	return reads
}

// packs says whether tar makes an archive.
func packs(args []spelt) bool {
	first := args[0].bare
	return first != "" && first[0] != '-' && strings.ContainsAny(first, "cruA") ||
		optionOf(args, "cruA", "fCTXbHLVFgIK", "--create", "--append", "--update", "--catenate", "--concatenate") != ""
}

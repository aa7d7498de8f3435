package bash

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// A line may write what it runs: after `cp /bin/rm x`, `./x y` is `rm y`, and no rule sees it.

// A fill is a file that a line fills.
type fill struct {
	path  string // clean, seen from where the line starts
	known bool   // path is all of it; else only its last component is certain
}

// makes returns the files that a command fills, among those that it touches.
func makes(c *simple, files []FileUse) []fill {
	if !slices.ContainsFunc(files, func(u FileUse) bool { return u.Write || u.Perhaps }) {
		return nil
	}
	var all []fill
	keeps := len(c.words) > 0 && keepsContents(c.words[c.heads[0].at].name()) &&
		!slices.ContainsFunc(c.stmt.Redirs, func(r *syntax.Redirect) bool { return !keepsNothing(r) })
	mixes := len(c.words) > 0 && programs.Of(c.words[c.heads[0].at].name()).Has("writes")
	for i := range files {
		if u := &files[i]; (u.Write && !u.Perhaps || u.Perhaps && mixes) && !keeps {
			all = append(all, fill{path.Clean(u.Path), !u.Guess && (!c.lost || rooted(u.Path))})
		}
	}
	return all
}

// keepsContents knows programs that change a file without giving it contents of the caller's choice, and those that
// build a program from sources which a rule cannot see anyway.
func keepsContents(name string) bool {
	return isOneOf(name, "chmod gchmod chown chgrp touch gtouch mkdir gmkdir rm grm rmdir grmdir go gofmt gcc g++ "+
		"cc c++ clang clang++ rustc ld ar strip ranlib javac")
}

// runsMade returns a file that the line fills and then runs, as a program or as a script; "": it runs none.
func (f *finding) runsMade(all []fill) string {
	for i := range f.commands {
		c := &f.commands[i]
		for n, h := range c.heads {
			if h.quiet {
				continue
			}
			words := c.words[h.at:h.end]
			if strings.Contains(words[0].bare, "/") && c.isMade(all, &words[0]) {
				return words[0].bare
			}
			scripts := append(scriptsOf(words), c.uses[n].files...)
			if row := programs.Of(words[0].name()); row.Has("shell") || row.Has("language") || row.Has("console") {
				for _, r := range c.stmt.Redirs {
					if r.Op == syntax.RdrIn {
						scripts = spellOne(scripts, c.in.text, r.Word)
					}
				}
			}
			for _, w := range scripts {
				if c.isMade(all, &w) {
					return w.bare
				}
			}
		}
	}
	return ""
}

// scriptsOf are the files that a shell or an interpreter runs.
func scriptsOf(words []spelt) []spelt {
	name, args := words[0].name(), words[1:]
	switch {
	case isShell(name):
		if use := shellOf(args); use.script != nil {
			return []spelt{*use.script}
		}
	case name == "." || name == "source":
		return args[:min(1, len(args))]
	case isInterpreter(name):
		r := read(name, args)
		return r.operands()[:min(1, len(r.Operands))]
	}
	return nil
}

// isMade says whether a word of the command names a file that the line fills, or what is in such a directory.
func (c *simple) isMade(all []fill, w *spelt) bool {
	p, known := c.place(w)
	if !known {
		p = c.guess(w)
	}
	if p == "" { // any of them
		return w.shape&computed != 0 && len(all) > 0
	}
	p = path.Clean(plainPath(p))
	return slices.ContainsFunc(all, func(m fill) bool {
		return p == m.path || strings.HasPrefix(p, m.path+"/") ||
			!(known && m.known) && path.Base(p) == path.Base(m.path)
	})
}

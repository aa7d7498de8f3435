package bash

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// filesOf are the files that one command is known to touch: its redirections, and the operands that are understood.
func filesOf(c *simple) []FileUse {
	var files []FileUse
	for _, r := range c.stmt.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			continue
		}
		for _, w := range spellOne(nil, c.in.text, r.Word) {
			if (r.Op == syntax.DplOut || r.Op == syntax.DplIn) && strings.Trim(w.text, "0123456789-") == "" {
				continue
			}
			files = c.use(files, &w, r.Op != syntax.RdrIn && r.Op != syntax.DplIn)
		}
	}
	for _, h := range c.heads {
		if h.quiet {
			continue
		}
		reads, writes := operandsOf(c.words[h.at].name(), c.words[h.at+1:h.end])
		for i := range reads {
			files = c.use(files, &reads[i], false)
		}
		for i := range writes {
			n := len(files)
			if files = c.use(files, &writes[i], true); len(files) > n {
				files[n].InDir = writes[i].shape&perhaps != 0
			}
		}
	}
	return files
}

// use appends the file that a word names, if the text tells which one it is.
func (c *simple) use(files []FileUse, w *spelt, write bool) []FileUse {
	p, ok := c.place(w)
	if !ok {
		p = c.guess(w)
	}
	if p == "" || p == "/dev/null" {
		return files
	}
	return append(files, FileUse{Path: p, Write: write})
}

// guess returns the path of a word that only the shell knows whole, so that no rule is passed by `$PWD/x`, and by none
// that is about names behind `cd $X` and in `$X/name`: what is not known is left out. "": nothing is left.
func (c *simple) guess(w *spelt) string {
	if w.shape&globbed != 0 || w.text == "" || w.text == "-" {
		return ""
	}
	if w.shape&computed == 0 {
		return under(c.dir, w.text) // behind a cd to nobody knows where
	}
	for _, known := range [...]struct{ text, means string }{{"$HOME", "~"}, {"${HOME}", "~"}, {"$PWD", "."},
		{"${PWD}", "."}, {"$(pwd)", "."}, {"`pwd`", "."}} {
		if rest, ok := strings.CutPrefix(w.text, known.text); ok && strings.HasPrefix(rest, "/") &&
			!strings.ContainsAny(rest, "$`") {
			return under(c.dir, path.Join(known.means, rest))
		}
	}
	p := w.bare
	if w.text[0] != '/' {
		p = strings.TrimLeft(p, "/")
	}
	if p == "" {
		return ""
	}
	return under(c.dir, p)
}

// place returns the path that a word names, seen from where the line starts. Not ok: nobody knows.
func (c *simple) place(w *spelt) (string, bool) {
	if w.shape&(computed|globbed) != 0 || w.text == "" || w.text == "-" {
		return "", false
	}
	p := w.text
	if p[0] == '~' && w.shape&homely == 0 {
		p = "./" + p // a quoted tilde is a name
	}
	if c.lost && !rooted(p) {
		return "", false
	}
	return under(c.dir, p), true
}

// removesOf are the operands of rm and rmdir.
func removesOf(c *simple) []string {
	var removes []string
	for _, h := range c.heads {
		if h.quiet {
			continue
		}
		r := read(c.words[h.at].name(), c.words[h.at+1:h.end])
		if r.row == nil || r.row.Name != "rm" && r.row.Name != "rmdir" {
			continue
		}
		for _, w := range r.operands() {
			t := w.text
			if t != "" && t[0] == '~' && w.shape&homely == 0 {
				t = "./" + t
			}
			switch relative := t != "" && !rooted(t) && t[0] != '$' && t[0] != '`'; {
			case relative && c.lost && c.dir == "" && c.astray != "" && strings.IndexByte("$`", c.astray[0]) >= 0:
				t = c.astray + "/" + strings.TrimPrefix(t, "./") // `cd $X && rm -rf *` is `rm -rf $X/*`
			case relative && c.dir != "":
				t = under(c.dir, t)
			}
			removes = append(removes, t)
		}
	}
	return removes
}

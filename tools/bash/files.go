package bash

import (
	"path"
	"strings"
)

// guess returns the path of a word that only the shell knows whole, so that no rule is passed by `$PWD/x`, and by none
// that is about names behind `cd $X` and in `$X/name`: what is not known is left out. "": nothing is left.
func (c *simple) guess(w *spelt) string {
	if w.shape&globbed != 0 || w.text == "" || w.text == "-" {
		return ""
	}
	if w.shape&computed == 0 {
		return under(c.dir, w.text) // behind a cd with an unknown target
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

// place returns the path that a word names, seen from where the line starts. Not ok: it is unknown.
func (c *simple) place(w *spelt) (string, bool) {
	if w.shape&(computed|globbed) != 0 || w.text == "" || w.text == "-" {
		return "", false
	}
	p := w.text
	switch {
	case p[0] != '~':
	case w.shape&homely == 0:
		p = "./" + p // a quoted tilde is a name
	case p == "~+", strings.HasPrefix(p, "~+/"):
		p = "." + p[2:]
	case strings.HasPrefix(p, "~-"):
		return "", false
	}
	p, ok := throughProc(p)
	if !ok || c.lost && !rooted(p) {
		return "", false
	}
	return c.from(p), true
}

// from is a path as a program sees it. What stands before a `..` is kept: it may be a link.
func (st *ground) from(p string) string {
	if st.dir == "" || rooted(p) || st.dir[0] == '~' || p != ".." && !strings.HasPrefix(p, "../") {
		return under(st.dir, p)
	}
	return st.dir + "/" + p
}

// removesOf are the operands of rm and rmdir.
func removesOf(c *simple) []string {
	var removes []string
	for n, h := range c.heads {
		if h.quiet || h.row == nil || h.row.Name != "rm" && h.row.Name != "rmdir" {
			continue
		}
		for _, w := range c.reading(n).operands() {
			t := w.text
			if w.shape&dotted != 0 || w.from == w.to {
				continue // what find finds, but not all that it looks through; what xargs takes
			}
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

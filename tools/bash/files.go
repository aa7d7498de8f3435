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
		switch c.words[h.at].name() {
		case "rm", "rmdir", "grm", "grmdir":
		default:
			continue
		}
		for _, w := range plainWords(c.words[h.at+1:h.end], "", "") {
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

// plainWords are the words that are no options. valued are the letters that take the next word if nothing is glued to
// them; long are long options that take the next word, with blanks around each.
func plainWords(args []spelt, valued, long string) []spelt {
	var found []spelt
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		switch {
		case t == "--":
			return append(found, args[i+1:]...)
		case len(t) < 2 || t[0] != '-':
			found = append(found, args[i])
		case t[1] == '-':
			if !strings.Contains(t, "=") && strings.Contains(long, " "+t+" ") {
				i++
			}
		default:
			if n := strings.IndexAny(t, valued); valued != "" && n == len(t)-1 {
				i++
			}
		}
	}
	return found
}

// optionValue returns the value of an option that is given glued or in the next word; nil: it is not there.
func optionValue(args []spelt, letter byte, valued, long string) *spelt {
	for i := range args {
		t := args[i].text
		switch {
		case t == "--":
			return nil
		case len(t) < 2 || t[0] != '-':
			continue
		case t[1] == '-':
			if long == "" || !abbreviates(t, long) {
				continue
			}
			if _, value, glued := strings.Cut(t, "="); glued {
				return &spelt{text: value, bare: value, shape: args[i].shape}
			}
		default:
			n := strings.IndexByte(t, letter)
			if n < 1 || valued != "" && strings.ContainsAny(t[1:n], valued) {
				continue
			}
			if n+1 < len(t) {
				return &spelt{text: t[n+1:], bare: t[n+1:], shape: args[i].shape}
			}
		}
		if i+1 < len(args) {
			return &args[i+1]
		}
	}
	return nil
}

// moved is where cp, mv, ln and install put what they are given. The first of the targets is the place itself. The
// others are the names in it, if it is a directory: `sure` says that it must be one.
func moved(args []spelt, valued string) (sources, targets []spelt, sure bool) {
	all := plainWords(args, valued, " --suffix --target-directory --mode --owner --group ")
	dir := optionValue(args, 't', strings.ReplaceAll(valued, "t", ""), "--target-directory")
	switch {
	case dir != nil:
		sources = all
	case len(all) > 1:
		sources, dir = all[:len(all)-1], &all[len(all)-1]
	default:
		return all, nil, false
	}
	base := path.Base(dir.text)
	sure = len(sources) != 1 || dir != &all[len(all)-1] || strings.HasSuffix(dir.text, "/") || base == "." ||
		base == ".."
	targets = append(targets, *dir)
	if !sure && optionOf(args, "T", valued, "--no-target-directory") != "" {
		return sources, targets, true
	}
	for i := range sources {
		into := *dir
		into.text = path.Join(dir.text, path.Base(sources[i].text))
		into.shape |= sources[i].shape &^ homely
		targets = append(targets, into)
	}
	return sources, targets, sure
}

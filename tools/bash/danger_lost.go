package bash

import (
	"path"
	"slices"
	"strings"
)

// A Loss is a place in which a command may discard content, as far as its text tells. It may be wider than what the
// command discards, never narrower. The zero Loss is wherever the command may write.
type Loss struct {
	Path string // as FileUse.Path; "": it is not in the text
	Glob bool   // Path is a pattern for filepath.Glob
	Tree bool   // git starts in Path: all of its work tree
	Deep bool   // repositories below go as well, not only files in them

	Stash bool // of the repository at Path its stash goes, and no file
	Named bool // Path is a file that the text names: of anything else that is there nothing is meant

	// Perhaps: nothing says that the command changes it. It is kept if that is little, and decides nothing.
	Perhaps bool
}

// plainWrappers run the words behind them as they stand.
const plainWrappers = "command env nice ionice nohup setsid stdbuf time timeout"

// lose notes where the command in hand may discard content.
func (k *check) lose() {
	if k.noted || k.c == nil {
		return
	}
	k.noted = true
	for _, l := range k.lossesOf(k.c) {
		if !slices.Contains(k.losses, l) {
			k.losses = append(k.losses, l)
		}
	}
	for _, other := range k.c.others { // a cd before may have failed
		elsewhere := *k.c
		elsewhere.stand = stand{ground: other}
		for _, l := range k.lossesOf(&elsewhere) {
			if !slices.Contains(k.losses, l) {
				k.losses = append(k.losses, l)
			}
		}
	}
}

// lossesOf are the losses of the command at k.head, started where c stands.
func (k *check) lossesOf(c *simple) []Loss {
	h, r := c.heads[k.head], c.reading(k.head)
	if c.funcsMayHide() {
		return []Loss{{Deep: true}}
	}
	switch {
	case h.via == "find":
		return c.found(c.reading(0))
	case k.head > 0 && !isOneOf(h.via, plainWrappers):
		return []Loss{{Deep: true}}
	case h.name == "git":
		return c.gitLosses(r.gitCall())
	case h.name == "find":
		return c.found(r)
	}
	deep := h.name == "rm" && r.has("-r", "-R", "--recursive") != ""
	for i := range r.Options {
		if r.Options[i].Option == nil {
			return []Loss{{Deep: true}} // nothing is known of what it takes
		}
	}
	_, words := operandsOf(h.name, r)
	if len(words) == 0 {
		return []Loss{{Deep: true}}
	}
	return c.placed(words, Loss{Deep: deep})
}

// funcsMayHide says whether options of the shell change what globs of the line stand for.
func (c *simple) funcsMayHide() bool { return strings.Contains(c.in.text, "shopt") }

// placed are the losses in what words name.
func (c *simple) placed(words []spelt, like Loss) []Loss {
	losses := make([]Loss, 0, len(words))
	for i := range words {
		losses = append(losses, c.lossAt(words[i], like))
	}
	return losses
}

func (c *simple) lossAt(w spelt, like Loss) Loss {
	isGlob := w.shape&globbed != 0
	w.shape &^= globbed
	p, ok := c.place(&w)
	if !ok || w.shape&(escaped|lavish) != 0 || strings.ContainsAny(w.text, `{\`) ||
		isGlob && (strings.Contains(p, "**") || strings.Contains(p, "(")) {
		return Loss{Deep: like.Deep || like.Stash}
	}
	like.Path, like.Glob = p, isGlob
	if isGlob {
		like.Path = strings.ReplaceAll(p, "[!", "[^")
	}
	return like
}

// found are the losses of a find that removes what it finds. Without a test of names that is all there is.
func (c *simple) found(r *reading) []Loss {
	like := Loss{Deep: true}
	for i := range r.args {
		switch r.args[i].bare {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex":
			like.Deep = false
		}
	}
	for i := range r.args {
		if isOneOf(r.args[i].bare, "! -not -o -or ,") {
			like.Deep = true
		}
	}
	starts := r.operands()
	if len(starts) == 0 {
		starts = []spelt{literalSpelt(".")}
	}
	return c.placed(starts, like)
}

// gitLosses are those of a git command: the files that it names, else all of the work tree.
func (c *simple) gitLosses(g *gitCall) []Loss {
	dir, known := g.starts()
	if !known {
		return []Loss{{Deep: true}}
	}
	if dir.text == "" {
		dir = literalSpelt(".")
	}
	if g.sub == "stash" {
		return c.placed([]spelt{dir}, Loss{Stash: true})
	}
	if isOneOf(g.sub, "checkout restore rm") {
		if _, words := gitPaths(g); len(words) > 0 && !slices.ContainsFunc(words, isPathspec) && !g.namesFiles() {
			return c.placed(words, Loss{})
		}
	}
	forced := 0 // git clean -ff removes repositories, too
	for i := range g.args {
		if t := g.args[i].bare; t == "--force" {
			forced++
		} else if len(t) > 1 && t[0] == '-' && t[1] != '-' {
			forced += strings.Count(t, "f")
		}
	}
	return c.placed([]spelt{dir}, Loss{Tree: true, Deep: g.sub == "clean" && forced > 1})
}

// namesFiles says whether paths stand in a file that an option names.
func (c *gitCall) namesFiles() bool { return c.has("--pathspec-from-file") != "" }

// isPathspec says whether git takes a word for a pattern, which also matches in directories below.
func isPathspec(w spelt) bool {
	return w.shape&globbed != 0 || strings.HasPrefix(path.Base(w.text), ":") || strings.ContainsAny(w.text, `*?[\`) ||
		strings.HasPrefix(w.text, ":")
}

package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// editsOf returns all paths that a part changes, if it is one of the simple changes of files with literal words, does
// nothing else, and each of its options is known; nil: it is not.
func editsOf(c *simple) []string {
	if _, call := c.node.(*syntax.CallExpr); !call || len(c.words) < 2 || len(c.heads) != 1 || len(c.assigns) > 0 {
		return nil
	}
	for i := range c.words {
		if !c.words[i].known() || c.words[i].text == "" {
			return nil
		}
	}
	for _, r := range c.stmt.Redirs {
		if !keepsNothing(r) {
			return nil
		}
	}
	if c.words[0].text != c.heads[0].name {
		return nil
	}
	changed := edited(c.heads[0].name, c.reading(0))
	edits := make([]string, 0, len(changed))
	for i := range changed {
		if changed[i].shape&perhaps != 0 {
			continue // among the files: the caller sees whether it can be there
		}
		p, ok := c.place(&changed[i])
		if !ok {
			return nil
		}
		edits = append(edits, p)
	}
	if len(edits) == 0 {
		return nil
	}
	return edits
}

// edited are the words that name what is changed, by a program of which nothing else is to be expected.
func edited(name string, r *reading) []spelt {
	switch {
	case name == "sed":
		return editedBySed(r.args)
	case r.row == nil || !r.row.Edits || name != r.row.Name:
		return nil
	}
	for i := range r.Options {
		if o := &r.Options[i]; o.Option == nil || !o.Safe || o.Shortened || o.Impossible {
			return nil
		}
	}
	reads, writes := operandsOf(name, r)
	if kind := r.row.Takes().Kind; (kind == "put" || kind == "move") && len(reads)+len(writes) < 2 {
		return nil
	}
	return writes
}

// editedBySed are the files of `sed -i`, with their backups, if the script reads and writes no others and runs nothing.
func editedBySed(args []spelt) []spelt {
	use := sedOf("sed", args)
	if !use.inPlace || !use.plain() || len(use.scripts) == 0 || strings.ContainsAny(use.suffix, "/*") {
		return nil
	}
	return backedUp(use.files, use.suffix)
}

// backedUp adds the backups of files; suffix "": there are none.
func backedUp(files []spelt, suffix string) []spelt {
	changed := slices.Clip(files)
	if suffix != "" {
		for _, w := range files {
			w.text += suffix
			changed = append(changed, w)
		}
	}
	return changed
}

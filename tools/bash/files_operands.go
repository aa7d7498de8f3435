package bash

import (
	"path"
	"strings"

	"codehand/tools/bash/programs"
)

// operandsOf are the paths among the arguments of a program that is understood: what it reads, and what it changes.
func operandsOf(name string, r *reading) (reads, writes []spelt) {
	if name == "git" {
		return gitPaths(r.gitCall())
	}
	if r.row == nil {
		return nil, nil
	}
	reads, writes = r.values()
	takes := r.row.Takes()
	words, kind := r.operands()[r.skipped():], takes.Kind
	switch {
	case takes.First == "path" && r.instead(): // `perl -ne CODE FILE…`
		kind = takes.First
	case takes.First == "path": // the others are something else
		n := min(takes.Skip, len(words))
		reads, words = append(reads, words[:n]...), words[n:]
	}
	switch kind {
	case "path":
		if !r.does(programs.Changes) {
			return append(reads, words...), writes
		}
		return reads, append(writes, backedUp(words, sedOf(name, r.args).suffix)...)
	case "write":
		writes = append(writes, words...)
	case "put", "move", "link":
		from, to := put(r, kind)
		reads, writes = append(reads, from...), append(writes, to...)
	case "key":
		return dumped(r.args)
	case "archive":
		reads = append(reads, archived(r)...)
	}
	return reads, writes
}

// values are the files that options name.
func (r *reading) values() (reads, writes []spelt) {
	for i := range r.Options {
		o := &r.Options[i]
		if o.Option == nil || o.Value < 0 {
			continue
		}
		switch o.Kind {
		case programs.Reads, programs.List:
			reads = append(reads, r.value(o))
		case programs.Write:
			writes = append(writes, r.value(o))
		}
	}
	return reads, writes
}

// put is what cp, mv, ln and install read and change.
func put(r *reading, kind string) (reads, writes []spelt) {
	sources, targets, sure := moved(r)
	for i := 1; i < len(targets) && !sure; i++ {
		targets[i].shape |= perhaps
	}
	switch kind {
	case "move":
		return nil, append(targets, sources...)
	case "link":
		return nil, targets
	}
	return sources, targets
}

// moved is where cp, mv, ln and install put what they are given. The first of the targets is the place itself. The
// others are the names in it, if it is a directory: `sure` says that it must be one.
func moved(r *reading) (sources, targets []spelt, sure bool) {
	all := r.operands()
	dir := r.given("-t", "--target-directory")
	last := false
	switch {
	case dir != nil:
		sources = all
	case len(all) > 1:
		sources, dir, last = all[:len(all)-1], &all[len(all)-1], true
	default:
		return all, nil, false
	}
	base := path.Base(dir.text)
	sure = len(sources) != 1 || !last || strings.HasSuffix(dir.text, "/") || base == "." || base == ".."
	targets = append(targets, *dir)
	if !sure && r.has("-T", "--no-target-directory") != "" {
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

// dumped are the files of dd.
func dumped(args []spelt) (reads, writes []spelt) {
	for i := range args {
		w := args[i]
		key, value, _ := strings.Cut(w.text, "=")
		w.text, w.bare = value, value
		switch key {
		case "if":
			reads = append(reads, w)
		case "of":
			writes = append(writes, w)
		}
	}
	return reads, writes
}

// archived are the files that a program packs or sends. The last place of rsync and scp is where they go.
func archived(r *reading) (reads []spelt) {
	words := r.operands()
	switch r.row.Name {
	case "tar":
		old := ""
		if len(r.args) > 0 && !strings.HasPrefix(r.args[0].bare, "-") {
			old = r.args[0].bare // tar cf a.tar x
			words = words[min(len(words), 1+strings.Count(old, "f")):]
		}
		if !strings.ContainsAny(old, "cruA") &&
			r.has("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--catenate", "--concatenate") == "" {
			return nil
		}
		return words
	case "zip", "7z":
		return words[min(1, len(words)):]
	}
	for _, w := range words[:max(0, len(words)-1)] {
		if !strings.Contains(w.text, ":") {
			reads = append(reads, w)
		}
	}
	return reads
}

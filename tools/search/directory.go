package search

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"codehand/tools/search/ignore"
	"codehand/tools/search/index"
)

const (
	// readBatch is how many names are read from a directory at once.
	readBatch = 1024
	// nameBatch is how many names of one directory are held together, so that a million files in one need no memory for
	// a million names.
	nameBatch = 8192
	// maxDepth is how many components a path may have that is gone into: no tool takes one with more (workspace.Open),
	// and each directory is opened from the beginning, so a tree of a million levels would be a walk without an end.
	maxDepth = 256
	// fullWait is how long a directory waits for a free descriptor.
	fullWait = time.Second
)

// vcsNames are never entered nor searched.
var vcsNames = map[string]bool{".git": true, ".svn": true, ".hg": true, ".bzr": true, ".jj": true, ".sl": true}

// directory reads one directory, hands its files on, and puts its directories on the stack.
func (w *walk) directory(visit visitor, it item) {
	if w.worked != nil {
		w.worked()
	}
	dir, ok := w.open(it.rel)
	if !ok {
		return
	}
	defer dir.release()
	stamp, known := w.memory.listing(dir)
	if known != nil {
		w.listed(visit, it, dir, known, true)
		return
	}
	for first := true; ; first = false {
		entries, last, err := w.entries(dir.folder)
		in := &index.Dir{Stamp: stamp, Entries: entries}
		if first && err == nil {
			w.memory.keep(dir, in, last)
		}
		if first && !w.scope.Ignored {
			it.rules = w.rulesOf(dir.folder, it, entries, last)
		}
		w.listed(visit, it, dir, in, false)
		switch {
		case err != nil:
			w.note(ofUnreadable, it.rel)
			return
		case last:
			return
		case w.halt.stopped():
			w.leave(it.rel)
			return
		}
	}
}

// listed goes through a listing. fresh: the rules of the directory's own files are still to be added.
func (w *walk) listed(visit visitor, it item, dir *shared, in *index.Dir, fresh bool) {
	if fresh && !w.scope.Ignored {
		it.rules = w.rulesOf(dir.folder, it, in.Entries, true)
	}
	if len(in.Entries) > 0 {
		files := w.sort(it, in.Entries)
		w.batch(visit, item{rel: it.rel, files: files, in: in, dir: dir.retain()})
	}
}

// open opens a directory of the walk, to be released. false: it was counted, or is gone.
func (w *walk) open(rel string) (*shared, bool) {
	if rel == "" {
		return w.top.retain(), true
	}
	d, err := w.top.below(rel)
	for wait := time.Millisecond; full(err) && wait < fullWait && !w.halt.stopped(); wait *= 2 {
		select { // another directory may be closed meanwhile
		case <-time.After(wait):
		case <-w.halt.done:
		}
		d, err = w.top.below(rel)
	}
	switch {
	case err == nil:
		return (&shared{folder: d}).retain(), true
	case errors.Is(err, errSystem):
		w.note(ofSpecial, rel)
	case !vanished(err):
		w.note(ofUnreadable, rel)
	}
	return nil, false
}

// entries reads the next names of a directory, up to nameBatch, sorted.
func (w *walk) entries(d folder) (entries []index.Listed, last bool, err error) {
	for len(entries) < nameBatch {
		more, err := d.entries(readBatch)
		if entries == nil {
			entries = more
		} else {
			entries = append(entries, more...)
		}
		if err != nil || len(more) == 0 {
			if isEnd(err) {
				err = nil
			}
			slices.SortFunc(entries, byName)
			return entries, true, err
		}
	}
	slices.SortFunc(entries, byName)
	return entries, false, nil
}

func byName(a, b index.Listed) int { return strings.Compare(a.Name, b.Name) }

// sort decides about entries: directories go to the stack, names of files are returned, the rest is counted or dropped.
func (w *walk) sort(of item, entries []index.Listed) []listed {
	files := make([]listed, 0, len(entries))
	var dirs []item
	for i, e := range entries {
		name := e.Name
		if !goodName(name) || vcsNames[name] {
			continue
		}
		below := joinPath(of.rel, name)
		switch kind := e.Kind; {
		case kind.IsDir():
			if in, out := w.enters(below, name, of); in {
				dirs = append(dirs, item{rel: below, rules: of.rules, out: out})
			}
		case !w.wants(below, of):
		case kind.IsRegular():
			files = append(files, listed{below, i})
		case kind&fs.ModeSymlink != 0:
			w.note(ofLinks, below)
		case w.named == nil || w.named(below):
			w.note(ofSpecial, below)
		}
	}
	slices.Reverse(dirs)
	if len(dirs) > 0 {
		w.push(dirs...)
	}
	return files
}

// goodName refuses what no file system of the kernel's own gives, but a hostile one may.
func goodName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// enters decides about a directory. out: ignore files leave it out, or the one it is in.
func (w *walk) enters(rel, name string, of item) (in, out bool) {
	if w.skip[name] || w.leads != nil && !w.leads(rel) || w.filter.excludesDir(rel) {
		return false, false
	}
	if out = of.out || of.rules.Ignored(w.abs(rel), true); out && !w.scope.LeftOut {
		return false, false
	}
	if w.scope.Omit.Match(rel, true) == ignore.Ignore {
		w.note(ofOmitted, rel)
		return false, false
	}
	if strings.Count(w.abs(rel), "/") >= maxDepth {
		w.note(ofUnreadable, rel)
		return false, false
	}
	return !w.hidden(rel), out
}

// wants decides about a file by its name.
func (w *walk) wants(rel string, of item) bool {
	in, sure := w.filter.file(rel)
	switch {
	case !in:
		return false
	case w.scope.LeftOut:
		if !of.out && !of.rules.Ignored(w.abs(rel), false) {
			return false
		}
	case !sure && of.rules.Ignored(w.abs(rel), false):
		return false
	}
	if w.scope.Omit.Match(rel, false) == ignore.Ignore {
		if w.named == nil || w.named(rel) { // else nobody asked for it
			w.note(ofOmitted, rel)
		}
		return false
	}
	return true
}

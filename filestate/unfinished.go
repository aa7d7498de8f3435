package filestate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
)

// A past collects what a walk through the changes, newest first, has learned from the newer ones.
type past struct {
	found map[string]string // what the next newer change found at a path
	back  map[string]bool   // changes that were taken back by an undo which was made, but never noted as ended
}

// made says whether a change was made, or a part of it, as far as that can be seen.
func (p past) made(ctx context.Context, e journal.Entry) bool {
	if !e.Open && !e.Unsure {
		for _, f := range e.Files {
			p.found[f.Path] = f.Before
		}
		return true
	}
	if !slices.ContainsFunc(e.Files, func(f journal.EntryFile) bool { return !p.held(ctx, f.Path, f.Before) }) {
		return false
	}
	whole := true
	for _, f := range e.Files {
		if p.held(ctx, f.Path, f.After) {
			p.found[f.Path] = f.Before
		} else {
			whole = false
		}
	}
	undoes := e.Undoes
	if e.Portion.Whole() {
		undoes = []string{e.Portion.ID} // of its files, one of which is the one that is asked about
	}
	for _, id := range undoes {
		p.back[id] = p.back[id] || whole && !e.Undone && !p.back[e.ID]
	}
	return true
}

// held says whether a path held that content right after the change that the walk has reached.
func (p past) held(ctx context.Context, path, sum string) bool {
	if found, known := p.found[path]; known {
		return found == sum
	}
	return holds(ctx, path, sum)
}

// holds says whether the file at a path has the content with that SHA-256, in hex; "": whether there is no file. It is
// false for a file that cannot be read.
func holds(ctx context.Context, path, sum string) bool {
	dir, err := disk.Reopen(filepath.Dir(path))
	if err != nil {
		return sum == "" && errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	file, stamp, err := disk.OpenRegular(dir, filepath.Base(path), path)
	if err != nil {
		return sum == "" && errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = file.Close() }() // only read
	if sum == "" || stamp.Size > disk.MaxSize {
		return false
	}
	now, err := disk.StreamDigest(ctx, file, stamp.Size)
	return err == nil && now.Hex() == sum
}

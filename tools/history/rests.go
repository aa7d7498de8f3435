package history

import (
	"context"
	"errors"
	"slices"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// since returns the changes of a file that came after one of them, the newest first.
func since(ctx context.Context, env tool.Env, e journal.Entry, path string) ([]journal.Entry, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reached := errors.New("older ones do not matter")
	entries, err := env.Files.History(ctx, journal.Query{Path: path, Fits: func(x journal.Entry) bool {
		if x.ID == e.ID {
			stop(reached)
		}
		return x.ID != e.ID && x.Time.After(e.Time)
	}})
	if errors.Is(err, reached) {
		err = nil
	}
	return entries, err
}

// ofHunk says whether a change took back one hunk of another.
func ofHunk(x journal.Entry) bool { return x.Portion != nil && x.Portion.Hunk != "" }

// takenBack are the hunks of a change that were taken back by themselves, with the changes that did, of those since.
func takenBack(since []journal.Entry, e journal.Entry) (heads []string, by []journal.Entry) {
	for _, x := range since {
		if ofHunk(x) && x.Portion.ID == e.ID && !x.Undone && !x.Open && !x.Unsure &&
			!slices.Contains(heads, x.Portion.Hunk) {
			heads, by = append(heads, x.Portion.Hunk), append(by, x)
		}
	}
	return heads, by
}

// rests are what a file of a change may be besides what that left: only hunks were taken back in it since, of this
// change or of others. Nothing that anybody wrote is in it, as the journal has every content on the way.
func rests(ctx context.Context, env tool.Env, e journal.Entry, f journal.EntryFile) []filestate.Rest {
	if e.Kept != "" || f.Op != "update" || f.NoCopy || f.Why != "" {
		return nil
	}
	newer, err := since(ctx, env, e, f.Path)
	if err != nil || !slices.ContainsFunc(newer, ofHunk) {
		return nil
	}
	before, after, err := env.Files.Contents(ctx, e.ID, f.Path)
	if err != nil {
		return nil
	}
	heads, _ := takenBack(newer, e)
	left, err := textedit.Without(before, after, heads...)
	if err != nil {
		return nil // the note is damaged
	}
	all := []filestate.Rest{{Now: left, Then: before}}
	if !onlyHunks(newer, f.Path, disk.DigestOf(after).Hex(), disk.DigestOf(left).Hex()) {
		return all
	}
	_, now, err := env.Files.Contents(ctx, newer[0].ID, f.Path)
	if err != nil || now == nil {
		return all
	}
	if then, err := textedit.Around(before, left, now); err == nil {
		all = append([]filestate.Rest{{Now: now, Then: then}}, all...)
	}
	return all
}

// onlyHunks says whether changes that each took a hunk back, or put one there again, made what a file is after the
// newest change of one of these contents, by their hashes. What was done and taken back in between does not matter:
// then the file was again what it had been.
func onlyHunks(newer []journal.Entry, path string, start ...string) bool {
	hunks := map[string]bool{}
	for _, x := range newer {
		hunks[x.ID] = ofHunk(x)
	}
	file := func(x journal.Entry) journal.EntryFile {
		return x.Files[slices.IndexFunc(x.Files, func(f journal.EntryFile) bool { return f.Path == path })]
	}
	now := file(newer[0]).After
	for !slices.Contains(start, now) {
		at := -1 // the oldest that left it so
		for i, x := range newer {
			if !x.Open && !x.Unsure && file(x).After == now {
				at = i
			}
		}
		if at < 0 {
			return false
		}
		x := newer[at]
		again := len(x.Undoes) > 0 && !slices.ContainsFunc(x.Undoes, func(id string) bool { return !hunks[id] })
		if !ofHunk(x) && !again {
			return false
		}
		now, newer = file(x).Before, newer[at+1:]
	}
	return true
}

package history

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/editing"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// MaxRunes is how much of a change an answer shows at most. Hunks are counted in what is shown.
const MaxRunes = 20_000

// FileDiff is what a change did to one of so many files, as it is shown, with both contents; those of a large file are
// nil.
func FileDiff(ctx context.Context, env tool.Env, e journal.Entry, f journal.EntryFile, of int) (text string,
	before, after []byte, err error) {
	before, after, err = env.Files.Contents(ctx, e.ID, f.Path)
	room := max(min(env.Limit, MaxRunes)-1000, editing.MaxDiff)
	if errors.Is(err, journal.ErrNoCopy) { // of a large file there may be the places that differ
		if list, err := env.Files.Splices(ctx, e.ID, f.Path); err == nil {
			text, _ = editing.SplicesDiff(list, room/of)
			return text, nil, nil, nil
		}
	}
	text, _ = editing.ContentDiff(before, after, room/of)
	return text, before, after, err
}

var hunkName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([1-9]\d{0,5}) (@@ -[\d,]+ \+[\d,]+ @@)$`)
})

// NamesHunk says whether a text can be the name of a hunk.
func NamesHunk(name string) bool { return hunkName().MatchString(name) }

// A Hunk is one part of a change, of one file.
type Hunk struct {
	Head string // its first line
	Path string

	entry         journal.Entry
	before, after []byte
}

// FindHunk finds a hunk of a change by its place among those that are shown of the change, from 1, and its head: `2 @@
// -1 +1 @@`.
func FindHunk(ctx context.Context, env tool.Env, view *View, e journal.Entry, name string) (*Hunk, error) {
	m := hunkName().FindStringSubmatch(name)
	if m == nil {
		return nil, noHunk(e, name)
	}
	left, _ := strconv.Atoi(m[1])
	files := view.Files(e)
	for _, f := range files {
		text, before, after, err := FileDiff(ctx, env, e, f, len(files))
		if err != nil {
			continue // it is shown without a diff
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "@@") {
				continue
			}
			if left--; left > 0 {
				continue
			}
			if strings.TrimSuffix(line, "\n") != m[2] || before == nil || after == nil || e.Kept != "" {
				return nil, noHunk(e, name)
			}
			return &Hunk{Head: m[2], Path: f.Path, entry: e, before: before, after: after}, nil
		}
	}
	return nil, noHunk(e, name)
}

func noHunk(e journal.Entry, name string) error {
	return tool.Refuse(tool.UndoUnavailable,
		"Change %s has no hunk %s that can be taken back by itself. Take back the whole change.", e.ID, name)
}

// TakeBack takes the hunk back in the file of its step, and spares what was written elsewhere in it since. The last
// hunk of a change takes that back as a whole, if nothing else is in the way. steps are those of the change.
func (h *Hunk) TakeBack(ctx context.Context, env tool.Env, by journal.By,
	steps []filestate.Step) ([]filestate.Change, error) {
	if h.entry.Undone {
		return nil, undoConflict("Change "+h.entry.ID+" was taken back already.", undoChanged, nil)
	}
	newer, err := since(ctx, env, h.entry, h.Path)
	if err != nil {
		return nil, Fault("The changes of "+h.Path, err)
	}
	gone, backs := takenBack(newer, h.entry)
	if at := slices.Index(gone, h.Head); at >= 0 {
		return nil, undoConflict("Hunk "+h.Head+" is not there any more: change "+backs[at].ID+" took it back already.",
			"To have it again, take back that change.", nil)
	}
	left, err := textedit.Without(h.before, h.after, append(slices.Clone(gone), h.Head)...)
	if err == nil && bytes.Equal(left, h.before) && len(steps) == 1 {
		changes, err := env.Files.Undo(ctx, by, steps...)
		if len(undoConflicts(err)) == 0 {
			return changes, h.refusal(ctx, env, err)
		}
	}
	file := steps[slices.IndexFunc(steps, func(s filestate.Step) bool { return s.File.Path == h.Path })].File
	changes, err := env.Files.UndoPortion(ctx, by, journal.Portion{ID: h.entry.ID, Hunk: h.Head}, filestate.Edit{
		File: file, Unseen: true, // what the person saw is the hunk, and its lines must be what it left
		Change: func(now []byte) ([]byte, error) {
			if now == nil {
				return nil, &filestate.ConflictError{Path: h.Path, Want: h.after}
			}
			back, err := textedit.TakeBack(h.before, h.after, now, h.Head, gone...)
			if errors.Is(err, textedit.ErrTouched) && len(gone) > 0 { // a person may have put those there again
				back, err = textedit.TakeBack(h.before, h.after, now, h.Head)
			}
			if errors.Is(err, textedit.ErrTouched) {
				err = &filestate.ConflictError{Path: h.Path, Want: h.after, Now: now}
			}
			return back, err
		},
	})
	return changes, h.refusal(ctx, env, err)
}

func (h *Hunk) refusal(ctx context.Context, env tool.Env, err error) error {
	switch {
	case errors.Is(err, textedit.ErrNoHunk):
		return noHunk(h.entry, h.Head)
	case err != nil:
		return UndoRefusal(ctx, env, h.entry, err)
	}
	return nil
}

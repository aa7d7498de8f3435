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

// errHunkGone is why a hunk is not taken back: it was before.
var errHunkGone = errors.New("the hunk was taken back already")

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
	all := hunks(ctx, env, view, e)
	i, _ := strconv.Atoi(m[1])
	if i > len(all) || all[i-1].Head != m[2] || !all[i-1].known() {
		return nil, noHunk(e, name)
	}
	return all[i-1], nil
}

// hunks are those that are shown of a change.
func hunks(ctx context.Context, env tool.Env, view *View, e journal.Entry) (all []*Hunk) {
	files := view.Files(e)
	for _, f := range files {
		text, before, after, err := FileDiff(ctx, env, e, f, len(files))
		if err != nil {
			continue // it is shown without a diff
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "@@") {
				all = append(all, &Hunk{Head: strings.TrimSuffix(line, "\n"), Path: f.Path, entry: e, before: before,
					after: after})
			}
		}
	}
	return all
}

// known says whether the hunk can be taken back by itself: the contents around it are here.
func (h *Hunk) known() bool { return h.entry.Kept == "" && (h.before != nil || h.after != nil) }

func noHunk(e journal.Entry, name string) error {
	return tool.Refuse(tool.UndoUnavailable,
		"Change %s has no hunk %s that can be taken back by itself. Take back the whole change.", e.ID, name)
}

// TakeBack takes the hunk back in its file, and spares what was written elsewhere in it since. The last hunk of a file
// takes back all that the change did to it, if nothing else is in the way. So does the one of a file that the change
// made or removed.
func (h *Hunk) TakeBack(ctx context.Context, env tool.Env, words Words, by journal.By) ([]filestate.Change, error) {
	if h.entry.Back(h.Path) {
		return nil, undoConflict("Change "+h.entry.ID+" was taken back already.", words.changed(), nil)
	}
	if h.before == nil || h.after == nil {
		changes, err := h.takeFile(ctx, env, words, by)
		return changes, h.refusal(ctx, env, words, err)
	}
	newer, err := since(ctx, env, h.entry, h.Path)
	if err != nil {
		return nil, Fault("The changes of "+h.Path, err)
	}
	gone, backs := takenBack(newer, h.entry)
	if at := slices.Index(gone, h.Head); at >= 0 {
		return nil, undoConflict("Hunk "+h.Head+" is not there any more: change "+backs[at].ID+" took it back already.",
			"To have it again, take back that change.", errHunkGone)
	}
	left, err := textedit.Without(h.before, h.after, append(slices.Clone(gone), h.Head)...)
	if err == nil && bytes.Equal(left, h.before) {
		changes, err := h.takeFile(ctx, env, words, by)
		if refusal, is := errors.AsType[*tool.Refusal](err); len(undoConflicts(err)) == 0 &&
			(!is || refusal.Code != tool.UndoConflict) {
			return changes, h.refusal(ctx, env, words, err)
		}
	}
	steps, err := h.part().Steps(ctx, env, words)
	defer closeSteps(steps)
	if err != nil {
		return nil, err
	}
	changes, err := env.Files.UndoPortion(ctx, by, journal.Portion{ID: h.entry.ID, Hunk: h.Head}, filestate.Edit{
		File: steps[0].File, Unseen: true, // what the person saw is the hunk, and its lines must be what it left
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
	return changes, h.refusal(ctx, env, words, err)
}

// part is all that the change did to the file of the hunk.
func (h *Hunk) part() Undo {
	files := slices.DeleteFunc(slices.Clone(h.entry.Files), func(f journal.EntryFile) bool { return f.Path != h.Path })
	return Undo{Entry: h.entry, Files: files}
}

// takeFile takes back all that the change did to the file of the hunk, under both names if it was moved.
func (h *Hunk) takeFile(ctx context.Context, env tool.Env, words Words, by journal.By) ([]filestate.Change, error) {
	part := Undo{Entry: h.entry, Files: together(h.entry, h.Path)}
	steps, err := part.Steps(ctx, env, words)
	defer closeSteps(steps)
	if err != nil {
		return nil, err
	}
	return part.TakeBack(ctx, env, by, steps)
}

func (h *Hunk) refusal(ctx context.Context, env tool.Env, words Words, err error) error {
	switch {
	case errors.Is(err, textedit.ErrNoHunk):
		return noHunk(h.entry, h.Head)
	case err != nil:
		return h.part().Refusal(ctx, env, words, err)
	}
	return nil
}

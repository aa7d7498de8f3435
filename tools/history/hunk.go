package history

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

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

var hunkName = regexp.MustCompile(`^([1-9]\d{0,5}) (@@ -[\d,]+ \+[\d,]+ @@)$`)

// NamesHunk says whether a text can be the name of a hunk.
func NamesHunk(name string) bool { return hunkName.MatchString(name) }

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
	m := hunkName.FindStringSubmatch(name)
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

// TakeBack takes the hunk back in its file, and spares what was written elsewhere in it since.
func (h *Hunk) TakeBack(ctx context.Context, env tool.Env, by journal.By,
	file filestate.File) ([]filestate.Change, error) {
	changes, err := env.Files.Update(ctx, by, filestate.Edit{
		File: file, Unseen: true, // what the person saw is the hunk, and its lines must be what it left
		Change: func(now []byte) ([]byte, error) {
			if now == nil {
				return nil, &filestate.ConflictError{Path: h.Path, Want: h.after}
			}
			back, err := textedit.TakeBack(h.before, h.after, now, h.Head)
			if errors.Is(err, textedit.ErrTouched) {
				err = &filestate.ConflictError{Path: h.Path, Want: h.after, Now: now}
			}
			return back, err
		},
	})
	switch {
	case errors.Is(err, textedit.ErrNoHunk):
		return nil, noHunk(h.entry, h.Head)
	case err != nil:
		return nil, UndoRefusal(ctx, env, h.entry, err)
	}
	return changes, nil
}

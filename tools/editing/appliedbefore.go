package editing

import (
	"bytes"
	"context"
	"time"

	"codehand/filestate/journal"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// appliedChanges, appliedBytes and appliedTime are how much of the journal is looked at for an edit that was made
// before, and how long it is looked for at a time: a hint must not take long, and a journal may hold a month of
// changes.
const (
	appliedChanges = 4
	appliedBytes   = 4 << 20
	appliedTime    = 25 * time.Millisecond
)

// appliedBefore says that the session has made exactly this edit of the file before, and that now, which has no more of
// what it replaces, still has what it wrote: of the content that one of the last changes found it makes what that
// change left, or, if other edits were made with it, is used up in that.
func appliedBefore(ctx context.Context, env tool.Env, path string, now []byte, e textedit.Edit) bool {
	for range 2 { // the machine may have stood still for all of one time
		if made, late := madeBefore(ctx, env, path, now, e); !late {
			return made
		}
	}
	return false
}

// madeBefore is one look; late: its time was over first.
func madeBefore(ctx context.Context, env tool.Env, path string, now []byte, e textedit.Edit) (made, late bool) {
	if len(now) > appliedBytes {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, appliedTime)
	defer cancel()
	past, err := env.Files.History(ctx, journal.Query{Path: path, Session: env.Key.Session, Limit: appliedChanges})
	if err != nil {
		return false, ctx.Err() != nil
	}
	for _, entry := range past {
		if entry.Undone || len(entry.Undoes) > 0 || entry.Open {
			continue
		}
		before, after, err := env.Files.Contents(ctx, entry.ID, path)
		if err != nil || len(before)+len(after) > appliedBytes {
			continue
		}
		left, _, err := textedit.Apply(before, []textedit.Edit{e})
		if err == nil && (bytes.Equal(left, after) || textedit.UsedUp(after, e)) {
			return e.New == "" || bytes.Equal(now, after) || textedit.UsedUp(now, e), false
		}
	}
	return false, ctx.Err() != nil
}

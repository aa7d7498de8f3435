package editing

import (
	"bytes"
	"context"
	"time"

	"codehand/filestate/journal"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// Limits of the search for an edit that was made before: changes of the journal, bytes, time. It only makes a hint, but
// one that a busy machine must not lose: the time is for a journal with so many notes, which this process has not read
// yet, that a failed edit would wait for seconds.
const (
	appliedChanges = 4
	appliedBytes   = 4 << 20
	appliedTime    = time.Second
)

// appliedBefore reports whether this session has already made exactly this edit, and the file still holds its result.
// It applies the edit to the content before each of the session's last changes of the file. The edit was made if that
// gives the content after the change. If the change had other edits, too, it is enough that the content after it holds
// the new text and no longer the old one. now is what the file holds now.
func appliedBefore(ctx context.Context, env tool.Env, path string, now []byte, e textedit.Edit) bool {
	if len(now) > appliedBytes {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, appliedTime)
	defer cancel()
	past, err := env.Files.History(ctx, journal.Query{Path: path, Session: env.Key.Session, Limit: appliedChanges})
	if err != nil {
		return false
	}
	for _, entry := range past {
		if entry.Back(path) || entry.IsUndo() || entry.Open {
			continue
		}
		before, after, err := env.Files.Contents(ctx, entry.ID, path)
		if err != nil || len(before)+len(after) > appliedBytes {
			continue
		}
		left, _, err := textedit.Apply(before, []textedit.Edit{e})
		if err == nil && (bytes.Equal(left, after) || textedit.UsedUp(after, e)) {
			return e.New == "" || bytes.Equal(now, after) || textedit.UsedUp(now, e)
		}
	}
	return false
}

package tools

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"codehand/filestate/journal"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// appliedChanges, appliedBytes and appliedTime are how much of the journal is looked at for an edit that was made before,
// and how long it is looked for: a hint must not take long, and a journal may hold a month of changes.
const (
	appliedChanges = 4
	appliedBytes   = 4 << 20
	appliedTime    = time.Second
)

// appliedBefore says that the session has made exactly this edit of the file before, and that now, which has no more of
// what it replaces, still has what it wrote: of the content that one of the last changes found it makes what that change
// left, or, if other edits were made with it, is used up in that.
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
		if entry.Undone || len(entry.Undoes) > 0 || entry.Open {
			continue
		}
		before, after, err := env.Files.Contents(ctx, entry.ID, path)
		if err != nil || len(before)+len(after) > appliedBytes {
			continue
		}
		made, _, err := textedit.Apply(before, []textedit.Edit{e})
		if err == nil && (bytes.Equal(made, after) || usedUp(after, e)) {
			return e.New == "" || bytes.Equal(now, after) || usedUp(now, e)
		}
	}
	return false
}

// usedUp says that content has what an edit writes, and nothing for it to replace.
func usedUp(content []byte, e textedit.Edit) bool {
	_, _, err := textedit.Apply(content, []textedit.Edit{e})
	_, missing := errors.AsType[*textedit.NotFoundError](err)
	fold := strings.NewReplacer("\r\n", "\n")
	return missing && e.New != "" && strings.Contains(fold.Replace(textedit.Shown(content)), fold.Replace(e.New))
}

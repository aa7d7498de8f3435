package history

import (
	"context"
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/editing"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// KeptContent shows a content that the journal kept because no file has it: what another program saved during a change,
// or what a killed process left. It shows text for reading; undo_change writes the exact bytes.
func KeptContent(id string, content []byte) string {
	back := "To write it to the file, byte for byte, use undo_change with change_id " + id + "."
	encoding, err := textedit.Detect(content)
	if err != nil {
		return fmt.Sprintf("(not text: %s)\n%s", results.Size(int64(len(content))), back)
	}
	what := encoding.String()
	shown, bad := encoding.Decode(content[encoding.Mark():])
	if bad > 0 {
		what += ", " + results.Count(bad) + " bytes are not text"
	}
	if lf := strings.ReplaceAll(shown, "\r\n", "\n"); lf != shown {
		shown, what = lf, what+", CRLF"
	}
	shown, _ = results.Show(shown)
	return strings.TrimSuffix("This content ("+what+") was kept because no file held it. "+back+"\n"+shown, "\n")
}

// UndoneFiles says of each file what it is now, or what it would be if the undo was only tried. hidden has the indexes
// of the changes that it does not show completely. shows says of a path whether its content may be shown; nil: all.
func UndoneFiles(e journal.Entry, changes []filestate.Change, tried bool,
	shows func(path string) bool) (text string, hidden []int) {
	var b strings.Builder
	for i, c := range changes {
		b.WriteString("\n" + undone(e, c, tried))
		if shows != nil && !shows(c.Path) {
			if c.After != "" {
				hidden = append(hidden, i)
			}
			continue
		}
		diff, whole := editing.ChangeDiff(c, editing.MaxDiff/len(changes))
		if diff == "" || c.Before == c.After {
			continue
		}
		b.WriteString("\n" + diff)
		if !whole && c.After != "" {
			hidden = append(hidden, i)
		}
	}
	return b.String(), hidden
}

// undone says in a line what one file is now, or would be.
func undone(e journal.Entry, c filestate.Change, tried bool) string {
	mode, would := "", ""
	for _, f := range e.Files {
		if f.Path == c.Path {
			mode = f.Mode
		}
	}
	if tried {
		would = "would be "
	}
	text := c.Path + ": " + would + "restored"
	switch {
	case c.Before == c.After && mode == "":
		text = c.Path + ": already has that content"
	case c.Before == c.After:
	case c.After == "":
		text = c.Path + ": " + would + "removed"
	case c.Before == "":
		text = c.Path + ": " + would + "created again"
	}
	if was, _, ok := strings.Cut(mode, ">"); ok {
		text += ", mode " + was
	}
	return text
}

// PreviewUndo is what an undo would do that was tried, for a person who is asked about it: see tool.Def's Details.
func PreviewUndo(e journal.Entry, changes []filestate.Change, room int) string {
	return editing.PreviewChanges(changes, func(i int) string { return undone(e, changes[i], true) }, room)
}

// Forget makes the session read again the files whose change the answer does not show completely, and says so: the
// restored content may never have been shown to this session.
func Forget(ctx context.Context, env tool.Env, changes []filestate.Change, hidden []int) (notes []string) {
	for _, i := range hidden {
		c := &changes[i]
		_ = env.Files.Forget(ctx, c.Path) // ignore the error: without its memory the ledger refuses changes
		c.After = c.After.AsPartial()
		notes = append(notes, "[not all that changed is shown; read again before editing: "+wording.ShownName(env,
			c.Path)+"]")
	}
	return notes
}

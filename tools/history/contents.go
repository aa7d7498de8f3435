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
	modes := make(map[string]string)
	for _, f := range e.Files {
		modes[f.Path] = f.Mode
	}
	var b strings.Builder
	would := ""
	if tried {
		would = "would be "
	}
	for i, c := range changes {
		switch {
		case c.Before == c.After && modes[c.Path] != "":
			fmt.Fprintf(&b, "\n%s: %srestored", c.Path, would)
		case c.Before == c.After:
			fmt.Fprintf(&b, "\n%s: already has that content", c.Path)
		case c.After == "":
			fmt.Fprintf(&b, "\n%s: %sremoved", c.Path, would)
		case c.Before == "":
			fmt.Fprintf(&b, "\n%s: %screated again", c.Path, would)
		default:
			fmt.Fprintf(&b, "\n%s: %srestored", c.Path, would)
		}
		if was, _, ok := strings.Cut(modes[c.Path], ">"); ok {
			b.WriteString(", mode " + was)
		}
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

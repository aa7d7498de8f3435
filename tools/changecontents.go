package tools

import (
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/textedit"
)

// contentDiff is what lies between two contents of a file; nil: there is none.
func contentDiff(before, after []byte, maxBytes int) string {
	for _, content := range [][]byte{before, after} {
		if _, err := textedit.Detect(content[:min(len(content), 64<<10)]); err != nil {
			return fmt.Sprintf("(not text: %s before, %s after)", results.Size(int64(len(before))), results.Size(int64(len(after))))
		}
	}
	return diffText(filestate.Change{Old: before, New: after}, maxBytes)
}

// keptContent is the whole of a content that may be in no file: nobody can compare it with anything. What is shown is
// for reading: only undo_change has its bytes.
func keptContent(id string, content []byte) string {
	back := "To write it to the file, byte for byte, use undo_change with change_id " + id + "."
	encoding, err := textedit.Detect(content)
	if err != nil {
		return fmt.Sprintf("(not text: %s)\n%s", results.Size(int64(len(content))), back)
	}
	what := encoding.String()
	shown, bad := encoding.Decode(content[encoding.Mark():])
	if bad > 0 {
		what += ", " + results.Count(bad) + " of its bytes are no characters"
	}
	if lf := strings.ReplaceAll(shown, "\r\n", "\n"); lf != shown {
		shown, what = lf, what+", CRLF"
	}
	shown, _ = results.Show(shown)
	return strings.TrimSuffix("This content ("+what+") was kept because no file had it. "+back+"\n"+shown, "\n")
}

// undoneFiles says of each file what it is now.
func undoneFiles(changes []filestate.Change) string {
	var b strings.Builder
	for _, c := range changes {
		switch {
		case c.Before == c.After:
			fmt.Fprintf(&b, "\n%s: it has that content already", c.Path)
		case c.After == "":
			fmt.Fprintf(&b, "\n%s: removed", c.Path)
		case c.Before == "":
			fmt.Fprintf(&b, "\n%s: made again", c.Path)
		default:
			fmt.Fprintf(&b, "\n%s: restored", c.Path)
		}
		if diff := contentDiff(c.Old, c.New, maxDiff/len(changes)); diff != "" && c.Before != c.After {
			b.WriteString("\n" + diff)
		}
	}
	return b.String()
}

package editing

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// maxNamed is how many lines of one file an answer names.
const maxNamed = 20

// tried says in one line what the edits would do to the file, and where.
func (f *FileEdits) tried(env tool.Env, c filestate.Change, maxBytes int) string {
	return f.line(env, c, "Would create ", "Would edit ") + f.loose(c, maxBytes)
}

// Said says in one line what the edits did to the file, and where. The difference follows only where the caller cannot
// know it: text that did not match exactly, or a file that was not what the session had read. Then what is shown counts
// as read, and notes say what is not.
func (f *FileEdits) Said(env tool.Env, c *filestate.Change, maxBytes int) (text string,
	notes []string) {
	if f.Removes {
		return f.removed(env, c, "Moved ", "Deleted ") + f.loose(f.afterEdits(*c), maxBytes), nil
	}
	text = f.line(env, *c, "Created ", "Edited ")
	if c.Since == nil {
		return text + f.loose(*c, maxBytes), nil
	}
	if c.Since.Old == nil {
		return text + f.difference(*c, maxBytes), nil
	}
	diff, whole := ContentDiff(c.Since.Old, c.New, maxBytes)
	if diff != "" {
		text += "\nAll that differs from what you read:\n" + diff
	}
	if !whole {
		return text, []string{unshown(env, *c)}
	}
	f.since = c.Since
	return text, nil
}

// Saw is the Saw of a result with what Said returned for files: only what goes out whole counts as read.
func Saw(env tool.Env, files ...*FileEdits) func(context.Context) {
	return func(ctx context.Context) {
		for _, f := range files {
			if f.since != nil {
				_ = env.Files.Accept(ctx, f.since) // that costs a read
			}
		}
	}
}

// loose is the difference of edits that did not match exactly; "": all did.
func (f *FileEdits) loose(c filestate.Change, maxBytes int) string {
	if f.level() == textedit.Exact {
		return ""
	}
	return f.difference(c, maxBytes)
}

// difference is what the edits made different, behind a line.
func (f *FileEdits) difference(c filestate.Change, maxBytes int) string {
	diff, _ := diffAt(c, f.Report.Places, maxBytes)
	if diff == "" {
		return ""
	}
	return "\n" + diff
}

// level is the loosest at which an edit matched.
func (f *FileEdits) level() (level textedit.Level) {
	for _, d := range f.Report.Edits {
		level = max(level, d.Level)
	}
	return level
}

// line is `Edited a.go:3,17 (+2 -2)`, or `Created a.go (12 lines)`.
func (f *FileEdits) line(env tool.Env, c filestate.Change, created, edited string) string {
	name := wording.ShownName(env, f.Path)
	switch {
	case c.Old == nil:
		return created + name + " (" + wording.Plural(LineCount(c.New), "line", "lines") + ")"
	case bytes.Equal(c.Old, c.New):
		return "No change: " + name + " already has this content."
	}
	places, replaced := f.places()
	if len(places) > 0 {
		name += ":" + list(places, ",")
	}
	how := ""
	if replaced > len(places) {
		if len(places) == maxNamed {
			name += ",…"
		}
		how = wording.Plural(replaced, "replacement", "replacements") + ", "
	}
	added, removed := c.LinesChanged()
	return fmt.Sprintf("%s%s (%s+%d -%d)%s", edited, name, how, added, removed, levelWords(f.level()))
}

// afterEdits is the change of a file that was removed, as if it had only been edited.
func (f *FileEdits) afterEdits(c filestate.Change) filestate.Change {
	c.New = f.made
	return c
}

// removed is `Deleted a.go (12 lines)`, or `Moved a.go:3 to b.go (+1 -1)`.
func (f *FileEdits) removed(env tool.Env, c *filestate.Change, moved, deleted string) string {
	name := wording.ShownName(env, f.Path)
	if f.moved == nil {
		return deleted + name + " (" + wording.Plural(LineCount(c.Old), "line", "lines") + ")"
	}
	text := moved + name
	if places, _ := f.places(); len(places) > 0 {
		text += ":" + list(places, ",")
	}
	text += " to " + wording.ShownName(env, f.moved.Path)
	if len(f.Edits) > 0 {
		added, gone := f.afterEdits(*c).LinesChanged()
		text += fmt.Sprintf(" (+%d -%d)", added, gone)
	}
	return text + levelWords(f.level())
}

// places returns the lines where the edits changed the new content, and how many replacements they made.
func (f *FileEdits) places() (places []int, replaced int) {
	for i, d := range f.Report.Edits {
		replaced += d.Replacements
		e := f.Edits[i]
		same := 0 // lines that old_string and new_string begin with
		for at := 0; at < min(len(e.Old), len(e.New)) && e.Old[at] == e.New[at]; at++ {
			if e.Old[at] == '\n' {
				same++
			}
		}
		for _, line := range d.Lines {
			places = append(places, line+same)
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	return places[:min(len(places), maxNamed)], replaced
}

// levelWords says how loosely an edit matched.
func levelWords(l textedit.Level) string {
	switch l {
	case textedit.Quotes:
		return " (matched via quote normalization)"
	case textedit.Escapes:
		return " (matched via escape decoding)"
	case textedit.Markers:
		return " (matched via marker expansion)"
	}
	return ""
}

// LineCount counts the lines of a content. No tool takes a NUL for text, but what has one still has lines.
func LineCount(content []byte) int {
	t, err := textedit.Decode(content)
	if err != nil {
		t, _ = textedit.Decode(bytes.ReplaceAll(content, []byte{0}, []byte(" ")))
	}
	return t.Lines
}

// list joins numbers.
func list(numbers []int, between string) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, between)
}

// unshown is a note that the answer does not show all that differs from what the session has read.
func unshown(env tool.Env, c filestate.Change) string {
	return "[not all that changed is shown; read again before editing: " + wording.ShownName(env, c.Path) + "]"
}

// diffAt returns the diff of a change, at most maxBytes long, with control characters escaped. places limits it to
// these places; nil: all. whole reports that nothing was left out or altered by escaping.
func diffAt(c filestate.Change, places []textedit.Place, maxBytes int) (diff string, whole bool) {
	if c.Splices != nil {
		return SplicesDiff(c.Splices, maxBytes)
	}
	diff, whole = textedit.DiffAt(c.Old, c.New, places, maxBytes)
	diff, exact := results.ShowDiff(diff)
	return strings.TrimSuffix(diff, "\n"), whole && exact
}

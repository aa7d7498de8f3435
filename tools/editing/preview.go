package editing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	// previewDiff is how many bytes of a diff are looked at for a preview, if it has no room for more.
	previewDiff = 64 << 10
	// previewLine is how many characters of a line of a diff a preview shows that has no room for all.
	previewLine = 300
)

// Asked is an Env that computes what a call would do, for the question to a person: it reports no progress and writes
// nothing.
func Asked(s *session.State) tool.Env {
	return tool.Env{State: s, Progress: func(float64, float64, string) {}}
}

// PreviewEdits is what edits would do, for a person who is asked about them, in the room that tool.Def's Details has;
// "": they would be refused, as with an err of opening the files.
func PreviewEdits(ctx context.Context, env tool.Env, files []*FileEdits, err error, room int) string {
	if err != nil {
		return ""
	}
	var edits []filestate.Edit
	for _, f := range files {
		if f.RefuseNotebook(ctx, env) != nil {
			return ""
		}
		edits = append(edits, f.Change(env))
	}
	changes, err := env.Files.Try(ctx, edits...) // no refusal is made: what it shows would count as read
	if err != nil {
		return ""
	}
	return PreviewChanges(changes, func(i int) string { return files[i].Path }, room)
}

// PreviewFiles is likewise what changes of several files would do.
func PreviewFiles(ctx context.Context, env tool.Env, edits []filestate.Edit, room int) string {
	changes, err := env.Files.Try(ctx, edits...)
	if err != nil {
		return ""
	}
	return PreviewChanges(changes, func(i int) string { return changes[i].Path }, room)
}

// PreviewWrite is likewise what a change of one whole file would do.
func PreviewWrite(ctx context.Context, env tool.Env, path string, edit filestate.Edit, room int) string {
	changes, err := env.Files.Try(ctx, edit)
	if err != nil {
		return ""
	}
	return PreviewChanges(changes, func(int) string { return path }, room)
}

// PreviewChanges lists several files with how many lines go and come, then shows the diff of each, as much as there is
// room for, and says how many lines of a change it leaves out. What is removed goes before what is added where there is
// no room for both, because it is what could be lost.
func PreviewChanges(changes []filestate.Change, name func(int) string, room int) string {
	var list, diffs strings.Builder
	heads := make([]string, len(changes))
	for i, c := range changes {
		plus, minus := c.LinesChanged()
		heads[i] = fmt.Sprintf("%s (+%d -%d)", name(i), plus, minus)
		if c.Old == nil && c.Splices == nil {
			heads[i] = fmt.Sprintf("%s (new file, %s)", name(i), wording.Plural(plus, "line", "lines"))
		}
		room -= width(heads[i])
		if len(changes) > 1 {
			list.WriteString(heads[i] + "\n")
			room -= width(heads[i])
		}
	}
	for i, c := range changes {
		each := max(0, room) / (len(changes) - i) // what one file leaves is for the next ones
		diff, whole := ChangeDiff(c, max(previewDiff, 4*each))
		if width(diff) > each {
			diff = squeeze(c, diff, whole, each)
		}
		room -= width(diff)
		diffs.WriteString(heads[i] + "\n")
		if diff != "" {
			diffs.WriteString(diff + "\n")
		}
	}
	return list.String() + strings.TrimSuffix(diffs.String(), "\n")
}

// width is how much room lines take, the end of the last one included: see tool.Def's Details.
func width(text string) int {
	return utf8.RuneCountInString(text) + 1 + tool.DetailsIndent*(strings.Count(text, "\n")+1)
}

// squeeze shows of a change what fits into n characters: without what stands around it, removed lines before added
// ones. Of a diff that is not whole the end of what changed may be missing.
func squeeze(c filestate.Change, diff string, whole bool, n int) string {
	var gone, come []string
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "-"):
			gone = append(gone, line)
		case strings.HasPrefix(line, "+"):
			come = append(come, line)
		}
	}
	plus, minus := c.LinesChanged()
	removed := excerpt(gone, minus, "removed", whole, n-width(leftOut(plus, "added"))) // that much is always said
	if len(removed) > 0 {
		n -= width(strings.Join(removed, "\n"))
	}
	return strings.Join(append(removed, excerpt(come, plus, "added", whole, n)...), "\n")
}

func leftOut(n int, what string) string {
	return fmt.Sprintf("[%s not shown]", wording.Plural(n, what+" line is", what+" lines are"))
}

// excerpt returns the first and the last of lines that fit into n characters, with how many of total are left out
// between them. whole says that the last of lines is the last of all.
func excerpt(lines []string, total int, what string, whole bool, n int) []string {
	total = max(total, len(lines))
	shown := make([]string, len(lines))
	all := 0
	for i, line := range lines {
		if r := []rune(line); len(r) > previewLine {
			line = fmt.Sprintf("%s... [%d more characters]", string(r[:previewLine]), len(r)-previewLine)
		}
		shown[i] = line
		all += width(line)
	}
	if all <= n && len(lines) == total {
		return shown
	}
	n -= width(leftOut(total, what))
	first, last := 0, len(shown)
	for room := n * 2 / 3; first < last && width(shown[first]) <= room; first++ {
		room -= width(shown[first])
		n -= width(shown[first])
	}
	for whole && first < last && width(shown[last-1]) <= n {
		last--
		n -= width(shown[last])
	}
	if !whole {
		last = len(shown)
	}
	left := total - first - (len(shown) - last)
	return slices.Concat(shown[:first], []string{leftOut(left, what)}, shown[last:])
}

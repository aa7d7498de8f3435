package editing

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	// maxPreview is how many characters a preview has: what a question about a call has room for.
	maxPreview = 3_000
	// previewDiff is how many bytes of a diff are looked at for it.
	previewDiff = 64 << 10
)

// Asked is an Env that computes what a call would do, for the question to a person: it reports no progress and writes
// nothing.
func Asked(s *session.State) tool.Env {
	return tool.Env{State: s, Progress: func(float64, float64, string) {}}
}

// PreviewEdits is what edits would do, for a person who is asked about them; "": they would be refused, as with an err
// of opening the files.
func PreviewEdits(ctx context.Context, env tool.Env, files []*FileEdits, err error) string {
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
	return preview(changes, func(i int) string { return files[i].Path })
}

// PreviewFiles is likewise what changes of several files would do.
func PreviewFiles(ctx context.Context, env tool.Env, edits []filestate.Edit) string {
	changes, err := env.Files.Try(ctx, edits...)
	if err != nil || len(changes) == 0 {
		return ""
	}
	return preview(changes, func(i int) string { return changes[i].Path })
}

// PreviewWrite is likewise what a change of one whole file would do.
func PreviewWrite(ctx context.Context, env tool.Env, path string, edit filestate.Edit) string {
	changes, err := env.Files.Try(ctx, edit)
	if err != nil {
		return ""
	}
	return preview(changes, func(int) string { return path })
}

// preview lists several files with how many lines go and come, then shows the diff of each, as much as there is room
// for. What is removed goes before what is added where there is no room for both, because it is what could be lost.
func preview(changes []filestate.Change, name func(int) string) string {
	var list, diffs strings.Builder
	room := maxPreview / len(changes)
	for i, c := range changes {
		diff, _ := ChangeDiff(c, previewDiff)
		plus, minus := c.LinesChanged()
		line := fmt.Sprintf("%s (+%d -%d)", name(i), plus, minus)
		if c.Old == nil {
			line = fmt.Sprintf("%s (new file, %s)", name(i), wording.Plural(plus, "line", "lines"))
		}
		if len(changes) > 1 {
			list.WriteString(line + "\n")
		}
		diffs.WriteString(line + "\n" + squeeze(diff, room-utf8.RuneCountInString(line)) + "\n")
	}
	return list.String() + strings.TrimSuffix(diffs.String(), "\n")
}

// squeeze makes a diff fit into n characters: without what stands around a change, removed lines before added ones.
func squeeze(diff string, n int) string {
	if utf8.RuneCountInString(diff) <= n {
		return diff
	}
	var gone, come strings.Builder
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '-':
			gone.WriteString(line)
		case '+':
			come.WriteString(line)
		}
	}
	removed := results.CutMiddle(gone.String(), n)
	return strings.TrimSuffix(removed+results.CutMiddle(come.String(), n-utf8.RuneCountInString(removed)), "\n")
}

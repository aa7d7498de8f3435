package wording

import (
	"encoding/json"
	"strings"

	"codehand/tools/results"
	"codehand/tools/tool"
)

// Clip returns at most max characters of s.
func Clip(s string, max int) string {
	if runes := []rune(s); len(runes) > max {
		return string(runes[:max]) + "…"
	}
	return s
}

// LineOf shows a text as one line of at most max characters: with a line feed in it, one item would look like two.
func LineOf(text string, max int) string { return Clip(OneLine(text), max) }

// OneLine shows a text as one line.
func OneLine(text string) string {
	shown, _ := results.Show(text)
	return strings.ReplaceAll(shown, "\n", `\x0a`)
}

// ShownName is how an answer names a file in a list: relative to the current directory when inside, and on one line,
// for with a line feed in it one name would look like two.
func ShownName(env tool.Env, path string) string {
	name, _ := results.Show(env.Space.Rel(path))
	return strings.ReplaceAll(name, "\n", `\x0a`)
}

// NewFiles names a new directory by its shown name, and how many files came with it.
func NewFiles(name string, files int) string {
	return name + "/ " + Plural(files, "new file", "new files")
}

// Plural writes 1 edit, 2 edits.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return results.Count(n) + " " + many
}

// Data encodes a tool's own fields for programs; a struct of plain types cannot fail.
func Data(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// Form is what a result of this call may have, less runes characters and lines lines for what stands around it.
func Form(env tool.Env, runes, lines int) results.Form {
	less := func(limit, frame int) int {
		if limit <= 0 {
			return 0
		}
		return max(limit-frame, limit/2, 1)
	}
	return results.Form{Runes: less(env.Limit, runes), Bytes: less(env.Client.MaxBytes, runes),
		Lines: less(env.Client.MaxLines, lines), JSON: less(env.Client.MaxJSON, runes)}
}

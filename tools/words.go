package tools

import (
	"codehand/tools/results"
	"encoding/json"
	"strings"

	"codehand/tools/tool"
)

// clip returns at most max characters of s.
func clip(s string, max int) string {
	if runes := []rune(s); len(runes) > max {
		return string(runes[:max]) + "…"
	}
	return s
}

// lineOf shows a text as one line of at most max characters: with a line feed in it, one item would look like two.
func lineOf(text string, max int) string { return clip(oneLine(text), max) }

// oneLine shows a text as one line.
func oneLine(text string) string {
	shown, _ := results.Show(text)
	return strings.ReplaceAll(shown, "\n", `\x0a`)
}

// shownName is how an answer names a file in a list: relative to the current directory when inside, and on one line, for
// with a line feed in it one name would look like two.
func shownName(env tool.Env, path string) string {
	name, _ := results.Show(env.Space.Rel(path))
	return strings.ReplaceAll(name, "\n", `\x0a`)
}

// plural writes 1 edit, 2 edits.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return results.Count(n) + " " + many
}

// data encodes a tool's own fields for programs; a struct of plain types cannot fail.
func data(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// form is what a result of this call may have, less runes characters and lines lines for what stands around it.
func form(env tool.Env, runes, lines int) results.Form {
	less := func(limit, frame int) int {
		if limit <= 0 {
			return 0
		}
		return max(limit-frame, limit/2, 1)
	}
	return results.Form{Runes: less(env.Limit, runes), Bytes: less(env.Client.MaxBytes, runes), Lines: less(env.Client.MaxLines, lines)}
}

package editing

import (
	"errors"
	"fmt"
	"slices"

	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// matchRefusal puts into words why an edit of a file was not applied. head comes before, more after the first line.
func matchRefusal(env tool.Env, path, head, old, more string, err error) error {
	missing, isMissing := errors.AsType[*textedit.NotFoundError](err)
	many, isMany := errors.AsType[*textedit.AmbiguousError](err)
	count, isCount := errors.AsType[*textedit.CountError](err)
	mix, isMix := errors.AsType[*textedit.MixError](err)
	switch {
	case isMissing:
		text := head + "String to replace not found in file." + more + "\nString: " + wording.Clip(old, 500)
		if missing.Hint != "" {
			text += "\n" + missing.Hint
		}
		return tool.Numbered(tool.StringNotFound, 8, "%s", text)
	case isMany:
		return tool.Numbered(tool.MultipleMatches, 9, "%s", head+manyMatches(wording.ShownName(env, path), many, old))
	case isCount:
		return tool.Numbered(tool.CountMismatch, 13, "%sExpected %d replacements but found %d.", head, count.Want,
			count.Got)
	case isMix && mix.Untold && mix.Char == 0:
		return tool.Numbered(tool.EncodingMix, 12,
			"%s%s looks like %s, but without the text that this edit removes it would be read as another encoding. "+
				"Remove less, or write the whole file with write_file, which makes it UTF-8.",
			head, path, mix.Encoding)
	case isMix && mix.Untold:
		return tool.Numbered(tool.EncodingMix, 12,
			"%s%s looks like %s; with %q (U+%04X) it would be read as another encoding. Use other characters, or "+
				"write the whole file with write_file, which makes it UTF-8.",
			head, path, mix.Encoding, mix.Char, mix.Char)
	case isMix && mix.Char != 0:
		return tool.Numbered(tool.EncodingMix, 12,
			"%s%s is %s, which has no %q (U+%04X). Use characters of that encoding, or write the whole file with "+
				"write_file, which makes it UTF-8.",
			head, path, mix.Encoding, mix.Char, mix.Char)
	case isMix:
		return tool.Numbered(tool.EncodingMix, 12,
			"%sBytes next to the match are not %s and would merge with new_string. Include more surrounding text in "+
				"old_string.", head, mix.Encoding)
	case errors.Is(err, textedit.ErrMix):
		return tool.Numbered(tool.EncodingMix, 12,
			"%sThe encoding of %s is unknown: it has bytes that are not UTF-8. "+
				"new_string may contain only ASCII and characters of old_string.", head, path)
	case errors.Is(err, textedit.ErrCascade):
		return tool.Numbered(tool.Cascade, 14,
			"%sCannot edit file: old_string is a substring of a new_string from a previous edit.%s", head, more)
	case errors.Is(err, textedit.ErrNotEmpty):
		return existsRefusal(false, head)
	case errors.Is(err, textedit.ErrTooLarge):
		return tool.Numbered(tool.TooLarge, 10,
			"%sThe result would be larger than 1 GiB. Make the change in smaller files.", head)
	}
	return wording.PathRefusal(env, path, err)
}

// existsRefusal answers an edit, or a patch, that makes a file where one is.
func existsRefusal(patch bool, head string) error {
	if patch {
		return tool.Numbered(tool.FileExists, 3,
			"%sThe file already exists. Change it with *** Update File, or replace it with write_file.", head)
	}
	return tool.Numbered(tool.FileExists, 3,
		"%sCannot create new file - file already exists. Give the text to replace as old_string, or use write_file.",
		head)
}

func manyMatches(path string, e *textedit.AmbiguousError, old string) string {
	lines, word := slices.Compact(slices.Clone(e.Lines)), "lines"
	if len(lines) == 1 {
		word = "line"
	}
	text := fmt.Sprintf("old_string occurs %s times in %s: %s %s", results.Count(e.Count), path, word,
		list(lines, ", "))
	if e.Count > len(e.Lines) {
		text += " …"
	}
	if e.Overlapping {
		text += " (overlapping)"
	}
	text += ". Add lines around the one you mean, or set replace_all to change all."
	if e.Level != textedit.Exact {
		text += "\nold_string: " + wording.Clip(old, 200) + "\nThe file spells it: " + e.Spelling
	}
	return text
}

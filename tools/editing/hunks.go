package editing

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// hunkRefusal says why a hunk of a patch does not fit.
func (f *FileEdits) hunkRefusal(env tool.Env, hunk textedit.Edit, failed *textedit.EditError) error {
	head := f.head(failed.Index)
	missing, isMissing := errors.AsType[*textedit.NotFoundError](failed)
	many, isMany := errors.AsType[*textedit.AmbiguousError](failed)
	switch {
	case isMissing && missing.Under != "":
		text := fmt.Sprintf("%sno line is like %s. Use a line of the file behind @@.", head,
			wording.Clip(missing.Under, 200))
		return tool.Numbered(tool.StringNotFound, 8, "%s", withHint(text, missing.Hint))
	case isMissing && missing.Line > 0 && missing.Before:
		return tool.Numbered(tool.StringNotFound, 8,
			"%sits lines are at line %d, before the hunk or the @@ line that precedes them. Put hunks in the order of "+
				"the file, and a line that stands before them behind @@.", head, missing.Line)
	case isMissing && missing.Line > 0:
		return tool.Numbered(tool.StringNotFound, 8,
			"%sits lines are at line %d, not at the end of the file. Leave *** End of File out.", head, missing.Line)
	case isMissing && missing.ChangedBy > 0:
		return tool.Numbered(tool.StringNotFound, 8,
			"%shunk %d has changed its lines (%d-%d). Make one hunk of the two.", head,
			f.Which[missing.ChangedBy-1], missing.From, missing.To)
	case isMissing:
		text := head + "its lines (context and removed ones) are not in the file.\nLines: " +
			wording.Clip(hunk.Old, 500)
		return tool.Numbered(tool.StringNotFound, 8, "%s", withHint(text, missing.Hint))
	case isMany && many.Under != "":
		return tool.Numbered(tool.MultipleMatches, 9,
			"%sit fits at several places, and so does its line %s: lines %s. Give more lines of context, or a line "+
				"behind @@ that is there only once.", head, wording.Clip(many.Under, 200), someLines(many))
	case isMany:
		return tool.Numbered(tool.MultipleMatches, 9,
			"%sit fits at several places: lines %s. Give more lines of context, or a line that stands before the one "+
				"you mean behind @@.", head, someLines(many))
	}
	return matchRefusal(env, f.Path, head, hunk.Old, "", failed)
}

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + "\n" + hint
}

// someLines are the lines of several matches.
func someLines(e *textedit.AmbiguousError) string {
	text := list(slices.Compact(slices.Clone(e.Lines)), ", ")
	if e.Count > len(e.Lines) {
		text += " …"
	}
	return text
}

// RefuseLink refuses to remove or to move what is a symbolic link: what it leads to would go, and the link would stay.
func (f *FileEdits) RefuseLink(env tool.Env) error {
	abs := env.Space.Abs(f.Path)
	dir, _ := env.Space.Resolve(filepath.Dir(abs))
	if filepath.Join(dir, filepath.Base(abs)) == f.File.Path {
		return nil
	}
	return tool.Refuse(tool.NotRegular,
		"%s is a symbolic link to %s. A patch does not remove or move links: use run_shell (rm, mv).", f.Path,
		f.File.Path)
}

package editing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// A Guard words, for one tool, why the ledger did not change a file: it was not read, or has changed since. The check
// itself is in filestate/seen.
type Guard struct {
	Name            string // of the tool
	Unread, Changed int    // Refusal.Number for a file that was not read, and for one that has changed
	creates         bool   // the edit creates a file, so a file with content is in the way
	patch           bool   // the edits are those of a patch
	head            string // put before the text about one of several edits
}

// Refusal answers an error of Files.Update about path.
func (g Guard) Refusal(ctx context.Context, env tool.Env, path string, err error) error {
	stale, isStale := errors.AsType[*filestate.StaleError](err)
	part, isPart := errors.AsType[*filestate.PartReadError](err)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	torn, isTorn := errors.AsType[*filestate.RollbackError](err)
	broken, isBroken := errors.AsType[*brokenError](err)
	switch {
	case isTorn:
		return tornRefusal(torn)
	case isBroken:
		return settingsRefusal(path, broken)
	case isFailed:
		return wording.ChangeRefusal(path, failed, err)
	case errors.Is(err, fs.ErrNotExist):
		return goneRefusal(ctx, env, path)
	case isStale:
		return g.stale(ctx, env, path, stale)
	case isPart && part.Version != "":
		return tool.Numbered(tool.FilePartlyRead, g.Unread,
			"Version %s covers only %s of %s, but the edit changes other lines. Read those lines and give their "+
				"version.", part.Version, seenLines(part), path)
	case isPart && viewing.IsNotebook(path): // its lines are not what read_file counts
		return tool.Numbered(tool.FilePartlyRead, g.Unread,
			"Only some cells of %s were read whole. Read all of them (as_text=true shows truncated cells as lines) "+
				"or use notebook_edit.", path)
	case isPart && len(part.Seen) == 0: // of a change, what it wrote counts, and no more of the line
		return tool.Numbered(tool.FilePartlyRead, g.Unread,
			"Only parts of some lines of %s count as read (after a change: the text that it wrote). %s", path,
			unreadRest(part))
	case isPart:
		return tool.Numbered(tool.FilePartlyRead, g.Unread, "Only %s of %s were read. %s", seenLines(part), path,
			unreadRest(part))
	case errors.Is(err, filestate.ErrNotRead):
		return g.unreadRefusal(ctx, env, path)
	case errors.Is(err, filestate.ErrVersion):
		return tool.Invalid(g.Name,
			`"version" must be copied from read_file or from a change: `+
				`12 hexadecimal digits, 12 digits and p, or r with 12 digits and a range`)
	case errors.Is(err, disk.ErrTooLarge):
		return tool.Numbered(tool.TooLarge, 10,
			"File is too large to edit (%s). Maximum editable file size is 1 GiB. Use run_shell.", SizeOf(env, path))
	}
	return wording.PathRefusal(env, path, err)
}

// goneRefusal answers an edit of a file that is not there.
func goneRefusal(ctx context.Context, env tool.Env, path string) error {
	text := fmt.Sprintf("File does not exist: %s. %s", path, wording.Whereabouts(env, path))
	if WasDeleted(ctx, env, path) {
		text += " It was deleted after you read it."
	}
	return tool.Numbered(tool.FileNotFound, 4, "%s", text)
}

// WasDeleted reports whether the session has seen a file that is not there any more.
func WasDeleted(ctx context.Context, env tool.Env, path string) bool {
	real, _ := env.Space.Resolve(path)
	stale, err := env.Files.Changed(ctx, real)
	return err == nil && len(stale) > 0 && stale[0].Now == ""
}

// stale shows what changed, and lets the session count it as read if all of it is shown: then the same call succeeds.
func (g Guard) stale(ctx context.Context, env tool.Env, path string, e *filestate.StaleError) error {
	if viewing.IsNotebook(path) {
		if _, err := viewing.ReadNotebook(path, e.New); err != nil {
			return err
		}
	}
	if _, err := textedit.Decode(e.New); err != nil {
		return wording.PathRefusal(env, path, err) // not even the difference could be shown
	}
	if g.inTheWay(e.New) {
		return existsRefusal(g.patch, g.head)
	}
	r := numbered(tool.FileChanged, g.Changed, e)
	r.Text = path + " has been modified since read, either by the user or by a linter. "
	if e.Named { // maybe by this session itself
		r.Text = path + " does not have version " + string(e.Was) + " now. "
	}
	shown, whole, exact := "", false, true
	switch {
	case e.New == nil:
		r.Text += "The path names another file now. Read it again before attempting to write it."
		return r
	case e.Old != nil:
		shown, whole = textedit.Diff(e.Old, e.New, MaxDiff)
		shown, exact = results.ShowDiff(shown)
	case len(e.New) <= MaxDiff:
		shown, whole = results.Numbered(textedit.Shown(e.New)), true
	}
	if !whole || !exact || env.Files.Accept(ctx, e) != nil {
		r.Text += unshownChange(e, exact) + " Read it again before attempting to write it."
		return r
	}
	r.Brief = r.Text + "The change is too long to show here. Read it again before attempting to write it."
	r.Text += "The change is below and counts as read. Repeat the call" + againstIt(e) + ".\n" + shown
	if env.Client.Modern || env.Prefs.ReadVersion { // the repeated call must name the new version
		r.Text += "\n[version " + string(e.Now) + "]"
	}
	r.Shows = []string{e.Path}
	r.Meta.Version = string(e.Now)
	return r
}

// againstIt says what a call must have to succeed when it is repeated.
func againstIt(e *filestate.StaleError) string {
	if e.Named {
		return " with version " + string(e.Now)
	}
	return ", adjusted to it if needed"
}

// unshownChange says why a change is not shown.
func unshownChange(e *filestate.StaleError, exact bool) string {
	switch {
	case !exact:
		return "The change cannot be shown exactly: it is between special characters and the escapes that stand for " +
			"them."
	case e.Old == nil:
		return "The change cannot be shown: the old content was not kept."
	case textedit.Hides(e.Old, e.New):
		return "The change cannot be shown exactly: it is in bytes that are not UTF-8."
	}
	return "The change is too large to show."
}

// tornRefusal says what every file of a change that could not be taken back holds now.
func tornRefusal(e *filestate.RollbackError) error {
	text := "The change stopped half way and could not be taken back. Read these files before you go on."
	for _, f := range e.Files {
		if f.Changed {
			text += fmt.Sprintf("\n%s: has the new content, or another program changed it since (%v)", f.Path, f.Err)
		} else {
			text += "\n" + f.Path + ": as before"
		}
	}
	if e.ID != "" {
		text += "\nTo restore the old contents, unless another program changed these files: undo_change with " +
			"change_id " + e.ID + "."
	}
	r := numbered(tool.RollbackFailed, 15, e)
	r.Text = text
	return r
}

// numbered is a refusal with a number, a cause for the log, and no text yet.
func numbered(code tool.Code, number int, cause error) *tool.Refusal {
	r, _ := errors.AsType[*tool.Refusal](tool.Numbered(code, number, ""))
	r.Cause = cause
	return r
}

// SizeOf is the size of a file, for the answer that it is too large.
func SizeOf(env tool.Env, path string) string {
	f, err := env.Open(path, workspace.Read)
	if err != nil {
		return path
	}
	defer f.Close()
	info, err := f.Dir.Stat(f.Name)
	if err != nil {
		return path
	}
	return results.Size(info.Size())
}

package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// pathRefusal puts into words what workspace, filestate and textedit say about path. nil, a refusal, a cancel and an
// error of ours come back as they are.
func pathRefusal(env tool.Env, path string, err error) error {
	outside, isOutside := errors.AsType[*workspace.OutsideError](err)
	invalid, isInvalid := errors.AsType[*workspace.InvalidError](err)
	special, isSpecial := errors.AsType[*filestate.NotRegularError](err)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	switch _, refused := errors.AsType[*tool.Refusal](err); {
	case refused:
		return err
	case isOutside:
		return outsideRefusal(path, outside)
	case isInvalid:
		return tool.Refuse(tool.InputInvalid, "%q cannot be used as a path: %s.", clip(path, 200), invalid.Reason)
	case errors.Is(err, workspace.ErrSpelling):
		return tool.Refuse(tool.PathRefused, "%s is a network or device path and is never opened.", path)
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Refuse(tool.NotDirectory, "A part of %s is a file where a directory is needed. %s", path, whereabouts(env, path))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return tool.Refuse(tool.InputInvalid, "%s cannot be used as a path: a name in it is too long.", clip(path, 200))
	case errors.Is(err, workspace.ErrTooManyLinks):
		return tool.Refuse(tool.FileNotFound, "File does not exist: %s. Its links lead in a circle. Use list_files.", path)
	case errors.Is(err, fs.ErrNotExist):
		return tool.Refuse(tool.FileNotFound, "File does not exist: %s. %s", path, whereabouts(env, path))
	case errors.Is(err, filestate.ErrDirectory):
		return tool.Refuse(tool.IsDirectory, "%s is a directory. Use list_files.", path)
	case isSpecial:
		return tool.Refuse(tool.NotRegular, "%s is a %s. Only regular files can be used.", path, special.Kind)
	case errors.Is(err, workspace.ErrSystem):
		return tool.Refuse(tool.NotRegular, "%s is in a file system of the kernel. Only regular files can be used.", path)
	case errors.Is(err, filestate.ErrMoved), errors.Is(err, filestate.ErrLocked), errors.Is(err, workspace.ErrChanging):
		return tool.Refuse(tool.Busy, "%s is being changed by another session. Nothing was done. Try again.", path)
	case errors.Is(err, filestate.ErrMemory) && !errors.Is(err, context.Canceled): // of a call that has ended
		return stateRefusal()
	case errors.Is(err, textedit.ErrBinary):
		return tool.Refuse(tool.BinaryFile, "This tool cannot read binary files: %s. Use run_shell with file, xxd or strings.", path)
	case errors.Is(err, textedit.ErrEncoding):
		return tool.Refuse(tool.EncodingUnsupported, "%s is UTF-32 or damaged UTF-16 and cannot be used as text. Use run_shell with iconv, or write_file.", path)
	case errors.Is(err, fs.ErrPermission):
		return tool.Refuse(tool.PermissionDenied, "Permission denied: the operating system does not let the server use %s. Ask the user.", path)
	case isFailed: // after what has a better answer
		return &tool.Refusal{Code: tool.WriteFailed, Text: fmt.Sprintf("Writing %s failed: %v. The file is unchanged.", path, failed.Err), Cause: err}
	}
	return err
}

// outsideRefusal names the link that leads out, or a path below a root would seem to be refused for nothing.
func outsideRefusal(path string, e *workspace.OutsideError) error {
	const remedy = "The operator can add a ROOT argument."
	switch roots := strings.Join(e.Roots, ", "); {
	case roots == "":
		return tool.Refuse(tool.OutsideRoots, "%s cannot be used: this server was started without a directory. %s", path, remedy)
	case e.Link != "":
		return tool.Refuse(tool.OutsideRoots, "%s is outside the allowed directories: %s. The link %s -> %s leads out. %s", path, roots, e.Link, e.Target, remedy)
	default:
		return tool.Refuse(tool.OutsideRoots, "%s is outside the allowed directories: %s. %s", path, roots, remedy)
	}
}

// clash refuses files that cannot be changed together: one lies below the other, or both are names of one file,
// of which the first to be replaced breaks the link.
func clash(files []*fileEdits) error {
	infos := make([]os.FileInfo, len(files))
	for i, f := range files {
		infos[i], _ = f.file.Dir.Lstat(f.file.Name) // what is missing has no other name
		for j, g := range files {
			if rel, err := filepath.Rel(f.file.Path, g.file.Path); infos[i] == nil && i != j && err == nil && filepath.IsLocal(rel) {
				return tool.Refuse(tool.NotDirectory, "A part of %s is a file where a directory is needed: %s, which another edit makes.", g.path, f.path)
			}
			if j < i && infos[i] != nil && infos[j] != nil && os.SameFile(infos[i], infos[j]) {
				return tool.Invalid("multi_edit", fmt.Sprintf("%s and %s are two names of one file (hard links); give all its edits one name", g.path, f.path))
			}
		}
	}
	return nil
}

// whereabouts helps whoever asked for a file that is not there.
func whereabouts(env tool.Env, path string) string {
	text := "Current directory: " + env.Space.Cwd() + "."
	near := env.Space.Near(path, func(p string) bool { return !env.Rules.Hidden(p) })
	if len(near) > 0 {
		text += " Did you mean " + strings.Join(near, " or ") + "?"
	}
	return text
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

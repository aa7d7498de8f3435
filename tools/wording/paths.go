package wording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/lock"
	"codehand/tools/search"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// PathRefusal puts into words what workspace, filestate and textedit say about path. nil, a refusal, a cancel and an
// error of ours come back as they are.
func PathRefusal(env tool.Env, path string, err error) error {
	outside, isOutside := errors.AsType[*workspace.OutsideError](err)
	invalid, isInvalid := errors.AsType[*workspace.InvalidError](err)
	special, isSpecial := errors.AsType[*disk.NotRegularError](err)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	switch _, refused := errors.AsType[*tool.Refusal](err); {
	case refused:
		return err
	case isOutside:
		return outsideRefusal(path, outside)
	case isInvalid:
		return tool.Refuse(tool.InputInvalid, "%q cannot be used as a path: %s.", Clip(path, 200), invalid.Reason)
	case errors.Is(err, workspace.ErrSpelling):
		return tool.Refuse(tool.PathRefused, "%s is a network or device path and is never opened.", path)
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Refuse(tool.NotDirectory, "A part of %s is a file where a directory is needed. %s", path,
			Whereabouts(env, path))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return tool.Refuse(tool.InputInvalid, "%s cannot be used as a path: a name in it is too long.", Clip(path, 200))
	case errors.Is(err, workspace.ErrTooManyLinks):
		return tool.Refuse(tool.FileNotFound,
			"File does not exist: %s. Its links form a circle, or there are more than 40. Use list_files.", path)
	case errors.Is(err, fs.ErrNotExist):
		return tool.Refuse(tool.FileNotFound, "File does not exist: %s. %s", path, Whereabouts(env, path))
	case errors.Is(err, disk.ErrDirectory):
		return tool.Refuse(tool.IsDirectory, "%s is a directory. Use list_files.", path)
	case isSpecial:
		return tool.Refuse(tool.NotRegular, "%s is a %s. Only regular files can be used.", path, special.Kind)
	case errors.Is(err, workspace.ErrSystem):
		return tool.Refuse(tool.NotRegular,
			"%s is in a kernel file system, such as /proc. Only regular files can be used.", path)
	case errors.Is(err, disk.ErrMoved), errors.Is(err, lock.ErrLocked), errors.Is(err, workspace.ErrChanging),
		workspace.Swapped(err),
		// it was another thing just before
		errors.Is(err, search.ErrGone), errors.Is(err, search.ErrNotDirectory), errors.Is(err, search.ErrNotRegular):
		return tool.Refuse(tool.Busy, "%s is being changed by another session. Nothing was done. Try again.", path)
	case errors.Is(err, filestate.ErrMemory) && !errors.Is(err, context.Canceled): // of a call that has ended
		return StateRefusal()
	case errors.Is(err, textedit.ErrBinary):
		return tool.Refuse(tool.BinaryFile,
			"This tool cannot read binary files: %s. Use run_shell with file, xxd or strings.", path)
	case errors.Is(err, textedit.ErrEncoding):
		return tool.Refuse(tool.EncodingUnsupported,
			"%s is UTF-32 or damaged UTF-16 and cannot be used as text. Use run_shell with iconv, or write_file.", path)
	case errors.Is(err, fs.ErrPermission):
		return rightsRefusal(path, "", err)
	case isFailed: // after what has a better answer
		return ChangeRefusal(path, failed, err)
	}
	return readRefusal(path, err)
}

// outsideRefusal names the link that leads out, or a path below a root would seem to be refused for nothing.
func outsideRefusal(path string, e *workspace.OutsideError) error {
	remedy, target := "Ask the user to add the directory to the server's roots (for stdio: after \"stdio\" in the "+
		"client's configuration).", path
	if e.Link != "" {
		target = e.Target
	}
	// another root of the server changes nothing
	if slices.ContainsFunc(e.Whole, func(root string) bool { return Below(root, target) }) {
		remedy = "The client did not name it as a root. Ask the user to open its directory in the client."
	}
	if e.Link == "" && (Below("/tmp", path) || Below("/var/tmp", path)) {
		remedy = "If a command made it, use run_shell: commands may have a directory of their own there. " + remedy
	}
	switch roots := strings.Join(e.Roots, ", "); {
	case len(e.Wanted) > 0:
		return tool.Refuse(tool.OutsideRoots,
			"%s cannot be used: the roots of this client (%s) and the allowed directories (%s) do not overlap. Ask "+
				"the user to open an allowed directory in the client, or to add the client's directory to the "+
				"server's roots.",
			Clip(path, 100), fewNames(e.Wanted), fewNames(e.Whole))
	case roots == "":
		return tool.Refuse(tool.OutsideRoots, "%s cannot be used: this server was started without a directory. %s",
			path, remedy)
	case e.Link != "":
		return tool.Refuse(tool.OutsideRoots,
			"%s is outside the allowed directories: %s. The link %s -> %s leads out. %s", path, roots, e.Link, e.Target,
			remedy)
	default:
		return tool.Refuse(tool.OutsideRoots, "%s is outside the allowed directories: %s. %s", path, roots, remedy)
	}
}

// fewNames lists paths that may be many and long, in about 100 characters.
func fewNames(paths []string) string {
	text := Clip(OneLine(paths[0]), 80)
	if more := len(paths) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Whereabouts helps a caller that asked for a missing file.
func Whereabouts(env tool.Env, path string) string {
	for _, root := range env.Space.Roots() {
		if _, err := os.Lstat(root); errors.Is(err, fs.ErrNotExist) && Below(root, path) {
			return "The allowed directory " + root + " no longer exists. Ask the user."
		}
	}
	text := "Current directory: " + env.Space.Cwd() + "."
	near := env.Space.Near(path, func(p string) bool { return !env.Rules.Hidden(p) })
	if len(near) > 0 {
		text += " Did you mean " + strings.Join(near, " or ") + "?"
	}
	return text
}

// Below says by their text whether path is dir, or lies below it.
func Below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// RegexRefusal refuses an expression that cannot be searched for: what is wrong with it, where, and what to do.
func RegexRefusal(e *search.PatternError) error {
	next := map[string]string{
		"syntax":         ` Write a backslash before a character that is meant as itself, such as \( or \{.`,
		"look-around":    " Leave it out and narrow what is found with a second pattern, or run `rg -P` in a shell.",
		"back-reference": " Write out what it can repeat, as in `(?:aa|bb)`, or run `rg -P` in a shell.",
		"count":          " Write a smaller count, or * or + where the number does not matter.",
	}[e.Kind]
	return tool.Refuse(tool.RegexInvalid, "Invalid regex: %s (%s, position %d).%s", e.Text, e.Kind, e.Offset+1, next)
}

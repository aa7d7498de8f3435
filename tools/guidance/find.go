package guidance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/session"
	"codehand/tools/skills"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Names of files and directories in a root that instruct, with slashes, in the order in which they are shown.
const (
	Agents  = "AGENTS.md"
	Claude  = "CLAUDE.md"
	Gemini  = "GEMINI.md"
	Cursor  = ".cursor/rules" // a directory of files whose names end in .mdc
	Copilot = ".github/copilot-instructions.md"
)

var (
	inRoot = []string{Agents, Claude, Gemini, Cursor, Copilot}
	below  = []string{Agents, Claude, Gemini} // in a directory below a root
)

const (
	ruleSuffix = ".mdc"
	maxRules   = 50    // files of one directory of rules that are shown
	maxEntries = 2_000 // entries of it that are looked at
	maxRoots   = 10
)

// Names returns what instructs in the roots of a session, by name: relative to the current directory where it is below
// that. What lies outside the roots, also through a link, what rules deny or ask about, and what is no regular file is
// not named, nor is what own has (the names that the client reads itself). A directory of rules is one name.
func Names(s *session.State, own []string) []string {
	var names []string
	each(s, func(name, path string, files skills.Files) {
		if !slices.Contains(own, name) && len(open(files, name, path)) > 0 {
			names = append(names, wording.ShownName(tool.Env{State: s}, path))
		}
	})
	return names
}

// each calls found for each name that exists in a root, whatever it is. It asks the system once for each.
func each(s *session.State, found func(name, path string, files skills.Files)) {
	if s.Space == nil {
		return
	}
	files, roots := s.Visible(), s.Space.Roots()
	for _, root := range roots[:min(len(roots), maxRoots)] {
		for _, name := range inRoot {
			if path := filepath.Join(root, filepath.FromSlash(name)); there(path) {
				found(name, path, files)
			}
		}
	}
}

// open says which files are behind a name in a root: one, or those of a directory of rules.
func open(files skills.Files, name, path string) []string {
	if name != Cursor {
		if !readable(files, path) {
			return nil
		}
		return []string{path}
	}
	entries, err := files.ReadDir(path, maxEntries)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		if strings.HasSuffix(e.Name(), ruleSuffix) && e.Mode().IsRegular() && readable(files, file) {
			all = append(all, file)
		}
	}
	return all
}

func readable(files skills.Files, path string) bool {
	f, err := files.Open(path)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// gone reports that a file is not there, or not for this session.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// there reports that something has this path. It opens nothing and follows no last link: whether a session may see what
// is there is asked after that, by handles, so that a directory without instructions costs next to nothing.
func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

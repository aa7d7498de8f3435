package resources

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/tools/skills"
	"codehand/tools/workspace"
)

// A skillReach reaches the files of one skill: what the session may see, lies in the skill's own directory, and can be
// named in a URI. A link out of it would publish whatever it leads to as a part of the skill. Its main file is exempt:
// as a link, too, it is what makes the directory a skill.
type skillReach struct {
	skills.Files
	space *workspace.Space
	top   string // the directory, with links resolved
	main  string
}

// reach is that of a skill of the caller's session.
func (v View) reach(k skills.Skill) skillReach {
	reach := skillReach{Files: v.State.Visible(), space: v.State.Space, main: k.File}
	reach.top, _ = reach.real(k.Dir)
	return reach
}

// ReadDir leaves out what does not belong to the skill.
func (s skillReach) ReadDir(path string, limit int) ([]fs.FileInfo, error) {
	if !s.owns(path) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	entries, err := s.Files.ReadDir(path, limit)
	return slices.DeleteFunc(entries, func(e fs.FileInfo) bool {
		return !nameable(e.Name()) || !s.owns(filepath.Join(path, e.Name()))
	}), err
}

// Open opens a file of the skill.
func (s skillReach) Open(path string) (fs.File, error) {
	if !s.owns(path) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return s.Files.Open(path)
}

// owns says whether what is at path belongs to the skill.
func (s skillReach) owns(path string) bool {
	if path == s.main {
		return true
	}
	real, ok := s.real(path)
	rel, err := filepath.Rel(s.top, real)
	return ok && err == nil && filepath.IsLocal(rel)
}

// real is a path with links resolved.
func (s skillReach) real(path string) (string, bool) {
	p, err := s.space.Open(path, workspace.Read)
	if err != nil {
		return "", false
	}
	_ = p.Dir.Close() // it was only looked at
	return p.Path, true
}

// nameable says whether a URI can have this name as one part of its path.
func nameable(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00") && utf8.ValidString(name)
}

package session

import (
	"context"
	"path/filepath"
	"strings"

	"codehand/tools/skills"
)

const (
	maxTypeDirs   = 50 // directories of agent types that are looked into
	maxTypeLevels = 3  // of directories below the one that agents have theirs in
)

// AgentPrefix begins the name of the session of a sub-agent; that of its owner and a name of its own follow.
const AgentPrefix = "agent:"

// OwnerOf is the session on whose behalf a session works: of a sub-agent that which started the first one; else itself.
func OwnerOf(name string) string {
	for {
		parent, child := strings.CutPrefix(name, AgentPrefix)
		at := strings.LastIndexByte(parent, '.')
		if !child || at < 0 {
			return name
		}
		name = parent[:at]
	}
}

// FindTypes returns the files of types of sub-agents that this session has now, from the disk as it is. On a clash of
// names the one of the operator wins, then that of the user, then the one nearest to the current directory. The error
// is that of ctx.
func (s *State) FindTypes(ctx context.Context) (skills.Set, error) {
	if s.Skills == nil || s.Space == nil {
		return skills.Set{}, nil
	}
	files := visible{s.Space, s.Rules}
	var dirs []skills.Dir
	for _, d := range s.Types {
		dirs = typeDirs(files, dirs, d, 0)
	}
	for _, at := range s.upward(s.Space.Cwd(), nil) {
		for _, name := range []string{".codehand", ".claude"} {
			dirs = typeDirs(files, dirs, skills.Dir{Path: filepath.Join(at, name, "agents"), Flat: true}, 0)
		}
	}
	return s.Skills.Scan(ctx, files, dirs)
}

// typeDirs adds a directory and those below it.
func typeDirs(files visible, dirs []skills.Dir, d skills.Dir, level int) []skills.Dir {
	if len(dirs) >= maxTypeDirs {
		return dirs
	}
	entries, err := files.ReadDir(d.Path, maxListed)
	if err != nil {
		return dirs // most of those that are asked for do not exist
	}
	dirs = append(dirs, d)
	if level == maxTypeLevels {
		return dirs
	}
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			below := d
			below.Path = filepath.Join(d.Path, e.Name())
			dirs = typeDirs(files, dirs, below, level+1)
		}
	}
	return dirs
}

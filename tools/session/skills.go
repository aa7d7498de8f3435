package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"codehand/tools/skills"
)

const (
	maxTouched = 200 // files of the session that skills are looked for beside, those used last
	maxPlaces  = 200 // directories of the workspace that may have skills
	maxUp      = 64  // how far up the way to the top of a repository is gone
)

// FindSkills returns the skills that this session has now, from the disk as it is. On a clash of names the one of the
// operator wins, then that of the user, then the one nearest to the current directory, then the one nearest to a file
// that was read or changed. A skill for certain files counts once such a file was. A skill of the operator or the user
// that lies, by a link or a hard link, where the session's calls may change it, is one of the project; so is one of
// which not all names could be looked for. Errors are that of ctx, and filestate.ErrMemory where the Store does not say
// what was read.
func (s *State) FindSkills(ctx context.Context) (skills.Set, error) {
	if s.Skills == nil || s.Space == nil {
		return skills.Set{}, nil
	}
	var touched []string
	if s.Files != nil {
		var err error
		if touched, err = s.Files.Paths(ctx, maxTouched); err != nil {
			return skills.Set{}, fmt.Errorf("files of the session: %w", err)
		}
	}
	set, err := s.Skills.Scan(ctx, s.Visible(), slices.Concat(s.SkillDirs, s.projectSkillDirs(touched)))
	if err != nil {
		return skills.Set{}, err
	}
	found := make([]skills.Skill, 0, len(set.Skills))
	below := s.below(touched)
	for _, k := range set.Skills {
		if err := ctx.Err(); err != nil {
			return skills.Set{}, err
		}
		if len(k.Paths) > 0 && !k.Matches(below(k)...) {
			continue
		}
		if k.Trust != skills.Project {
			k.Trust = min(k.Trust, s.trusted(k.File))
		}
		found = append(found, k)
	}
	set.Skills = found
	return set, nil
}

// ProjectDir is the top of the repository that the current directory is in, else the root that contains it. A current
// directory outside of all roots is it itself.
func (s *State) ProjectDir() string {
	if up := s.upward(s.Space.Cwd(), nil); len(up) > 0 {
		return up[len(up)-1]
	}
	return s.Space.Cwd()
}

// below returns what tells how the patterns of a skill see paths: relative to the project, to the roots, and to the
// directory that the skill is of. It looks for the top of the project once, and only if there are patterns.
func (s *State) below(paths []string) func(skills.Skill) []string {
	bases := sync.OnceValue(func() []string { return append(s.Space.Roots(), s.ProjectDir()) })
	known := map[string][]string{} // by the directory that skills are of, as most are of one
	return func(k skills.Skill) []string {
		holder := holderOf(k.File)
		rels, ok := known[holder]
		if !ok {
			all := slices.Concat(bases(), []string{holder})
			slices.Sort(all)
			rels = relative(slices.Compact(all), paths)
			known[holder] = rels
		}
		return rels
	}
}

// holderOf is the directory that a skill is of, if it lies where projects have theirs; else "".
func holderOf(file string) string {
	slashed := filepath.ToSlash(file)
	i := max(strings.LastIndex(slashed, "/.claude/"), strings.LastIndex(slashed, "/.codehand/"))
	return file[:max(0, i)]
}

// relative returns the paths that lie below bases, relative to them. An empty base has none.
func relative(bases, paths []string) []string {
	var rels []string
	for _, base := range bases {
		for _, path := range paths {
			if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
				rels = append(rels, filepath.ToSlash(rel))
			}
		}
	}
	return rels
}

// trusted says whose words a file is, by where it really lies and by who may change it.
func (s *State) trusted(file string) skills.Trust {
	real, inside := s.Space.Resolve(file)
	free := func(path string) bool { return !s.Rules.Guards(path) }
	names, whole := s.Space.Names(file) // the other ones, in the roots
	if inside && free(real) || !whole || slices.ContainsFunc(names, free) {
		return skills.Project
	}
	most := skills.Project
	for _, d := range s.SkillDirs {
		if dir, _ := s.Space.Resolve(d.Path); within(dir, real) {
			most = max(most, d.Trust)
		}
	}
	return most
}

// projectSkillDirs are the directories of skills in the workspace: from the current directory up to the top of its
// repository, then from the files that were touched. They need not exist.
func (s *State) projectSkillDirs(touched []string) []skills.Dir {
	places := s.upward(s.Space.Cwd(), nil)
	for _, path := range touched {
		if len(places) >= maxPlaces {
			break
		}
		places = s.upward(filepath.Dir(path), places)
	}
	dirs := make([]skills.Dir, 0, 3*len(places))
	for _, at := range places {
		dirs = append(dirs,
			skills.Dir{Path: filepath.Join(at, ".codehand", "skills")},
			skills.Dir{Path: filepath.Join(at, ".claude", "skills")},
			skills.Dir{Path: filepath.Join(at, ".claude", "commands"), Flat: true})
	}
	return dirs
}

// upward adds the directories from dir up to the top of its repository, and never above a root, nearest first. Where it
// comes to one that is there already, so is the rest.
func (s *State) upward(dir string, places []string) []string {
	roots, files := s.Space.Roots(), visible{s.Space, s.Rules}
	for range maxUp {
		if !slices.ContainsFunc(roots, func(root string) bool { return within(root, dir) }) ||
			slices.Contains(places, dir) {
			return places
		}
		places = append(places, dir)
		if isTop(files, dir) || dir == filepath.Dir(dir) {
			return places
		}
		dir = filepath.Dir(dir)
	}
	return places
}

// isTop says whether a directory is the top of a repository. Its `.git` may be a file, as in a worktree.
func isTop(files visible, dir string) bool {
	git := files.entry(filepath.Join(dir, ".git"))
	return git != nil && (git.IsDir() || git.Mode().IsRegular())
}

// within says whether path is dir or lies below it, both clean.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

package history

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A Tree is a directory below the root in which commands of a session made many files, told as one.
type Tree struct {
	name         string
	Files, Added int
	ids          []string
}

// Trees tell many new files of commands as few directories. It is for one goroutine.
type Trees struct {
	of  map[*Made]*Tree
	all []*Tree
}

// NewTrees finds the files that may be told as part of a directory: those that a command made, of directories with many
// of them.
func NewTrees(env tool.Env, made []*Made) *Trees {
	byName := map[string][]*Made{}
	for _, m := range made {
		s := m.steps[0]
		dir, _, below := strings.Cut(filepath.ToSlash(wording.ShownName(env, m.Path)), "/")
		if below && dir != "" && len(m.steps) == 1 && s.file.Op == "create" && s.file.Files == 0 && !s.unknown() &&
			s.entry.By.Command != "" && m.From == "" && !m.Hidden {
			byName[dir] = append(byName[dir], m)
		}
	}
	t := &Trees{of: map[*Made]*Tree{}}
	for name, files := range byName {
		if len(files) < minTree {
			continue
		}
		tree := &Tree{name: name}
		t.all = append(t.all, tree)
		for _, m := range files {
			t.of[m] = tree
		}
	}
	slices.SortFunc(t.all, func(a, b *Tree) int { return strings.Compare(a.name, b.name) })
	return t
}

// Take counts a file with its directory, and says whether that tells all there is to it.
func (t *Trees) Take(now *Now) bool {
	tree := t.of[now.Made]
	if tree == nil || len(now.Marks) != 1 || now.Others != "" {
		return false
	}
	tree.Files, tree.Added = tree.Files+1, tree.Added+now.Added
	for _, id := range now.IDs {
		if !slices.Contains(tree.ids, id) {
			tree.ids = append(tree.ids, id)
		}
	}
	return true
}

// All are the directories with files that were taken, by name.
func (t *Trees) All() []*Tree {
	return slices.DeleteFunc(t.all, func(tree *Tree) bool { return tree.Files == 0 })
}

// Line names the directory, with its files and how to take them back.
func (t *Tree) Line() string {
	line := fmt.Sprintf("%s +%d -0", wording.NewFiles(t.name, t.Files), t.Added)
	if len(t.ids) > 0 {
		line += " (undo_change " + someOf(t.ids) + ")"
	}
	return line
}

// someOf lists ids in the order in which they can be taken back, the first ones of many.
func someOf(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, ", then ")
	}
	return fmt.Sprintf("%s; %d more in file_history", strings.Join(ids[:most], ", then "), len(ids)-most)
}

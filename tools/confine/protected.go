package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/tools/confine/look"
)

// protectedDepth is how many directories below a root protected names and repositories are looked for.
const protectedDepth = 3

// repositoryNames are the files and directories of a `.git` by which a repository makes git run something or look
// elsewhere. What git itself makes for the time of a rebase is not among them.
var repositoryNames = []string{
	"config", "config.worktree", "hooks", "info/attributes", "commondir", "gitdir", "objects/info/alternates",
	"modules/*/config", "modules/*/hooks", "modules/*/commondir",
	"worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir",
}

// What the look for protected names finds.
const (
	protectedName = iota
	protectedRepository
)

// protectedNow returns what exists of protected names in root: no command changes it unless a person allowed that. name
// tells a protected name from another by its path below root ("": it is none). whole is false if root has too many
// files to look at.
func protectedNow(l *look.Looker, root string, name func(rel string) string) (found []string, whole bool) {
	left := l.Limit()
	hits, whole := l.Find(root, "protected", look.Search{
		Left: &left, Shut: []int{protectedName},
		Judge: func(path string, d fs.DirEntry, depth int) (of []int, enter bool) {
			if d.Name() == ".git" && d.IsDir() {
				return []int{protectedRepository}, false
			}
			rel, _ := filepath.Rel(root, path) // it lies below
			if name(filepath.ToSlash(rel)) != "" {
				return []int{protectedName}, false
			}
			return nil, d.Name() != "node_modules" && depth < protectedDepth
		},
	})
	for _, h := range hits {
		if h.Of[0] == protectedRepository {
			found = append(found, repositoryNow(h.Path)...)
		} else {
			found = append(found, h.Path)
		}
	}
	return found, whole
}

func repositoryNow(git string) []string {
	var found []string
	for _, name := range repositoryNames {
		if !strings.Contains(name, "*") {
			if path := filepath.Join(git, name); exists(path) {
				found = append(found, path)
			}
			continue
		}
		matches, _ := filepath.Glob(filepath.Join(globEscape(git), name)) // the pattern is right
		found = append(found, matches...)
	}
	return found
}

// globEscape makes a path a pattern for filepath.Glob that matches it alone.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// missing returns the protected names that could be made at the top of root. Directories have no slash at their end: an
// empty one that stands in for each would be in every listing of the workspace. Names with a star or with several
// components are not looked for.
func missing(root string, texts []string) (paths []string) {
	for _, text := range texts {
		name := strings.TrimSuffix(text, "/**")
		if strings.ContainsAny(name, "*/") || name == ".git" || exists(filepath.Join(root, name)) {
			continue
		}
		paths = append(paths, filepath.Join(root, name))
	}
	return paths
}

// missingIn returns the names by which a repository makes git run something or look elsewhere, and that are not there.
func missingIn(git string) (paths []string) {
	if !exists(filepath.Join(git, "HEAD")) {
		return nil
	}
	for _, name := range repositoryNames {
		if path := filepath.Join(git, name); !strings.Contains(name, "*") && !exists(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

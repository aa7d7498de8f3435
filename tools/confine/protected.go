package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// protectedDepth is how many directories below a root protected names and repositories are looked for.
	protectedDepth = 3
	// maxProtectedLooks bounds the entries that are looked at for that.
	maxProtectedLooks = 10_000
)

// repositoryNames are the files and directories of a `.git` by which a repository makes git run something or look
// elsewhere. What git itself makes for the time of a rebase is not among them.
var repositoryNames = []string{
	"config", "config.worktree", "hooks", "info/attributes", "commondir", "gitdir", "objects/info/alternates",
	"modules/*/config", "modules/*/hooks", "modules/*/commondir",
	"worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir",
}

// protectedNow returns what exists of protected names in root: no command changes it unless a person allowed that. name
// tells a protected name from another by its path below root ("": it is none).
func protectedNow(root string, name func(rel string) string) []string {
	var found []string
	left := maxProtectedLooks
	// What cannot be read cannot be changed.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil || path == root {
			return nil //nolint:nilerr // see above
		}
		rel, _ := filepath.Rel(root, path) // it lies below
		switch {
		case d.Name() == ".git" && d.IsDir():
			found = append(found, repositoryNow(path)...)
			return fs.SkipDir
		case name(filepath.ToSlash(rel)) != "":
			found = append(found, path)
		case !d.IsDir(), d.Name() != "node_modules" && strings.Count(rel, string(filepath.Separator)) < protectedDepth:
			return nil
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return found
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

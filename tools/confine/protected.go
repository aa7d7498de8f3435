package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/confine/look"
	"codehand/tools/git"
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

// brought is a protected name that commands change freely: git itself trusts nothing in it, since every clone and pull
// brings one.
const brought = ".gitmodules"

// configNames are those of repositoryNames that are git's configuration: a command writes a copy of its own, of which
// the safe keys are taken over.
var configNames = []string{"config", "config.worktree", "modules/*/config", "worktrees/*/config.worktree"}

// protectedNow returns what exists of protected names in root: no command changes it unless a person allowed that. name
// tells a protected name from another by its path below root ("": it is none). repositories are the `.git` that are
// directories. whole is false if root has too many files to look at.
func protectedNow(l *look.Looker, root string, name func(rel string) string) (
	found, repositories []string, whole bool,
) {
	left := l.Limit()
	hits, whole := l.Find(root, "protected", look.Search{
		Left: &left, Shut: []int{protectedName},
		Judge: func(path string, d fs.DirEntry, depth int) (of []int, enter bool) {
			if d.Name() == ".git" && d.IsDir() {
				return []int{protectedRepository}, false
			}
			rel, _ := filepath.Rel(root, path) // it lies below
			if found := name(filepath.ToSlash(rel)); found != "" && found != brought {
				return []int{protectedName}, false
			}
			return nil, d.Name() != "node_modules" && depth < protectedDepth
		},
	})
	for _, h := range hits {
		if h.Of[0] == protectedRepository {
			repositories = append(repositories, h.Path)
			found = append(found, repositoryNow(h.Path, name)...)
		} else {
			found = append(found, h.Path)
		}
	}
	return found, repositories, whole
}

// repositoryNow returns what exists of repositoryNames in a `.git`, but for names that the user has opened.
func repositoryNow(repository string, name func(rel string) string) []string {
	return protectedIn(repository, repositoryNames, name)
}

// protectedIn returns what exists in a `.git` of names, which are patterns, but for those that the user has opened.
func protectedIn(repository string, names []string, name func(rel string) string) []string {
	return slices.DeleteFunc(namedIn(repository, names), func(path string) bool {
		rel, _ := filepath.Rel(repository, path) // it lies below
		return name(".git/"+filepath.ToSlash(rel)) == ""
	})
}

// namedIn returns what exists in a `.git` of names, which are patterns.
func namedIn(repository string, names []string) (found []string) {
	for _, name := range names {
		if !strings.Contains(name, "*") {
			if path := filepath.Join(repository, name); exists(path) {
				found = append(found, path)
			}
			continue
		}
		matches, _ := filepath.Glob(filepath.Join(globEscape(repository), name)) // the pattern is right
		found = append(found, matches...)
	}
	return found
}

// globEscape makes a path a pattern for filepath.Glob that matches it alone.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// missing returns the protected names that could be made from the top of root on, without a slash at their end. Those
// with a star, which only an operator writes, are not looked for; those of a repository are what missingIn returns.
func missing(root string, texts []string) (paths []string) {
	for _, text := range texts {
		name := strings.TrimSuffix(text, "/**")
		if strings.Contains(name, "*") || name == ".git" || strings.HasPrefix(name, ".git/") || name == brought ||
			exists(filepath.Join(root, name)) {
			continue
		}
		paths = append(paths, filepath.Join(root, name))
	}
	return paths
}

// missingIn returns the names by which a repository makes git run something or look elsewhere, and that are not there,
// but for those that the user has opened.
func missingIn(repository string, known func(rel string) string) (paths []string) {
	if !exists(filepath.Join(repository, "HEAD")) {
		return nil
	}
	for _, name := range repositoryNames {
		if path := filepath.Join(repository, name); !strings.Contains(name, "*") && !exists(path) &&
			known(".git/"+name) != "" && (name != "config.worktree" || readsWorktree(repository)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// readsWorktree says whether git reads config.worktree in a repository now. Otherwise a command may make it: nothing
// obeys it before the command has ended.
func readsWorktree(repository string) bool {
	values, whole := git.Values("", "extensions.worktreeconfig", filepath.Join(repository, "config"))
	return len(values) > 0 || !whole
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

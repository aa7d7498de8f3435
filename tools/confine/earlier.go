package confine

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"codehand/tools/confine/look"
	"codehand/tools/git"
)

// An earlier is what protected names were when a command began, to tell what a person should look at when it has ended.
// The kernel keeps the command from what was there, but for a moment where another program replaces it, and a job from
// nothing that appears. Both may be the person's work, so nothing of it is touched.
type earlier struct {
	files   map[string]fileWas
	missing []string // at the tops of roots
}

// A fileWas is a file as it was.
type fileWas struct {
	info os.FileInfo
	born int64             // as look.Born says
	sum  [sha256.Size]byte // of its content; zero: that is not compared
}

// settled are names of repositories that the end of a command looks at more closely.
var settled = []string{"config", worktreeConfig, ".git", "hooks", "commondir"}

// now returns what protected names, and what git obeys, are now. protected are those that a command must not change.
func (c *Confiner) now(u Use, protected []string, obeyed AllObeyed) earlier {
	e := earlier{files: map[string]fileWas{}}
	for _, path := range protected {
		info, err := os.Lstat(path)
		_, is := obeyed.Find(path)
		is = is || c.isProtected(path, u.Roots) && !slices.Contains(settled, filepath.Base(path))
		if err == nil && is {
			e.files[path] = fileWas{info, look.Born(path), sumOf(path, info)}
		}
	}
	for _, root := range u.Roots {
		e.missing = append(e.missing, missing(root, c.o.Protected.Texts())...)
	}
	return e
}

// isProtected says whether a path in roots has a protected name. What only rules keep is the user's own to change.
func (c *Confiner) isProtected(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel) && c.o.Protected.Find(filepath.ToSlash(rel)) != ""
	})
}

// sumOf is the sum of what a small file holds.
func sumOf(path string, info os.FileInfo) (sum [sha256.Size]byte) {
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return sum
	}
	content, err := git.ReadSmall(path, maxConfig)
	if err != nil {
		return sum
	}
	return sha256.Sum256(content)
}

// changed names what was replaced by something else while the command ran, and what appeared beside a job; "": nothing.
func (e earlier) changed(c *configs) string {
	var names []string
	for path, was := range e.files {
		info, err := os.Lstat(path)
		if err != nil || os.SameFile(was.info, info) && was.born == look.Born(path) {
			continue
		}
		if sum := sumOf(path, info); sum != was.sum || sum == [sha256.Size]byte{} {
			names = append(names, c.shown(path))
		}
	}
	for _, path := range e.missing {
		mayMake := func(allowed string) bool { return within(path, allowed) || within(allowed, path) }
		if c.background && exists(path) && !slices.ContainsFunc(c.allowed, mayMake) {
			names = append(names, c.shown(path))
		}
	}
	if len(names) == 0 {
		return ""
	}
	what := "command"
	if c.background {
		what = "job"
	}
	return fmt.Sprintf("[made or replaced while this %s ran, which could write it: %s. Unless the user did that, have "+
		"them look at it before a program obeys it]", what, named(sorted(names)))
}

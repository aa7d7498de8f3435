package confine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/git"
	"codehand/tools/sandbox"
)

// settleMade takes away what git would run of repositories that the command made, or by which it would find one that
// cannot be looked at: hooks, a commondir that leads to another repository, a `.git` that is a link or leads to where
// commands write and a look at the roots does not come. Git in a work tree runs git in the repositories that its index
// names, so a person who asks it for the state of the whole would run them. It returns a line for each.
func (c *configs) settleMade(now names) (lines []string) {
	for _, path := range sorted(now.found) {
		if c.isKnown(path) || !c.obeys(path) || slices.ContainsFunc(c.allowed, func(a string) bool {
			return within(path, a) || within(a, path)
		}) {
			continue
		}
		dir, err := c.reach(path)
		if errors.Is(err, fs.ErrPermission) {
			lines = append(lines, c.lost(path, err))
		}
		if err != nil {
			continue // it leads elsewhere
		}
		lines = append(lines, c.setAside(dir, path, madeName(path)))
		_ = dir.Close() // a directory handle holds no data
	}
	return lines
}

// madeName is the protected name that a path which settleMade sets aside falls under.
func madeName(path string) string {
	base, slashed := filepath.Base(path), filepath.ToSlash(path)
	switch {
	case base == ".git":
		return base
	case strings.Contains(slashed, "/.git/modules/"):
		return ".git/modules/**/" + base
	case strings.Contains(slashed, "/.git/worktrees/"):
		return ".git/worktrees/**/" + base
	}
	return ".git/" + base
}

// obeys says whether git would run what the command put at a protected name of a repository, or look elsewhere.
func (c *configs) obeys(path string) bool {
	switch filepath.Base(path) {
	case "hooks":
		return hooked(path)
	case "commondir":
		// as git worktree writes it
		dir := filepath.Dir(path)
		_, common, _ := git.Leads(dir)
		return filepath.Base(filepath.Dir(dir)) != "worktrees" || common != filepath.Dir(filepath.Dir(dir))
	case ".git":
		if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
			to, _, ok := git.Leads(path)
			in := func(dir string) bool { return within(to, dir) }
			return ok && !slices.ContainsFunc(c.written, in) && slices.ContainsFunc(c.others, in)
		}
		return true
	}
	return false
}

// hooked says whether a directory of hooks has one. Git makes it with samples, which it does not run.
func hooked(dir string) bool {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return err == nil
	}
	entries, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !strings.HasSuffix(e.Name(), ".sample")
	})
}

// setAside renames a file below dir, or removes it if it is a link of a command that was no job, and returns a line
// that says so. name is the protected name that the user may open.
func (c *configs) setAside(dir *os.Root, path, name string) string {
	base := filepath.Base(path)
	aside := base + sandbox.Aside + rand.Text()[:6]
	if err := dir.Rename(base, aside); err != nil {
		return c.lost(path, err)
	}
	how := "as " + aside
	if _, err := dir.Readlink(aside); err == nil && !c.background {
		_ = dir.Remove(aside) // else it stays aside
		how = "for good: it was a link"
	}
	return fmt.Sprintf("[%s: set aside %s, as git would obey it; to let commands make it, the user sets "+
		"permissions.unprotect = [%q]%s]", c.shown(path), how, name, c.byWhom())
}

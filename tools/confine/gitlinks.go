package confine

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"codehand/tools/confine/look"
	"codehand/tools/git"
)

// An index is what the index of a repository says of other repositories in its work tree, as long as it has a stamp.
type index struct {
	at    look.Stamp
	links []string // relative to the top
}

const (
	// maxIndexes is how many indexes are read for one command, and kept. A workspace has one for each repository and
	// submodule.
	maxIndexes = 1000
	// maxIndex is how large an index may be. One of a million files has 100 MB.
	maxIndex = 256 << 20
)

// gitlinks returns what repositories have of protected names that the index of a work tree names, at any depth below
// root: git in the work tree runs git in them, which obeys their configuration, also if a command wrote the entry. file
// is the index, top the work tree. seen are the indexes that were read. whole is false if there are too many.
func (c *Confiner) gitlinks(root, file, top string, seen map[string]bool) (all names, whole bool) {
	if seen[file] {
		return all, true
	}
	if len(seen) >= maxIndexes {
		return all, false
	}
	seen[file], whole = true, true
	for _, link := range c.linksOf(file) {
		dir := filepath.Join(top, filepath.FromSlash(link))
		if !within(dir, root) {
			continue
		}
		dot := filepath.Join(dir, ".git")
		info, err := os.Lstat(dot)
		if err != nil {
			continue // nothing is there yet
		}
		below := filepath.Join(dot, "index")
		if info.IsDir() {
			found, ok := c.repositoryOf(dot)
			all.add(found)
			all.gits = append(all.gits, dot)
			whole = whole && ok
		} else {
			all.addDot(dot, c.o.Protected.Find)
			to, _, ok := git.Leads(dot)
			if !ok {
				continue
			}
			below = filepath.Join(to, "index")
		}
		found, ok := c.gitlinks(root, below, dir, seen)
		all.add(found)
		whole = whole && ok
	}
	return all, whole
}

// linksOf returns the entries of an index that are repositories, relative to the top of its work tree. What cannot be
// read, as the rest of a split index, has none.
func (c *Confiner) linksOf(path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	at, known := look.StampOf(info)
	c.mu.Lock()
	old, found := c.indexes[path]
	c.mu.Unlock()
	if found && known && old.at == at {
		return old.links
	}
	content, err := git.ReadSmall(path, maxIndex)
	if err != nil {
		return nil
	}
	var links []string
	_ = git.ReadIndex(bytes.NewReader(content), func(e *git.Entry) bool { // what could be read counts
		if e.Submodule() {
			links = append(links, strings.Clone(e.Name))
		}
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.indexes, path); known && at.Settled() {
		if len(c.indexes) >= maxIndexes {
			clear(c.indexes)
		}
		c.indexes[path] = index{at, links}
	}
	return links
}

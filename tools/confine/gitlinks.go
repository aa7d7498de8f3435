package confine

import (
	"bytes"
	"errors"
	"io/fs"
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
	// maxIndexes is how many indexes are read before a command, and kept. A workspace has one for each repository and
	// submodule.
	maxIndexes = 1000
	// maxIndex is how large an index may be. One of a million files has 100 MB.
	maxIndex = 256 << 20
)

// gitlinks returns what repositories have of protected names that the index of a work tree names, at any depth below
// root: git in the work tree runs git in them, which obeys their configuration, also if a command wrote the entry. file
// is the index, top the work tree. seen are the indexes that were read. whole is false if there are too many.
func (f *finder) gitlinks(root, file, top string, seen map[string]bool) (all names, whole bool) {
	if seen[file] {
		return all, true
	}
	if len(seen) >= f.most(maxIndexes) {
		return all, false
	}
	seen[file], whole = true, true
	for _, link := range f.linksOf(file) {
		dir := filepath.Join(top, filepath.FromSlash(link))
		if !within(dir, root) {
			continue
		}
		dot := filepath.Join(dir, ".git")
		info, err := os.Lstat(dot)
		if errors.Is(err, fs.ErrPermission) && f.opened(dir) {
			info, err = os.Lstat(dot)
		}
		if errors.Is(err, fs.ErrPermission) {
			if shut := shutAbove(dot, top); shut != "" { // a command could open it again
				all.found = append(all.found, shut)
			}
		}
		if err != nil {
			continue // nothing is there yet
		}
		below := filepath.Join(dot, "index")
		if info.IsDir() {
			found, ok := f.repositoryOf(dot)
			all.add(found)
			all.gits = append(all.gits, dot)
			whole = whole && ok
		} else {
			all.addDot(dot, f.name)
			to, _ := f.leads(dot)
			if to == "" {
				continue
			}
			below = filepath.Join(to, "index")
		}
		found, ok := f.gitlinks(root, below, dir, seen)
		all.add(found)
		whole = whole && ok
	}
	return all, whole
}

// shutAbove returns the directory between top and path that this user owns and shut; "": there is none.
func shutAbove(path, top string) string {
	for dir := filepath.Dir(path); within(dir, top); dir = filepath.Dir(dir) {
		if look.Shut(dir) {
			return dir
		}
	}
	return ""
}

// linksOf returns the entries of an index that are repositories, relative to the top of its work tree. What cannot be
// read, as the rest of a split index, has none.
func (f *finder) linksOf(path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	at, known := look.StampOf(info)
	f.mu.Lock()
	old, found := f.indexes[path]
	f.mu.Unlock()
	if found && known && old.at == at {
		return old.links
	}
	defer f.peek(path)()
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.indexes, path); known && at.Settled() {
		if len(f.indexes) >= maxIndexes {
			clear(f.indexes)
		}
		f.indexes[path] = index{at, links}
	}
	return links
}

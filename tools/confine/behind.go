package confine

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"codehand/tools/git"
)

// Git goes on where it cannot write a file: after `git checkout` of a branch in which a protected file is another one,
// HEAD and the index are those of the branch, and the file is as before. `git add -A` would then commit that as a
// change.

// A begun is what there was when a command began.
type begun struct {
	kept  []string               // what it is kept from writing
	index map[string]fs.FileInfo // of repositories, by their configuration
}

// indexes are the index files of repositories by their directories, before a command.
func (c *configs) indexes() map[string]fs.FileInfo {
	all := map[string]fs.FileInfo{}
	for _, one := range c.all {
		if info, err := one.dir.Lstat("index"); err == nil && filepath.Base(filepath.Dir(one.path)) == ".git" {
			all[one.path] = info
		}
	}
	return all
}

// behind names protected files that git has other contents of since this command, and could not write.
func (c *configs) behind() string {
	var names []string
	for _, one := range c.all {
		was, had := c.begun.index[one.path]
		now, err := one.dir.Lstat("index")
		if !had || err != nil || os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) {
			continue
		}
		names = append(names, c.behindIn(one)...)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("[git could not write %s: protected, so as before, which git takes for a change. Do not commit "+
		"that. `git restore` with these names asks the user, who can also set permissions.unprotect]", named(names))
}

// maxBehind is how many entries of one index are held against their files: a command can write any index.
const maxBehind = 200

// behindIn looks through one repository. An entry that git could not write has no stat data.
func (c *configs) behindIn(one config) (names []string) {
	index, err := git.ReadSmallIn(one.dir, "index", maxIndex)
	if err != nil {
		return nil
	}
	top := filepath.Dir(filepath.Dir(one.path))
	tree, err := os.OpenRoot(top)
	if err != nil {
		return nil
	}
	defer func() { _ = tree.Close() }() // a directory handle holds no data
	looked := 0
	each := func(e *git.Entry) bool {
		path := filepath.Join(top, filepath.FromSlash(e.Name))
		if e.Stage != 0 || e.MtimeSec != 0 || e.Size != 0 || !c.protects(path) {
			return true
		}
		if content, err := git.ReadSmallIn(tree, filepath.FromSlash(e.Name), maxConfig); err == nil &&
			git.BlobOID(content) != e.OID {
			names = append(names, c.shown(path))
		}
		looked++
		return looked < maxBehind
	}
	_ = git.ReadIndex(bytes.NewReader(index), each) // an index of another form has said what it could
	return names
}

// protects says whether this command was kept from writing a file.
func (c *configs) protects(path string) bool {
	for _, at := range c.begun.kept {
		if within(path, at) {
			return true
		}
	}
	return false
}

package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/tools/permission"
	"codehand/tools/skills"
	"codehand/tools/workspace"
)

const (
	maxListed = 10_000 // entries of one directory that are looked at; of a larger one some are not seen
	openTries = 3      // of a name that is replaced while it is opened
)

// Visible reaches the files that calls of this session may read without a question to a person. Files outside its
// areas, also through a link, files that a rule denies or asks about, and files with the name of a secret do not exist
// for it: the error is fs.ErrNotExist. It is safe for concurrent use.
func (s *State) Visible() skills.Files { return visible{s.Space, s.Rules} }

type visible struct {
	space *workspace.Space
	rules *permission.Policy
}

// ReadDir returns the entries of a directory, sorted by name, at most limit of them. A link is an entry of its target's
// kind, under its own name; what is hidden is none.
func (v visible) ReadDir(path string, limit int) ([]fs.FileInfo, error) {
	p, err := v.reach(path)
	if err != nil {
		return nil, err
	}
	defer p.Dir.Close()
	before, err := p.Dir.Lstat(p.Name)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	list, err := p.Dir.OpenFile(p.Name, listFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	defer list.Close()
	if opened, err := list.Stat(); err != nil || !os.SameFile(before, opened) {
		return nil, absent(path) // a link stands there now, and its target was not checked
	}
	entries, err := list.ReadDir(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var infos []fs.FileInfo
	for _, e := range entries {
		if len(infos) >= limit {
			break
		}
		if info := v.entry(filepath.Join(path, e.Name())); info != nil {
			infos = append(infos, named{info, e.Name()})
		}
	}
	return infos, nil
}

// entry looks at what is at path, with links followed; nil: nothing that may be seen.
func (v visible) entry(path string) fs.FileInfo {
	p, err := v.reach(path)
	if err != nil {
		return nil
	}
	defer p.Dir.Close()
	info, err := p.Dir.Lstat(p.Name)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 { // swapped meanwhile
		return nil
	}
	return info
}

// A named is what a link leads to, under the name of the link.
type named struct {
	fs.FileInfo
	name string
}

// Name is that of the link.
func (n named) Name() string { return n.name }

// Target is what the system says, which tells files apart.
func (n named) Target() fs.FileInfo { return n.FileInfo }

// Open opens a regular file, and nothing else; it never blocks.
func (v visible) Open(path string) (fs.File, error) {
	var last error
	for range openTries {
		p, err := v.reach(path)
		if err != nil {
			return nil, err
		}
		f, err := filestate.OpenRegular(filestate.File(p))
		_ = p.Dir.Close() // a directory handle holds no data
		if err == nil {
			return f, nil
		}
		if last = err; !errors.Is(err, disk.ErrMoved) {
			break
		}
	}
	return nil, last
}

// reach resolves a path that may be seen. The caller closes its Dir.
func (v visible) reach(path string) (workspace.Place, error) {
	if v.space == nil {
		return workspace.Place{}, absent(path)
	}
	p, err := v.space.Open(path, workspace.Read)
	if _, outside := errors.AsType[*workspace.OutsideError](err); outside {
		return p, absent(path)
	}
	if err != nil {
		return p, err
	}
	info, err := p.Dir.Lstat(p.Name)
	if err == nil && v.hidden(path, p, info) {
		err = absent(path)
	}
	if err != nil {
		_ = p.Dir.Close() // it was only looked at
		return workspace.Place{}, err
	}
	p.Linked = func(info fs.FileInfo) error {
		if v.hidden(path, p, info) {
			return absent(path)
		}
		return nil
	}
	return p, nil
}

// hidden says whether a rule is about any name of what info describes at path, which leads to p, or one of them is that
// of a secret. A file whose names could not all be found is hidden where there are such rules.
func (v visible) hidden(path string, p workspace.Place, info fs.FileInfo) bool {
	closed := func(name string) bool {
		return v.rules.Hidden(name) || v.rules.SecretName(name) || v.rules.Ruled(name, false) != permission.Allow
	}
	if closed(path) || path != p.Path && closed(p.Path) {
		return true
	}
	names, whole := v.space.NamesOf(p, info)
	return !whole && v.rules.Compares(false) || slices.ContainsFunc(names, closed)
}

func absent(path string) error { return fmt.Errorf("%s: %w", path, fs.ErrNotExist) }

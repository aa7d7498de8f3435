package changes

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate/disk"
	"codehand/tools/git"
	"codehand/tools/search/ignore"
)

const (
	maxIndex   = 64 << 20 // bytes of an index that is read
	maxTracked = 500_000  // files that it has, and directories
	maxContent = 4 << 20  // of a file whose content is looked at
	// how many files are hashed at the first look, and at each later one, because git's index does not prove what they
	// are; and how many bytes
	firstFiles, firstBytes = 2000, 32 << 20
	laterFiles, laterBytes = 200, 8 << 20
)

var errUnfit = errors.New("the index cannot be used, or the work tree has too many files")

// An index is what git's index says. It does not change.
type index struct {
	stamp   disk.Stamp
	entries map[string]*git.Entry
	dirs    map[string]bool // that hold tracked files
}

// readIndex reads the index again if it may have changed. A repository without one has no tracked files.
func (t *tree) readIndex() (reread bool, err error) {
	file := filepath.Join(t.place.Dir, "index")
	var stamp disk.Stamp
	info, err := os.Lstat(file)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		stamp = disk.StampOf(info)
	case !missing:
		return false, err
	}
	switch {
	case t.unfit != nil && t.unfit.Same(stamp):
		return false, errUnfit
	case missing:
		reread = t.index == nil || len(t.index.entries) > 0
		t.index = &index{}
		return reread, nil
	case t.index != nil && stamp.Ino != 0 && t.index.stamp.Same(stamp): // git makes a new file each time
		return false, nil
	case !info.Mode().IsRegular():
		return false, fs.ErrInvalid
	}
	x, err := parseIndex(file)
	if err != nil {
		t.unfit = &stamp
		return false, err
	}
	x.stamp = stamp
	t.index = x
	if !t.known {
		return true, nil
	}
	for name, e := range x.entries { // what was ignored and is tracked now was not looked at
		r := t.files[name]
		t.stale = t.stale || !e.Submodule() && (r != nil && r.ignored || t.dirs[path.Dir(name)] == nil)
	}
	return true, nil
}

// parseIndex reads an index that has no more files and directories than fit into memory.
func parseIndex(file string) (*index, error) {
	text, err := git.ReadSmall(file, maxIndex)
	if err != nil {
		return nil, err
	}
	x := &index{entries: make(map[string]*git.Entry), dirs: make(map[string]bool)}
	err = git.ReadIndex(bytes.NewReader(text), func(e *git.Entry) bool {
		entry := *e
		x.entries[entry.Name] = &entry
		for dir := path.Dir(entry.Name); dir != "." && !x.dirs[dir] && len(x.dirs) <= maxTracked; dir = path.Dir(dir) {
			x.dirs[dir] = true
		}
		return len(x.entries) <= maxTracked && len(x.dirs) <= maxTracked
	})
	if err == nil && (len(x.entries) > maxTracked || len(x.dirs) > maxTracked) {
		err = errTooBig
	}
	return x, err
}

// recorded tells whether what git records of the work tree besides its files may have changed: the index, and the
// commit that is checked out.
type recorded [3]disk.Stamp

func (t *tree) recorded() (r recorded) {
	for i, name := range []string{"index", "HEAD", filepath.Join("logs", "HEAD")} {
		if info, err := os.Lstat(filepath.Join(t.place.Dir, name)); err == nil {
			r[i] = disk.StampOf(info)
			r[i].Racy = false
		}
	}
	return r
}

// proves says that a file with this record has the content of its entry, as git would say: conversions apart.
func (x *index) proves(name string, r *record) bool {
	e := x.entries[name]
	if e == nil || e.Stage != 0 || !r.mode.IsRegular() || e.Mode&0o170000 != 0o100000 {
		return false
	}
	s := r.stamp
	mtime := int64(e.MtimeSec)*1e9 + int64(e.MtimeNano)
	return s.Ino != 0 && e.Size == uint32(s.Size) && e.Ino == uint32(s.Ino) && mtime == s.Mtime &&
		int64(e.CtimeSec)*1e9+int64(e.CtimeNano) == s.Ctime &&
		mtime < x.stamp.Mtime // else it may have changed after it was added, within one tick of the clock
}

// doubt hashes files of which the index does not prove what they are: all, or those with these names. More of them if
// it is the first time. Tracked files come before the others, of which one command can make thousands.
func (t *tree) doubt(first, all bool, names []string) {
	files, bytes := laterFiles, int64(laterBytes)
	if first {
		files, bytes = firstFiles, firstBytes
	}
	in := slices.Values(names)
	if all {
		in = maps.Keys(t.files)
	}
	var tracked, others []string
	for name := range in {
		r := t.files[name]
		if r == nil || r.ignored || r.hashed || !r.mode.IsRegular() || r.stamp.Size > maxContent ||
			t.index.proves(name, r) {
			continue
		}
		if t.index.entries[name] != nil {
			tracked = append(tracked, name)
		} else if len(others) < files {
			others = append(others, name)
		}
	}
	var root *os.Root
	for _, name := range append(tracked, others...) {
		r := t.files[name]
		if r.hashed { // it was named twice
			continue
		}
		if files--; files < 0 {
			break
		}
		if bytes -= r.stamp.Size; bytes < 0 {
			break
		}
		if root == nil {
			opened, err := os.OpenRoot(t.place.Top)
			if err != nil {
				return
			}
			root = opened
			defer func() { _ = root.Close() }() // a directory handle holds no data
		}
		content, now, err := t.read(root, name)
		if err == nil && now.stamp.Same(r.stamp) {
			r.hashed, r.blob, r.sum = true, git.BlobOID(content), disk.DigestOf(content)
		}
	}
}

// read reads a file that is regular, not too large and does not change meanwhile.
func (t *tree) read(root *os.Root, name string) ([]byte, *record, error) {
	dir, err := disk.Descend(root, filepath.FromSlash(path.Dir(name)))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	f, stamp, err := disk.OpenRegular(dir, path.Base(name), filepath.Join(t.place.Top, name))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if stamp.Size > maxContent {
		return nil, nil, disk.ErrTooLarge
	}
	content, err := disk.ReadAll(context.Background(), f, stamp.Size)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	now := &record{stamp: disk.StampOf(info), mode: info.Mode()}
	now.born, now.dated = birth(f, info)
	if !now.stamp.Same(stamp) {
		return nil, nil, disk.ErrMoved
	}
	return content, now, nil
}

// anyFilter stands for attributes that are not known.
const anyFilter = "* filter"

// attributes are the files below one directory whose contents git converts by a program or an encoding. What else it
// converts changes the size.
type attributes struct{ list *ignore.List }

// attribute notes what a .gitattributes file says now; root is nil if it is gone.
func (t *tree) attribute(root *os.Root, name string) {
	if path.Base(name) != ".gitattributes" {
		return
	}
	all := maps.Clone(t.attrs) // Spans have the old one
	if all == nil {
		all = make(map[string]*attributes)
	}
	delete(all, path.Dir(name))
	if root != nil {
		text, err := git.ReadSmallIn(root, name, maxRules)
		if err != nil {
			text = []byte(anyFilter)
		}
		if a := parseAttributes(text); a != nil {
			all[path.Dir(name)] = a
		}
	}
	t.attrs = all
}

// generalAttributes are those that no directory has: of the repository, the user, the system.
func (t *tree) generalAttributes() []*attributes {
	var all []*attributes
	files, whole := t.general("core.attributesfile", "attributes")
	if !whole {
		all = append(all, parseAttributes([]byte(anyFilter)))
	}
	for _, file := range append(files, filepath.Join(t.place.Common, "info", "attributes"), "/etc/gitattributes") {
		text, err := git.ReadSmall(file, maxRules)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			text = []byte(anyFilter)
		}
		if a := parseAttributes(text); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// parseAttributes returns nil if no line is about such a conversion. A later line that takes one back does not count.
func parseAttributes(text []byte) *attributes {
	converting := []string{"filter", "working-tree-encoding"}
	var patterns strings.Builder
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0][0] == '#' {
			continue
		}
		found := false
		for _, word := range words[1:] {
			attr, _, _ := strings.Cut(word, "=")
			for _, c := range converting {
				found = found || attr == c
			}
		}
		macro, isMacro := strings.CutPrefix(words[0], "[attr]")
		switch {
		case !found:
		case isMacro:
			converting = append(converting, macro)
		case words[0][0] == '"': // a pattern with blanks
			patterns.WriteString("*\n")
		default:
			patterns.WriteString(words[0] + "\n")
		}
	}
	if patterns.Len() == 0 {
		return nil
	}
	return &attributes{ignore.Parse([]byte(patterns.String()))}
}

// converts says whether git may convert the content of a file by a program or an encoding.
func (s *Span) converts(name string) bool {
	for _, a := range s.general {
		if a.list.Match(name, false) != ignore.None {
			return true
		}
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if a := s.attrs[dir]; a != nil && a.list.Match(strings.TrimPrefix(name, strings.TrimPrefix(dir+"/", "./")),
			false) != ignore.None {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

package results

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrUnknown says that a shelf holds no such text, or none any more.
var ErrUnknown = errors.New("no such result")

// A Kept is a text on a shelf.
type Kept struct {
	ID    string // of its call
	Tool  string
	Path  string
	Bytes int64
	Time  time.Time // when it was written last
}

// List returns what the shelf holds, newest first. Of several texts of one call only the newest is in it. A shelf on
// which nothing was kept yet holds nothing.
func (s *Shelf) List() ([]Kept, error) {
	var entries []fs.DirEntry
	err := s.own()
	if err == nil {
		entries, err = os.ReadDir(s.dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Kept
	for _, e := range entries {
		if k, ok := s.entry(e); ok {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return cmp.Compare(b.Path, a.Path)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(k Kept) bool {
		double := seen[k.ID]
		seen[k.ID] = true
		return double
	}), nil
}

// entry reads what a name says. ok is false for files that are not of this shelf, and for those that were just removed.
func (s *Shelf) entry(e fs.DirEntry) (k Kept, ok bool) {
	name, isText := strings.CutSuffix(e.Name(), suffix)
	id, tool, named := strings.Cut(name, "-")
	if !isText || !named || id == "" || !e.Type().IsRegular() {
		return Kept{}, false
	}
	info, err := e.Info()
	if err != nil {
		return Kept{}, false
	}
	return Kept{ID: id, Tool: tool, Path: filepath.Join(s.dir, e.Name()), Bytes: info.Size(), Time: info.ModTime()},
		true
}

// Open opens the text of a call. The caller closes it. ErrUnknown: there is none. Whatever id is, nothing but a regular
// file of the shelf is opened.
func (s *Shelf) Open(id string) (*os.File, Kept, error) {
	all, err := s.List()
	if err != nil {
		return nil, Kept{}, err
	}
	i := slices.IndexFunc(all, func(k Kept) bool { return k.ID == id })
	if i < 0 {
		return nil, Kept{}, ErrUnknown
	}
	dir, err := os.OpenRoot(s.dir) // no link leads out of it
	if err != nil {
		return nil, Kept{}, err
	}
	defer func() { _ = dir.Close() }() // only read
	f, err := dir.Open(filepath.Base(all[i].Path))
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		err = ErrUnknown
	}
	if err != nil {
		return nil, Kept{}, err
	}
	return f, all[i], nil
}

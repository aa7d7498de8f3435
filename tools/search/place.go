package search

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"codehand/tools/search/ignore"
)

// name is Name as os.Root wants it.
func (p Place) name() string {
	if p.Name == "" {
		return "."
	}
	return p.Name
}

// placeTries is how often a place that stands where it stood answers EINVAL before it is the file system that says so,
// and not an os.Root that read a link which was none any more: a race gives that once in many thousand opens.
const placeTries = 3

// An opener opens a name of a place, as os.Root.OpenFile does.
type opener func(name string, flag int, mode fs.FileMode) (*os.File, error)

// open opens what a query begins at: a regular file or a directory. Nothing else is opened, and nothing is waited for.
// Errors: ErrNotRegular, ErrGone, or what the system says.
func (p Place) open() (*os.File, fs.FileInfo, error) { return p.openBy(p.Dir.OpenFile) }

func (p Place) openBy(open opener) (*os.File, fs.FileInfo, error) {
	f, before, err := p.handle(open)
	if errors.Is(err, ErrNotRegular) {
		return nil, nil, ErrNotRegular
	}
	if err != nil {
		if vanished(err) {
			err = errors.Join(ErrGone, err)
		}
		return nil, nil, fmt.Errorf("open %s: %w", p.Path, err)
	}
	// What is open now decides: it may have been swapped since, also with a link, which an os.Root follows.
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("open %s: %w", p.Path, errors.Join(err, f.Close()))
	case !os.SameFile(before, info):
		return nil, nil, fmt.Errorf("open %s: %w", p.Path, errors.Join(ErrGone, f.Close()))
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil, nil, errors.Join(ErrNotRegular, f.Close())
	}
	return f, info, nil
}

// handle opens the place, and tries again where a link may have come and gone. before is what stood there. A link is
// not followed: the place was resolved.
func (p Place) handle(open opener) (f *os.File, before fs.FileInfo, err error) {
	var first fs.FileInfo
	for try := 1; ; try++ {
		now, err := p.Dir.Lstat(p.name())
		var f *os.File
		switch {
		case err != nil:
		case now.Mode()&fs.ModeSymlink != 0:
			err = ErrGone
		case !now.Mode().IsRegular() && !now.IsDir():
			err = ErrNotRegular
		default:
			f, err = open(p.name(), placeFlags, 0)
		}
		if !errors.Is(err, syscall.EINVAL) || now == nil {
			return f, now, err
		}
		if first == nil {
			first = now
		}
		if !os.SameFile(first, now) {
			return nil, nil, errors.Join(ErrGone, err)
		}
		if try == placeTries {
			return nil, nil, err
		}
	}
}

// rulesAbove gives the ignore rules that hold above the directory of a query: outside the root, and on the way from the
// root to it.
func (w *walk) rulesAbove() *ignore.Stack {
	p := w.scope.Place
	way := strings.Split(filepath.ToSlash(filepath.Clean(p.name())), "/")
	if way[0] == "." || way[0] == ".." {
		way = nil
	}
	root := p.Path
	for range way {
		root = filepath.Dir(root)
	}
	rules := w.ex.above(root)
	if len(way) == 0 {
		return rules
	}
	for i := range way {
		rules = w.rulesOn(rules, strings.Join(way[:i], "/"), root)
	}
	return rules
}

// rulesOn adds the rules of a directory between the root and the directory of the query.
func (w *walk) rulesOn(rules *ignore.Stack, below, root string) *ignore.Stack {
	place := Place{Dir: w.scope.Place.Dir, Name: below, Path: joinPath(filepath.ToSlash(root), below)}
	f, err := place.Dir.OpenFile(place.name(), placeFlags, 0)
	if err != nil {
		return rules // the walk itself will say what is wrong with the way
	}
	d, err := startFolder(place, f)
	if err != nil {
		return rules
	}
	defer d.close()
	return w.withPlace(place).pushRules(rules, d, "", func(name string) bool {
		_, err := d.lstat(name)
		return err == nil
	})
}

// withPlace gives a walk that is good for reading rules at another place only.
func (w *walk) withPlace(p Place) *walk {
	scope := w.scope
	scope.Place = p
	return &walk{scope: scope, log: w.log, ex: w.ex}
}

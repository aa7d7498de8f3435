package search

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/tools/search/ignore"
)

// name is Name as os.Root wants it.
func (p Place) name() string {
	if p.Name == "" {
		return "."
	}
	return p.Name
}

// open opens what a query begins at: a regular file or a directory. Nothing else is opened, and nothing is waited for.
// Errors: ErrNotRegular, ErrGone, or what the system says.
func (p Place) open() (*os.File, fs.FileInfo, error) {
	info, err := p.Dir.Stat(p.name())
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil, ErrNotRegular
	}
	var f *os.File
	if err == nil {
		f, err = p.Dir.OpenFile(p.name(), placeFlags, 0)
	}
	if err != nil {
		if vanished(err) {
			err = errors.Join(ErrGone, err)
		}
		return nil, nil, fmt.Errorf("open %s: %w", p.Path, err)
	}
	// What is open now decides: it may have been swapped since.
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil, errors.Join(ErrNotRegular, err, f.Close())
	}
	return f, info, nil
}

// rulesAbove gives the ignore rules that hold above the directory of a query: outside the root, and on the way from the root
// to it.
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

//go:build !unix

package search

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"codehand/tools/search/index"
)

const placeFlags = os.O_RDONLY

var errSystem = errors.New("system file system")

// A folder is an open directory of a walk, reached through a root of its own.
type folder struct {
	f    *os.File
	root *os.Root
}

// startFolder makes a folder of an open directory, which it takes over.
func startFolder(p Place, f *os.File) (folder, error) {
	root, err := p.Dir.OpenRoot(p.name())
	if err != nil {
		return folder{}, errors.Join(err, f.Close())
	}
	d := folder{f, root}
	opened, err := f.Stat()
	if again, errAgain := root.Stat("."); err != nil || errAgain != nil || !os.SameFile(opened, again) {
		d.close()
		return folder{}, errors.Join(ErrGone, err, errAgain) // a link stands there now, which leads elsewhere
	}
	return d, nil
}

func (d folder) below(rel string) (folder, error) {
	info, err := d.root.Lstat(rel)
	if err != nil {
		return folder{}, err
	}
	if !info.IsDir() {
		return folder{}, fs.ErrNotExist
	}
	root, err := d.root.OpenRoot(rel)
	if err != nil {
		return folder{}, err
	}
	f, err := root.Open(".")
	if err != nil {
		return folder{}, errors.Join(err, root.Close())
	}
	return folder{f, root}, nil
}

func (d folder) entries(n int) ([]index.Listed, error) {
	list, err := d.f.ReadDir(n)
	return entriesOf(list), err
}

// stamp, trusts and again serve what is remembered between searches: nothing is, on these systems.
func (d folder) stamp() (index.Stamp, error) { return index.Stamp{}, errors.ErrUnsupported }
func (d folder) trusts() bool                { return false }
func (d folder) again() (folder, error)      { return folder{}, errors.ErrUnsupported }

func (d folder) close() {
	_, _ = d.f.Close(), d.root.Close() // nothing was written
}

func (d folder) open(name string) (*regular, error) {
	if st, err := d.lstat(name); err != nil {
		return nil, err
	} else if !st.regular {
		return nil, ErrNotRegular
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &regular{File: f, stat: statOf(info)}, nil
}

func (d folder) lstat(name string) (stat, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

// A regular is an open regular file.
type regular struct {
	*os.File
	stat
	whole bool
}

func (r *regular) now() (stat, error) { return stat{}, errors.ErrUnsupported }
func (r *regular) trusts() bool       { return false }

func (r *regular) close() { _ = r.File.Close() } // nothing was written

type stat struct {
	regular  bool
	size     int64
	mtime    time.Time
	dev, ino uint64
	links    uint64
}

// stamp proves nothing here.
func (s stat) stamp() index.Stamp { return index.Stamp{} }

func statOf(info fs.FileInfo) stat {
	return stat{regular: info.Mode().IsRegular(), size: info.Size(), mtime: info.ModTime(), links: 1}
}

func fileStat(info fs.FileInfo) stat { return statOf(info) }

func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRegular)
}

func full(error) bool { return false }

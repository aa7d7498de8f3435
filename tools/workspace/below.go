package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxBelow is how many entries Below looks at; some 0.2 s on a warm disk.
const maxBelow = 50_000

// Below calls file for each file below the directory at path for which reaches says yes, until file returns false. rel
// is relative to path; names are all that the file is known by inside the roots, canonical: with links resolved, and
// its hard links. reaches is asked first, also about each directory (dir), which is then gone into or left out. Links
// are followed inside the areas; what they lead to outside of them is left out, since nothing is known of it.
//
// whole is false if Below could not look at everything: more than maxBelow entries, an unreadable directory, a file
// with names that were not found. Then file may have missed some. path may be outside the areas. There is nothing below
// a file, or below what does not exist. Nothing is remembered: a command that reads what is below a directory takes
// longer than to look at its names.
func (s *Space) Below(path string, reaches func(rel string, dir bool) bool,
	file func(rel string, names []string) bool) (whole bool) {
	b := belowWalk{space: s, reaches: reaches, file: file, left: maxBelow, whole: true, seen: map[string]bool{}}
	b.enter(path, "", 0)
	return b.whole || b.enough
}

// A belowWalk is one walk of Below.
type belowWalk struct {
	space   *Space
	reaches func(string, bool) bool
	file    func(string, []string) bool
	left    int
	whole   bool
	enough  bool            // file has said so
	seen    map[string]bool // canonical paths of directories, since links may lead round
}

// enter walks through the directory at path, which may be a link.
func (b *belowWalk) enter(path, rel string, depth int) {
	p, err := openBy(b.space, path, Read, nil)
	if _, out := errors.AsType[*OutsideError](err); out && rel == "" {
		b.outside(path)
		return
	}
	if err != nil {
		b.failed(path, err)
		return
	}
	defer p.Dir.Close()
	info, err := p.Dir.Lstat(p.Name)
	switch {
	case err != nil:
		b.failed(path, err)
	case info.IsDir() && !b.seen[p.Path]:
		dir, err := openDir(p.Dir, p.Name)
		if err != nil {
			b.failed(path, err)
			return
		}
		b.directory(dir, p.Path, rel, depth)
	case info.Mode().IsRegular() && rel != "" && b.reaches(rel, false):
		b.regular(p.Dir, p.Name, info, p.Path, rel)
	}
}

// outside walks through the directory at path, which is outside the areas, but may hold one.
func (b *belowWalk) outside(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		var dir *os.Root
		if dir, err = os.OpenRoot(real + "/."); err == nil { // a FIFO would be waited for
			b.directory(dir, real, "", 0)
			return
		}
	}
	if !errors.Is(err, syscall.ENOTDIR) {
		b.failed(path, err)
	}
}

// failed notes what could not be looked at. What does not exist, or is outside, is no loss; nor is a link that the
// system follows no more than we do.
func (b *belowWalk) failed(path string, err error) {
	var missing *MissingError
	var outside *OutsideError
	if gone(err) || errors.As(err, &missing) || errors.As(err, &outside) {
		return
	}
	if errors.Is(err, ErrTooManyLinks) {
		if _, err := os.Stat(path); err != nil {
			return
		}
	}
	b.whole = false
}

// directory walks through dir, which stands at path, and closes it.
func (b *belowWalk) directory(dir *os.Root, path, rel string, depth int) {
	defer dir.Close()
	b.seen[path] = true
	if depth == maxLinkDepth {
		b.whole = false
		return
	}
	list, err := dir.Open(".")
	if err != nil {
		b.failed(path, err)
		return
	}
	defer list.Close()
	for !b.enough && b.left >= 0 {
		entries, err := list.ReadDir(readAtOnce)
		for _, e := range entries {
			if b.left--; b.left < 0 {
				b.whole = false
				return
			}
			if b.entry(dir, e, path, rel, depth); b.enough {
				return
			}
		}
		if err != nil {
			b.whole = b.whole && errors.Is(err, io.EOF)
			return
		}
	}
}

// entry looks at one entry of dir, which stands at path.
func (b *belowWalk) entry(dir *os.Root, e fs.DirEntry, path, rel string, depth int) {
	at := e.Name()
	if rel != "" {
		at = rel + "/" + at
	}
	switch e.Type() {
	case fs.ModeDir:
		if !b.reaches(at, true) || b.seen[filepath.Join(path, e.Name())] {
			return
		}
		sub, err := openDir(dir, e.Name())
		if err != nil {
			b.failed(path, err)
			return
		}
		b.directory(sub, filepath.Join(path, e.Name()), at, depth+1)
	case fs.ModeSymlink:
		if b.reaches(at, true) || b.reaches(at, false) {
			b.enter(filepath.Join(path, e.Name()), at, depth+1)
		}
	case 0:
		if !b.reaches(at, false) {
			return
		}
		info, err := dir.Lstat(e.Name())
		if err != nil {
			b.failed(path, err)
			return
		}
		b.regular(dir, e.Name(), info, filepath.Join(path, e.Name()), at)
	}
}

// regular tells of one file, name of dir, which stands at path.
func (b *belowWalk) regular(dir *os.Root, name string, info fs.FileInfo, path, rel string) {
	names := []string{path}
	switch file, ok := identify(dir, name, info); {
	case !ok:
		b.whole = false
	case file.links > 1:
		also, whole := b.space.NamesByID(file.id.dev, file.id.ino)
		names, b.whole = append(names, also...), b.whole && whole
	}
	b.enough = b.enough || !b.file(rel, names)
}

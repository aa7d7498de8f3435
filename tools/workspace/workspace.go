// Package workspace decides which paths a session may touch, and reaches them.
//
// Every path goes through a Space. It compares a path with the roots by whole components, and then opens it through
// directory handles (os.Root), one component at a time, so neither a string prefix nor a swap between check and use
// decides which file is touched. The kernel follows no link here: a Space reads a link and resolves its target by the
// same rules, from the beginning. The package knows no rules, no tools and no file contents; a caller with rules gives
// the Space a Guard, which judges what was opened.
package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Access says what a place is opened for. The zero value is the one that needs more.
type Access int

// The accesses.
const (
	Write Access = iota // change or create: every part of the path must be in a writable area
	Read                // look at: read-only areas are enough, and the file must exist
)

// Options of a Space.
type Options struct {
	Home     string   // what `~` means; "": `~` is refused with *InvalidError
	Cwd      string   // where relative paths start, absolute; "": the first root
	Readable []string // directories besides the roots that may be read and never changed (kept results, job output)
}

// A Space is a set of areas together with a cwd. It is safe for concurrent use; At, Readable and Writable make copies
// that share the handles, so only the first one is closed.
type Space struct {
	areas  areas
	roots  []string // canonical, in the order given
	whole  []string // the roots that it was opened with, before any Narrowing
	wanted []string // what the Narrowing in force named; nil: there is none
	home   string
	cwd    string
	links  *linkIndex
	cases  *caseIndex
	short  *shortcut
	guard  Guard // nil: whatever lies in an area may be opened
}

// A Place is a path as it will be reached: Dir is a handle on the deepest existing directory on the way, Name the
// rest of the path below it, Path the canonical absolute path (links resolved). Of whatever exists, Dir is the parent
// and Name one component; only a root itself has the Name ".". Dir belongs to the caller, who closes it.
// filestate.File and search.Place have the same fields and convert.
//
// A caller that opens Name later must not trust what stood there before: another process may have put a link in its
// place. Dir keeps such a link below itself.
type Place struct {
	Dir  *os.Root
	Name string
	Path string
	// the Guard's judgement of an open file with other names, before it is used; nil: none is needed
	Linked func(fs.FileInfo) error
}

// Open makes a Space over roots, which must be existing directories; links in them are resolved here, once. `/`,
// `/proc`, `/sys`, `/dev`, `/etc` and directories below the last four are refused, and so are a drive's root and a file
// system of the kernel. No roots: every path is outside.
func Open(roots []string, o Options) (*Space, error) {
	s := &Space{home: o.Home, links: &linkIndex{now: time.Now}, cases: &caseIndex{}, short: &shortcut{}}
	for _, root := range roots {
		a, err := openRoot(root)
		if err != nil {
			_ = s.Close() // what was opened so far; nothing was written through it
			return nil, fmt.Errorf("root %s: %w", root, err)
		}
		s.add(a)
	}
	s.whole = s.roots
	s.cwd = startCwd(o.Cwd, s.roots)
	s.cwd = s.areas.canonical(s.cwd)
	return s.Readable(o.Readable...), nil
}

// add takes a root in. The same directory twice is one root with two spellings.
func (s *Space) add(a *area) {
	if have, ok := s.areas[key(a.path)]; ok && have.path == a.path {
		_ = a.close() // the first handle serves
		s.areas = s.areas.with(have, a.spelled)
		return
	}
	s.roots = append(s.roots, a.path)
	s.areas = s.areas.with(a, a.path, a.spelled)
}

// startCwd is where relative paths start: what was asked for, the first root, or the process's own directory, in
// which case nothing is inside anyway.
func startCwd(asked string, roots []string) string {
	if filepath.IsAbs(asked) {
		return filepath.Clean(asked)
	}
	if len(roots) > 0 {
		return roots[0]
	}
	if wd, err := os.Getwd(); err == nil {
		return wd
	}
	return string(filepath.Separator)
}

// Close releases the handles; Open then fails with os.ErrClosed, in every copy. Places that were handed out stay
// usable.
func (s *Space) Close() error {
	var first error
	for _, a := range s.areas.all() {
		if err := a.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// At returns the Space with another cwd, sharing everything else. cwd must be absolute; it is not looked at. A cwd
// that is not absolute changes nothing.
func (s *Space) At(cwd string) *Space {
	c := *s
	if filepath.IsAbs(cwd) {
		c.cwd = s.areas.canonical(filepath.Clean(cwd))
	}
	return &c
}

// Readable returns the Space with further areas that may be read and never changed. dirs are absolute and need not
// exist yet; what is not absolute is left out. Where such a directory lies inside a root, it is still never changed.
func (s *Space) Readable(dirs ...string) *Space {
	c := *s
	for _, dir := range dirs {
		if filepath.IsAbs(dir) {
			a := readableArea(dir)
			c.areas = c.areas.with(a, a.path, a.spelled)
		}
	}
	return &c
}

// Writable returns the Space with one file outside the roots that may be read, changed and created: the plan file. What
// stands beside it stays outside. file is absolute and its directory exists; otherwise nothing is added, and nothing
// either for a file inside a root. A link in its place leads nowhere.
func (s *Space) Writable(file string) *Space {
	c := *s
	a := fileArea(file)
	if !filepath.IsAbs(file) || a.path == filepath.Dir(a.path) {
		return &c
	}
	if in, _, ok := s.areas.find(a.path); !ok || in.readOnly {
		c.areas = c.areas.with(a, a.path, a.spelled)
	}
	return &c
}

// ReadableFile is Writable for a file that may only be read.
func (s *Space) ReadableFile(file string) *Space {
	c := *s
	a := fileArea(file)
	if !filepath.IsAbs(file) || a.path == filepath.Dir(a.path) {
		return &c
	}
	if _, _, ok := s.areas.find(a.path); !ok {
		a.readOnly = true
		c.areas = c.areas.with(a, a.path, a.spelled)
	}
	return &c
}

// Roots returns the canonical roots, in the order given. The slice is the caller's afterwards.
func (s *Space) Roots() []string { return slices.Clone(s.roots) }

// Whole returns the roots that the Space was opened with, canonical, whatever a Narrowing leaves of them. The slice is
// the caller's afterwards.
func (s *Space) Whole() []string { return slices.Clone(s.whole) }

// Cwd returns where relative paths start. It may have vanished from the disk since.
func (s *Space) Cwd() string { return s.cwd }

// Rel returns path as it is shown: relative to the cwd when it is inside it, else unchanged.
func (s *Space) Rel(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	rel, err := filepath.Rel(s.cwd, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

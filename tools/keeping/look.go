package keeping

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"codehand/filestate/journal"
	"codehand/tools/bash"
	"codehand/tools/git"
	"codehand/tools/git/changes"
	"codehand/tools/guarded"
	"codehand/tools/session"
	"codehand/tools/wording"
)

const (
	maxBytes   = 512 << 20 // that are kept for one command
	maxFiles   = 50_000    // likewise
	maxMatches = 10_000    // of one pattern
	maxIgnored = 5_000     // names that are looked at for secrets, in what git ignores

	// of what a command perhaps changes, and of single files that git ignores
	maxPerhapsFile  = 1 << 20
	maxPerhapsBytes = 16 << 20
	maxPerhapsFiles = 500
)

// errNot ends a look: something cannot be kept. Its text is a clause.
type errNot string

func (e errNot) Error() string { return string(e) }

// look says why not all that a command may discard can be kept, a clause; "": it can.
func look(s *session.State, trees *changes.Trees, losses []bash.Loss) (why string) {
	if _, err := collect(s, trees, losses); err != nil {
		return err.Error()
	}
	return ""
}

// A file is one that is to be kept.
type file struct {
	path  string
	blob  git.OID // what git tracks there; the zero OID: nothing
	spare bool    // git ignores it, so the command goes on where it cannot be kept
}

// A collector finds the files that are to be kept. It is for one look.
type collector struct {
	space *session.State
	trees *changes.Trees
	roots []string
	most  int64 // bytes

	files   []file
	bytes   int64
	seen    map[string]bool
	owns    map[string]*own // by top
	ignored int             // names looked at in what git ignores
	unkept  []string        // names that git ignores, in what is discarded
	stashes []stash

	perhaps      bool // what is found now is only kept if it is little
	opaque       bool // and the command's text says nothing of it
	perhapsFiles int
	perhapsBytes int64
}

// A stash is that of a repository.
type stash struct {
	dir     string
	commits []string
}

// An own is what only a work tree has.
type own struct {
	changes.Own
	ok bool
}

// collect finds all files that are to be kept.
func collect(s *session.State, trees *changes.Trees, losses []bash.Loss) (*collector, error) {
	c := &collector{space: s, trees: trees, roots: s.Space.Roots(), most: min(maxBytes, s.Files.Room()/2),
		seen: make(map[string]bool), owns: make(map[string]*own)}
	if len(losses) > 0 && c.off() {
		return c, errNot("nothing is kept of it, since the journal of commands is off")
	}
	for _, l := range losses {
		if err := c.loss(l); err != nil {
			return c, err
		}
	}
	return c, nil
}

// off says that nothing can be kept.
func (c *collector) off() bool { return c.space.Files.Room() == 0 || c.trees == nil }

// loss finds what is to be kept of one place.
func (c *collector) loss(l bash.Loss) error {
	c.perhaps = l.Perhaps
	if l.Path == "" {
		if l.Deep {
			return errNot("what it discards is not in the text, so it cannot be kept")
		}
		for _, root := range c.roots {
			if err := c.dir(root, false); err != nil {
				return err
			}
		}
		return nil
	}
	at := l.Path
	switch {
	case at == "~" || strings.HasPrefix(at, "~/"):
		at = c.space.Space.Abs(at)
	case !filepath.IsAbs(at):
		at = c.space.Space.Cwd() + "/" + at // not cleaned: what stands before a `..` may be a link
	}
	if !l.Glob {
		return c.place(at, l)
	}
	all, err := filepath.Glob(at)
	if err != nil || len(all) > maxMatches {
		return errNot("what " + shown(l.Path) + " stands for cannot be listed, nor kept")
	}
	for _, one := range all {
		if err := c.place(one, l); err != nil {
			return err
		}
	}
	return nil
}

// place finds what is to be kept of a file, a directory or the work tree around it.
func (c *collector) place(at string, l bash.Loss) error {
	real, err := filepath.EvalSymlinks(at)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil // nothing is there
	case err != nil:
		return errNot(shown(at) + " cannot be read, nor kept")
	case !c.inside(real):
		if link, err := os.Lstat(at); err == nil && link.Mode()&fs.ModeSymlink != 0 || temporary(real) {
			return nil // the link goes, or its target lies where the command may not write
		}
		return errNot(shown(at) + " lies outside of the roots, where nothing is kept")
	}
	info, err := os.Lstat(real)
	if err != nil || l.Named && !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it is gone by now, or has no content of its own
	}
	if l.Stash {
		commits, lasting := c.trees.Stashes(real)
		if !lasting {
			return errNot("git may remove at once what was in that stash")
		}
		c.stashes = append(c.stashes, stash{real, commits})
		return nil
	}
	if l.Tree {
		own := c.own(real)
		if own.Top == "" {
			return nil // git finds no repository either
		}
		return c.tree(own, ".", l.Deep)
	}
	for _, part := range strings.Split(real, "/") {
		if part == ".git" {
			return errNot(shown(at) + " is part of a git repository, which nothing keeps")
		}
	}
	switch {
	case info.IsDir():
		return c.dir(real, l.Deep)
	case info.Mode().IsRegular():
		own := c.own(filepath.Dir(real))
		if own.Top == "" {
			return c.file(real, info, git.OID{})
		}
		rel, err := filepath.Rel(own.Top, real)
		if err != nil {
			return err
		}
		return c.tree(own, filepath.ToSlash(rel), l.Deep)
	}
	return nil // it has no content
}

// temporary says whether a path is where each command has a directory of its own.
func temporary(at string) bool {
	return strings.HasPrefix(at, "/tmp/") || strings.HasPrefix(at, "/var/tmp/") || at == bash.NullDevice
}

// inside says by its text whether a path without links lies in a root.
func (c *collector) inside(real string) bool {
	return slices.ContainsFunc(c.roots, func(root string) bool { return wording.Below(root, real) })
}

// own is what only the work tree around a directory has. Its Top is "" where there is none.
func (c *collector) own(dir string) *own {
	place, _ := git.Find(dir)
	if o := c.owns[place.Top]; o != nil {
		return o
	}
	found, ok := c.trees.Own(dir)
	o := &own{found, ok}
	c.owns[place.Top] = o
	return o
}

// dir finds what is to be kept below a directory; deep: repositories go as well.
func (c *collector) dir(dir string, deep bool) error {
	own := c.own(dir)
	if own.Top == "" && c.perhaps {
		return nil // all of it would count, before each command
	}
	if own.Top == "" {
		return c.plain(dir, deep)
	}
	rel, err := filepath.Rel(own.Top, dir)
	if err != nil {
		return err
	}
	return c.tree(own, filepath.ToSlash(rel), deep)
}

// plain finds the files of a directory of which git knows nothing.
func (c *collector) plain(dir string, deep bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errNot(c.name(dir) + " cannot be read, nor kept")
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }) {
		return c.dir(dir, deep)
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = c.plain(at, deep)
		} else if info, gone := e.Info(); gone == nil && info.Mode().IsRegular() {
			err = c.file(at, info, git.OID{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tree finds what only a work tree has of a name in it, "." is all of it. deep: the name itself goes, with
// repositories in it.
func (c *collector) tree(own *own, name string, deep bool) error {
	if !own.ok {
		return errNot("the files of " + c.name(own.Top) + " cannot be compared with git now, so they cannot be kept")
	}
	if deep && name == "." && c.inside(own.Top) {
		return errNot(c.name(own.Top) + " is a git repository, which nothing keeps")
	}
	for _, f := range own.Files {
		if !within(name, f.Name) {
			continue
		}
		at := filepath.Join(own.Top, filepath.FromSlash(f.Name))
		if !c.inside(at) {
			continue // the kernel keeps it
		}
		info, err := os.Lstat(at)
		if err != nil || !info.Mode().IsRegular() {
			continue // it has changed since, which is not the command's
		}
		if err := c.file(at, info, f.Blob); err != nil {
			return err
		}
	}
	for _, covered := range own.Covered {
		if c.perhaps {
			c.perhapsCovered(own, name, covered)
			continue
		}
		at := filepath.Join(own.Top, filepath.FromSlash(covered))
		whole := within(name, covered)
		switch {
		case whole:
		case within(covered, name):
			at = filepath.Join(own.Top, filepath.FromSlash(name))
		default:
			continue
		}
		if whole && c.spare(at) {
			continue
		}
		if whole && covered != name {
			c.unkept = append(c.unkept, at)
		}
		if err := c.covered(at, deep); err != nil {
			return err
		}
	}
	return nil
}

// perhapsCovered keeps a file that git ignores, and that nothing says goes, if it is little: of a script or a build
// only a secret, since the rest is mostly what they make.
func (c *collector) perhapsCovered(own *own, name, covered string) {
	at := filepath.Join(own.Top, filepath.FromSlash(covered))
	base := filepath.Base(at)
	if !within(name, covered) || c.opaque && !guarded.Secret(base) && guarded.Protected(base) == "" {
		return
	}
	if !c.spare(at) {
		c.unkept = append(c.unkept, at)
	}
}

// within says whether a name of a work tree is another one, or lies below it.
func within(above, name string) bool {
	return above == "." || name == above || strings.HasPrefix(name, above+"/")
}

// spare keeps a file that git ignores by its own name, and not with all of a directory, if it is little.
func (c *collector) spare(at string) bool {
	info, err := os.Lstat(at)
	if err != nil || !info.Mode().IsRegular() || !c.inside(at) || !c.little(info) {
		return false
	}
	was := len(c.files)
	if c.file(at, info, git.OID{}) != nil {
		return false
	}
	for i := range c.files[was:] {
		c.files[was+i].spare = !secret(info)
	}
	return true
}

// covered finds what is to be kept of a name of which a work tree knows nothing.
func (c *collector) covered(at string, deep bool) error {
	if !c.inside(at) {
		return nil
	}
	info, err := os.Lstat(at)
	if err != nil {
		return nil //nolint:nilerr // it is gone by now
	}
	if !info.IsDir() {
		return c.secret(at, info)
	}
	if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
		if deep {
			return errNot(c.name(at) + " is a git repository of its own, which nothing keeps")
		}
		return c.dir(at, false)
	}
	return c.secrets(at)
}

// secrets finds the secrets in a directory that git ignores, the outer ones first.
func (c *collector) secrets(dir string) error {
	for dirs := []string{dir}; len(dirs) > 0; {
		at := dirs[0]
		dirs = dirs[1:]
		entries, err := os.ReadDir(at)
		if err != nil {
			return errNot(c.name(at) + " cannot be read, nor kept")
		}
		for _, e := range entries {
			if c.ignored++; c.ignored > maxIgnored {
				return nil // the rest is made by programs
			}
			one := filepath.Join(at, e.Name())
			if e.IsDir() {
				dirs = append(dirs, one)
			} else if info, gone := e.Info(); gone == nil {
				if err := c.secret(one, info); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// secret keeps a file that git ignores if its name is one of a secret or protected.
func (c *collector) secret(at string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || !secret(info) {
		return nil
	}
	return c.file(at, info, git.OID{})
}

func secret(info fs.FileInfo) bool {
	return guarded.Secret(info.Name()) || guarded.Protected(info.Name()) != ""
}

// file notes a file that is to be kept.
func (c *collector) file(at string, info fs.FileInfo, blob git.OID) error {
	if c.seen[at] {
		return nil
	}
	if c.perhaps && !c.little(info) {
		return nil
	}
	c.seen[at] = true
	if info.Size() > journal.MaxKept {
		return errNot(fmt.Sprintf("%s has %d MiB: files over %d MiB are not kept", c.name(at), info.Size()>>20,
			journal.MaxKept>>20))
	}
	if c.bytes += info.Size(); c.bytes > c.most {
		return errNot(fmt.Sprintf("the files that only this directory has are over %d MiB together, too much to keep",
			c.most>>20))
	}
	if len(c.files) == maxFiles {
		return errNot(fmt.Sprintf("there are over %d files that only this directory has, too many to keep", maxFiles))
	}
	f, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errNot(c.name(at) + " cannot be read, nor kept")
	}
	_ = f.Close() // only tried
	c.files = append(c.files, file{path: at, blob: blob})
	return nil
}

// little says whether a file, with those before it, is little enough to be kept unasked.
func (c *collector) little(info fs.FileInfo) bool {
	if info.Size() > maxPerhapsFile || c.perhapsBytes+info.Size() > maxPerhapsBytes ||
		c.perhapsFiles == maxPerhapsFiles {
		return false
	}
	c.perhapsFiles, c.perhapsBytes = c.perhapsFiles+1, c.perhapsBytes+info.Size()
	return true
}

// name is how a path is told.
func (c *collector) name(at string) string { return shown(c.space.Space.Rel(at)) }

func shown(at string) string { return wording.Clip(wording.OneLine(at), 100) }

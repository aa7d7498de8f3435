package git

import (
	"os"
	"path/filepath"
	"strings"
)

// A Place is where the parts of a repository with a work tree are; all paths are absolute and without links.
type Place struct {
	Top    string // directory of the work tree
	Dir    string // of this work tree's own files, as the index
	Common string // of what linked work trees share, as objects
}

// Find returns the repository that git finds from an absolute directory, if its files are below the top of the work
// tree, or are those of a linked work tree or a submodule that the repository names as its own. It asks for less than
// git does: a place that looks like a repository and is none has no index that can be read. Not ok: Top is where a
// `.git` is that leads to no such repository, "" where there is none.
func Find(dir string) (p Place, ok bool) {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Place{}, false
	}
	for {
		dot := filepath.Join(at, ".git")
		if _, err := os.Stat(dot); err == nil {
			if p, ok = placeOf(at, dot); !ok {
				p = Place{Top: at}
			}
			return p, ok
		}
		up := filepath.Dir(at)
		if up == at {
			return Place{}, false
		}
		at = up
	}
}

func placeOf(top, dot string) (Place, bool) {
	dir, ok := gitDir(top, dot)
	if !ok {
		return Place{}, false
	}
	p := Place{Top: top, Dir: dir, Common: dir}
	if text, err := ReadSmall(filepath.Join(dir, "commondir"), maxConfig); err == nil {
		if p.Common, err = filepath.EvalSymlinks(below(dir, string(text))); err != nil {
			return Place{}, false
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return Place{}, false
	}
	return p, within(p.Dir, top) && within(p.Common, top) || p.linked() || p.submodule()
}

// gitDir returns the directory to which `.git` leads, without links.
func gitDir(top, dot string) (string, bool) {
	info, err := os.Stat(dot)
	if err != nil {
		return "", false
	}
	if !info.IsDir() {
		text, err := ReadSmall(dot, maxConfig)
		name, ok := strings.CutPrefix(string(text), "gitdir: ")
		if err != nil || !ok {
			return "", false
		}
		dot = below(top, name)
	}
	dir, err := filepath.EvalSymlinks(dot)
	return dir, err == nil
}

// Leads returns where git looks for a repository that it finds by a `.git`: the directory to which that leads, by a
// text or a link, and the one that shares its objects, configuration and hooks with it, which is the same for most.
// Both are absolute and without links. Not ok: it leads to no directory.
func Leads(dot string) (dir, common string, ok bool) {
	dir, ok = gitDir(filepath.Dir(dot), dot)
	if !ok {
		return "", "", false
	}
	common = dir
	if text, err := ReadSmall(filepath.Join(dir, "commondir"), maxConfig); err == nil {
		if real, err := filepath.EvalSymlinks(below(dir, string(text))); err == nil {
			common = real
		}
	}
	return dir, common, true
}

// linked says whether the repository names this work tree as one that git worktree added. Who can write only to the
// work tree cannot bring that about.
func (p Place) linked() bool {
	text, err := ReadSmall(filepath.Join(p.Dir, "gitdir"), maxConfig)
	return err == nil && filepath.Dir(p.Dir) == filepath.Join(p.Common, "worktrees") &&
		sameFile(below(p.Dir, string(text)), filepath.Join(p.Top, ".git"))
}

// submodule says whether the repository names this directory as its work tree, as git submodule does.
func (p Place) submodule() bool {
	text, err := ReadSmall(filepath.Join(p.Dir, "config"), maxConfig)
	if err != nil || p.Common != p.Dir {
		return false
	}
	named := ""
	configKeys(text, func(key, value string) bool {
		if isWorktree(key) { // the last one counts
			named = value
		}
		return true
	})
	return named != "" && sameFile(below(p.Dir, named), p.Top)
}

// LinkedCommon returns the repository of a linked work tree at top, which lies outside of it; "": top is none. A file
// of the work tree alone opens nothing: the repository must be one and know this work tree, and what says so must not
// lie in a directory of written, in which others than its owner may have made it up. There it opens at most another
// directory of the same one that goes by the name of a repository. All of written are without links.
func LinkedCommon(top string, written []string) string {
	dot := filepath.Join(top, ".git")
	if info, err := os.Lstat(dot); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	p, ok := placeOf(top, dot)
	if real := real(top); !ok || !p.linked() || within(p.Dir, real) || within(p.Common, real) {
		return "" // the author of the work tree could write anything there
	}
	var g Inspector
	if p.Common == p.Dir || !g.isRepository(p.Common) {
		return ""
	}
	for _, dir := range written {
		if inside := within(p.Common, dir); inside != within(p.Dir, dir) ||
			inside && !strings.HasSuffix(p.Common, ".git") {
			return ""
		}
	}
	return p.Common
}

// within says whether a path is dir or below it; both are without links.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

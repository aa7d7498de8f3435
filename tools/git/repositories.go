package git

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/filestate"
)

// An Inspector says whether git only reads when it starts somewhere, and only what the session may read. It finds
// repositories as git does. Nothing of what it reads is shown but names of keys and of files. It is good for one
// question.
type Inspector struct {
	Files  *filestate.Ledger      // opens without blocking
	Inside func(path string) bool // an absolute path leads into a root; nil: every path does
	Ruled  func(path string) bool // a rule is about reading it; nil: there are no rules
	Above  bool                   // the person at the terminal also owns a repository in which a root stands
	cwd    string                 // absolute
	dirs   int                    // directories of submodules that were visited
	files  int                    // entries of directories of git's that were visited
	owned  []string               // directories outside of the roots that git may read all the same
	walked map[string]bool        // directories of git's whose links were looked at
}

// A repository is one as git finds it.
type repository struct {
	dir    string // canonical: `.git`, or where that leads
	common string // canonical: what it shares with other work trees; else dir
	top    string // below which its files are
}

// ReadsOnly says why git may change something, start a program, or read files that the session may not read, when it
// starts in one of dirs; "": it only reads. Relative ones are below cwd, which is absolute.
func (g *Inspector) ReadsOnly(cwd string, dirs []string) string {
	g.cwd = cwd
	for _, dir := range dirs {
		r, why := g.from(dir)
		if why == "" && r != nil {
			why = g.configured(r)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// ShowsMore says why git, when it starts in one of dirs, may show files that the session may not read; "": what its
// repository tracks lies below the roots.
func (g *Inspector) ShowsMore(cwd string, dirs []string) string {
	g.cwd = cwd
	for _, dir := range dirs {
		if r, why := g.from(dir); why != "" || r != nil && !g.allows(r.top) {
			return cmp.Or(why, "the repository has files outside of the roots")
		}
	}
	return ""
}

// abs is a path as seen from where the command line starts.
func (g *Inspector) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(g.cwd, path)
}

// from returns the repository that git finds from dir: in `.git` or in the directory itself, there or further up. nil:
// there is none.
func (g *Inspector) from(dir string) (*repository, string) {
	at, err := filepath.EvalSymlinks(g.abs(dir))
	if err != nil {
		return nil, "its directory cannot be read"
	}
	above := g.Above && g.allows(at)
	for {
		for _, place := range []string{filepath.Join(at, ".git"), at} {
			if r, why := g.at(place, above && !g.allows(at)); r != nil || why != "" {
				return r, why
			}
		}
		up := filepath.Dir(at)
		if up == at {
			return nil, ""
		}
		at = up
	}
}

// at returns the repository at one place where one may be, and why git must not read it. nil: git would look further.
// above: it is above the roots, and the session may read it.
func (g *Inspector) at(place string, above bool) (*repository, string) {
	info, err := os.Stat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ""
	case err != nil:
		return nil, unreadable
	case info.IsDir() && !g.isRepository(place):
		return nil, ""
	}
	dir := place
	if to := real(place); to != place && !g.allows(to) && !above {
		return nil, leads(place, to)
	}
	if !info.IsDir() {
		text, err := g.read(real(place))
		name, ok := strings.CutPrefix(string(text), "gitdir: ")
		if err != nil || !ok {
			return nil, unreadable
		}
		if dir = below(filepath.Dir(place), name); !g.isRepository(dir) {
			return nil, unreadable
		}
	}
	r := &repository{dir: real(dir), top: place}
	if filepath.Base(place) == ".git" { // else it is bare
		r.top = filepath.Dir(place)
	}
	r.common = real(g.common(r.dir))
	return r, g.may(r, place, above)
}

// may says why git must not be let read the repository to which place leads; "": its files are in the roots, or its own
// files, which only its owner may write, say that it belongs to place.
func (g *Inspector) may(r *repository, place string, above bool) string {
	switch {
	case g.allows(r.dir) && g.allows(r.common):
	case g.allows(r.dir):
		return leads(filepath.Join(r.dir, "commondir"), r.common)
	case above, g.pointsBack(r, place):
		g.owned = append(g.owned, r.dir, r.common)
	default:
		return leads(place, r.dir)
	}
	for _, dir := range []string{r.dir, r.common} {
		if why := g.links(dir); why != "" {
			return why
		}
	}
	return ""
}

// pointsBack says whether a repository outside of the roots names the work tree at place as its own: git worktree add
// notes it in `gitdir`, git submodule in core.worktree. Who can write only to place cannot bring that about.
func (g *Inspector) pointsBack(r *repository, place string) bool {
	if text, err := g.read(filepath.Join(r.dir, "gitdir")); err == nil && r.common != r.dir {
		return real(below(r.dir, string(text))) == real(place) &&
			filepath.Dir(r.dir) == filepath.Join(r.common, "worktrees")
	}
	text, err := g.read(filepath.Join(r.dir, "config"))
	found := false
	configKeys(text, func(key, value string) bool {
		if isWorktree(key) { // the last one counts
			found = real(below(r.dir, value)) == real(r.top)
		}
		return true
	})
	return err == nil && found && r.common == r.dir
}

// allows says whether git may read what is at a canonical path.
func (g *Inspector) allows(path string) bool {
	if g.Inside == nil || g.Inside(path) {
		return true
	}
	for _, dir := range g.owned {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

const unreadable = "the repository's configuration cannot be read"

func leads(from, to string) string {
	if from == to {
		return clip(from) + " is outside of the roots"
	}
	return clip(from) + " leads to " + clip(to) + ", which is outside of the roots"
}

// isRepository says whether git takes dir for one (git v2.39, setup.c: is_git_directory). What git alone takes for one
// has no HEAD that can be understood, and then it stops with an error.
func (g *Inspector) isRepository(dir string) bool {
	link, err := os.Readlink(filepath.Join(dir, "HEAD"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err == nil:
		return strings.HasPrefix(link, "refs/")
	}
	head, err := g.read(filepath.Join(dir, "HEAD"))
	if err != nil {
		return false
	}
	ref, symbolic := strings.CutPrefix(string(head), "ref:")
	if symbolic && !strings.HasPrefix(strings.TrimLeft(ref, " \t\n\r"), "refs/") ||
		!symbolic && (len(head) < 40 || strings.Trim(string(head[:40]), "0123456789abcdefABCDEF") != "") {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(g.common(dir), name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// common is the directory that a linked worktree shares with the others.
func (g *Inspector) common(dir string) string {
	if text, err := g.read(filepath.Join(dir, "commondir")); err == nil {
		return below(dir, string(text))
	}
	return dir
}

// below reads a path that a file of git's names: one line, up to a NUL, relative to dir or absolute. What the path has
// of `..` stays, since git goes there by the links before it.
func below(dir, text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.TrimRight(text, "\r\n")
	if filepath.IsAbs(text) {
		return text
	}
	return dir + string(filepath.Separator) + text
}

// real is a path without links; of what is not there, as it is written.
func real(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return filepath.Clean(path)
}

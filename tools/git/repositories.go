package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate"
)

// An inspector looks for what makes git start programs. It finds repositories as git does, so also above the roots,
// where git looks, too. Nothing of what it reads is shown but the name of a key.
type inspector struct {
	files *filestate.Ledger      // opens without blocking
	left  int                    // directories that may still be visited
	ruled func(path string) bool // a rule is about it; nil: what git tracks does not matter
}

// RunsPrograms says why git is not only reading when it is started in one of dirs; "": it is. Relative ones are below
// cwd, which is absolute.
func RunsPrograms(files *filestate.Ledger, cwd string, dirs []string) string {
	g := inspector{files: files, left: maxModules}
	return g.all(cwd, dirs)
}

// all is from for each of dirs.
func (g *inspector) all(cwd string, dirs []string) string {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		if why := g.from(dir); why != "" {
			return why
		}
	}
	return ""
}

// from looks at the repository that git finds from dir: in `.git` or in the directory itself, there or further up.
func (g *inspector) from(dir string) string {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "its directory cannot be read"
	}
	for {
		for _, place := range []string{filepath.Join(at, ".git"), at} {
			if found, why := g.at(place); found || why != "" {
				return why
			}
		}
		up := filepath.Dir(at)
		if up == at {
			return ""
		}
		at = up
	}
}

// at looks at one place where a repository may be. found: git would look no further.
func (g *inspector) at(place string) (found bool, why string) {
	info, err := os.Stat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, ""
	case err != nil:
		return false, unreadable
	case info.IsDir() && g.isRepository(place):
		return true, g.looked(place, filepath.Dir(place))
	case info.IsDir():
		return false, ""
	}
	text, err := g.read(place)
	dir, ok := strings.CutPrefix(string(text), "gitdir: ")
	if err != nil || !ok {
		return false, unreadable
	}
	if dir = below(filepath.Dir(place), dir); !g.isRepository(dir) {
		return false, unreadable
	}
	return true, g.looked(dir, filepath.Dir(place))
}

// looked is what is wrong with the repository in dir, whose files are below top.
func (g *inspector) looked(dir, top string) string {
	if g.ruled != nil {
		return g.tracks(dir, top)
	}
	return g.configured(dir, top)
}

const unreadable = "the repository's configuration cannot be read"

// isRepository says whether git takes dir for one (git v2.39, setup.c: is_git_directory). What git alone takes for one
// has no HEAD that can be understood, and then it stops with an error.
func (g *inspector) isRepository(dir string) bool {
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
func (g *inspector) common(dir string) string {
	if text, err := g.read(filepath.Join(dir, "commondir")); err == nil {
		return below(dir, string(text))
	}
	return dir
}

// below reads a path that a file of git's names: one line, relative to dir or absolute.
func below(dir, text string) string {
	text = strings.TrimRight(text, "\r\n")
	if filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(dir, text)
}

// ShowsRuled says why git, started in dirs, must not show contents of what is in places without a question; "": it
// may. ruled says whether a rule is about reading a file. It is about the files that git tracks now: what a rule closes
// and git does not track, as `.env` mostly, is no hindrance. What was tracked once and stands in the history only is
// not looked for.
func ShowsRuled(files *filestate.Ledger, cwd string, dirs, places []string, ruled func(path string) bool) string {
	places = slices.Clone(places)
	for i, place := range places {
		if !filepath.IsAbs(place) {
			place = filepath.Join(cwd, place)
		}
		if real, err := filepath.EvalSymlinks(place); err == nil {
			place = real
		}
		places[i] = place
	}
	g := inspector{files: files, left: maxModules, ruled: func(path string) bool {
		return slices.ContainsFunc(places, func(place string) bool {
			rel, err := filepath.Rel(place, path)
			return err == nil && filepath.IsLocal(rel)
		}) && ruled(path)
	}}
	return g.all(cwd, dirs)
}

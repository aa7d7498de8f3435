package confine

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/bash/programs"
	"codehand/tools/git"
)

// An Obeyed is a file or directory in the roots that git obeys since its configuration says so, and that has no
// protected name.
type Obeyed struct {
	Path string
	Key  string // of git's configuration, as core.hooksPath
	Name string // the protected name that it counts as: what opens that opens it
}

// AllObeyed are all of them in some roots.
type AllObeyed []Obeyed

// Find returns the one that an absolute path is, or lies below. Letter case does not count.
func (all AllObeyed) Find(path string) (o Obeyed, found bool) {
	path = filepath.Clean(path)
	i := slices.IndexFunc(all, func(o Obeyed) bool {
		n := len(o.Path)
		return len(path) >= n && strings.EqualFold(path[:n], o.Path) && (len(path) == n || os.IsPathSeparator(path[n]))
	})
	if i < 0 {
		return Obeyed{}, false
	}
	return all[i], true
}

// obeyedBeside returns what git obeys in roots and may lie at paths, as its configuration says now: a person decides
// about a change of it, as of what has a protected name. Repositories around the paths are found from there. Those
// elsewhere in the roots are the ones that the last look found, which each command takes twice: a walk through large
// roots would cost more than most calls.
func (c *Confiner) obeyedBeside(roots, paths []string) (all AllObeyed) {
	f := c.finder(nil)
	dots := dotsAround(paths)
	for _, root := range roots {
		c.mu.Lock()
		known, looked := c.places[root]
		c.mu.Unlock()
		if !looked {
			found, _ := f.protectedIn(root) // no command starts in what is too large
			known = found.places()
		}
		dots = append(dots, known...)
	}
	for _, dot := range sorted(dots) {
		dir, common, _ := git.Leads(dot)
		if strictlyIn(dot, roots) { // what lies outside of them keeps its mode
			dir, common = f.leads(dot)
		}
		all = append(all, f.obeyedFrom(dot, dir, common)...)
	}
	return all
}

// dotsAround returns what leads to the repositories around paths: each `.git`, and directories that are one without.
func dotsAround(paths []string) (dots []string) {
	seen := map[string]bool{}
	for _, path := range paths {
		for dir := filepath.Dir(path); filepath.IsAbs(dir) && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			if dot := filepath.Join(dir, ".git"); exists(dot) {
				dots = append(dots, dot)
			}
			if exists(filepath.Join(dir, "HEAD")) && isBare(dir) {
				dots = append(dots, dir)
			}
		}
	}
	return dots
}

// maxPlaces is of how many roots is kept where their repositories are. Agents have work trees of their own.
const maxPlaces = 100

// keepPlaces notes where a look found the repositories of a root.
func (f *finder) keepPlaces(root string, places []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.places) >= maxPlaces {
		clear(f.places)
	}
	f.places[root] = places
}

// Obeyed returns what git obeys in roots as they are now and may lie at paths, of which a person decides; nil knows of
// nothing.
func (s *Session) Obeyed(roots, paths []string) AllObeyed {
	if s == nil {
		return nil
	}
	return s.Confiner.obeyedBeside(roots, paths)
}

// The protected names as which counts what git obeys.
const (
	asConfig = ".git/config"
	asHooks  = ".git/hooks/**"
)

// obeyedFrom is obeyedBy for a `.git`, or a directory that is a repository without one, and what it leads to.
func (f *finder) obeyedFrom(dot, dir, common string) AllObeyed {
	if dir == "" {
		return nil
	}
	top := filepath.Dir(dot)
	if dir == dot && filepath.Base(dot) != ".git" {
		top = dot // it has no work tree
	}
	return f.obeyedBy(dir, common, top)
}

// obeyedBy returns what in the roots the configuration of a repository, or the person's own, includes, which files the
// programs are that it makes git start, and where it has hooks. dir is the work tree's part of the repository, common
// the shared one, and top the work tree.
func (f *finder) obeyedBy(dir, common, top string) (all AllObeyed) {
	config, hooks := f.name(asConfig) != "", f.name(".git/hooks") != ""
	add := func(path, key, name string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(top, path)
		}
		for _, at := range []string{filepath.Clean(path), realOf(path)} {
			if !slices.ContainsFunc(all, func(o Obeyed) bool { return o.Path == at }) && f.unnamed(at, common, top) {
				all = append(all, Obeyed{at, key, name})
			}
		}
	}
	var files []string
	if f.o.Home != "" {
		files = append(files, filepath.Join(f.o.Home, ".gitconfig"), filepath.Join(f.o.Home, ".config/git/config"))
	}
	files = append(files, filepath.Join(common, "config"), filepath.Join(dir, worktreeConfig))
	included, _ := git.EachSetting(f.o.Home, files, func(key, value string) { // what can be read counts
		switch {
		case strings.EqualFold(key, "core.hooksPath"):
			if hooks {
				add(git.InHome(f.o.Home, value), "core.hooksPath", asHooks)
			}
		case config && git.KeyStarts(key):
			for _, path := range f.started(value, top) {
				add(path, key, asConfig)
			}
		}
	})
	if config {
		for _, path := range included {
			add(path, "include.path", asConfig)
		}
	}
	return all
}

// unnamed says whether a path lies in the roots, holds neither a root nor the repository or work tree, and has no
// protected name.
func (f *finder) unnamed(path, repository, top string) bool {
	i := slices.IndexFunc(f.o.Roots, func(root string) bool { return within(path, root) })
	if i < 0 || within(top, path) || within(repository, path) ||
		slices.ContainsFunc(f.o.Roots, func(root string) bool { return within(root, path) }) {
		return false
	}
	rel, _ := filepath.Rel(f.o.Roots[i], path) // it lies below
	return f.name(filepath.ToSlash(rel)) == ""
}

// realOf is a path without links, also where there is nothing at its end.
func realOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(real, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// computed is what a command line has before a path where the shell finds the directory: aliases ask git for the top
// of the work tree.
var computed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?:\\$\\([^()]*\\)|`[^`]*`|\\$\\{[^{}]*\\}|\\$\\w+)\"?/")
})

// started returns the files that a command line of git's configuration starts, or gives to a program with a path of
// their own: a script that an interpreter runs, or a file that says what a program does. A name alone is one only
// behind an interpreter, so that an alias which shows the README keeps no command from changing that.
func (f *finder) started(line, top string) (paths []string) {
	line, _ = strings.CutPrefix(line, "!")
	interpreted := false
	for i, word := range words(computed().ReplaceAllString(line, "./")) {
		if strings.HasPrefix(word, "-") {
			continue
		}
		path := git.InHome(f.o.Home, word)
		if !filepath.IsAbs(path) {
			path = filepath.Join(top, path)
		}
		slash := strings.ContainsAny(word, "/"+string(filepath.Separator))
		info, err := os.Stat(path)
		is := err == nil && info.Mode().IsRegular() && (slash || interpreted)
		if will := err != nil && slash && i == 0 && !strings.Contains(word, "://"); (is || will) && !installed(path, top) {
			paths = append(paths, path)
		}
		program := programs.Of(filepath.Base(word))
		interpreted = program.Has("language") || program.Has("shell") || word == "." || word == "source"
	}
	return paths
}

// installed says whether a package manager put a file there, or made the directory: commands install anew, and what
// such a program loads lies beside it.
func installed(path, top string) bool {
	for dir := filepath.Dir(path); within(dir, top) && dir != top; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "node_modules" || exists(filepath.Join(dir, "pyvenv.cfg")) {
			return true
		}
	}
	return false
}

// words are those of a command line, as far as they matter here: what stands between quotes is one, and its parts are.
func words(line string) (all []string) {
	quote, from := rune(0), 0
	end := func(at int, quoted bool) {
		word := line[from:at]
		if word == "" {
			return
		}
		all = append(all, word)
		if quoted && strings.ContainsAny(word, " \t\n;|&") {
			all = append(all, words(word)...)
		}
	}
	for i, c := range line {
		switch {
		case quote != 0 && c == quote:
			end(i, true)
			quote, from = 0, i+1
		case quote != 0:
		case c == '"' || c == '\'':
			end(i, false)
			quote, from = c, i+1
		case strings.ContainsRune(" \t\n;|&(){}<>=", c):
			end(i, false)
			from = i + 1
		}
	}
	end(len(line), quote != 0)
	return all
}

package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/filestate"
)

const (
	// maxConfig is how many bytes a configuration may have that is read here; real ones have a few hundred.
	maxConfig = 1 << 20
	// maxModules is how many directories are visited for the configurations of submodules.
	maxModules = 1000
)

// configured looks through all configurations of one repository, whose files are below top, and of its submodules, into
// which git goes for status and diff.
func (g *inspector) configured(dir, top string) string {
	common := g.common(dir)
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(common, "config.worktree"),
		filepath.Join(dir, "config.worktree")} {
		if why := g.config(file); why != "" {
			return why
		}
	}
	if why := g.named(dir, top); why != "" {
		return why
	}
	for _, modules := range []string{filepath.Join(common, "modules"), filepath.Join(dir, "modules")} {
		if why := g.modules(modules); why != "" {
			return why
		}
	}
	return g.submodules(dir, top)
}

// named looks at the files that the configuration of the repository in dir names and of which git shows lines: each is
// one of the work tree, whose files are below top, and no rule is about it.
func (g *inspector) named(dir, top string) string {
	common := g.common(dir)
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(common, "config.worktree"),
		filepath.Join(dir, "config.worktree")} {
		text, err := g.read(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unreadable
		}
		for _, name := range configFiles(text) {
			path := below(top, name)
			switch {
			// `~` is a home, `%` git's own place, and `:` a word of git's about the path.
			case !ownFile(top, path) || strings.ContainsAny(name[:min(1, len(name))], "~%:"):
				return "the repository's configuration has " + clip(name) + ", which is no file of it"
			case g.ruled != nil && g.ruled(path):
				return "the repository's configuration has " + clip(name) + ", which a rule covers"
			}
		}
	}
	return ""
}

// ownFile says whether path is a regular file below top, reached through no link and not of git's, or is not there.
func ownFile(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	if err != nil || !filepath.IsLocal(rel) || strings.EqualFold(strings.Split(filepath.ToSlash(rel), "/")[0], ".git") {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	info, statErr := os.Lstat(path)
	return err == nil && statErr == nil && real == path && info.Mode().IsRegular()
}

// submodules looks at the repositories that stand where the index has submodules, whether git made them or somebody
// else.
func (g *inspector) submodules(dir, top string) string {
	why := ""
	_, err := g.index(filepath.Join(dir, "index"), func(name string, submodule bool) bool {
		if submodule {
			if g.left--; g.left < 0 {
				why = "the repository has too many submodules to check"
			} else {
				_, why = g.at(filepath.Join(top, name, ".git"))
			}
		}
		return why != ""
	})
	if why == "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "the repository's index cannot be read"
	}
	return why
}

// modules looks for repositories below dir. Their core.worktree is git's own doing.
func (g *inspector) modules(dir string) string {
	if g.left--; g.left < 0 {
		return "the repository has too many submodules to check"
	}
	if g.isRepository(dir) {
		for _, name := range []string{"config", "config.worktree"} {
			if why := g.config(filepath.Join(dir, name), "core.worktree"); why != "" {
				return why
			}
		}
		return g.modules(filepath.Join(dir, "modules"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unreadable
	}
	for _, e := range entries {
		if e.IsDir() {
			if why := g.modules(filepath.Join(dir, e.Name())); why != "" {
				return why
			}
		}
	}
	return ""
}

// config looks at one file, which need not exist.
func (g *inspector) config(file string, except ...string) string {
	text, err := g.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil || len(text) > maxConfig {
		return unreadable
	}
	if key := configRuns(text, except...); key != "" {
		return "the repository's configuration has " + clip(key)
	}
	return ""
}

// read returns what is in a regular file, up to a byte more than may be used.
func (g *inspector) read(file string) ([]byte, error) {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	r, err := g.files.Open(context.Background(), filestate.File{Dir: dir, Name: filepath.Base(file), Path: file})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, maxConfig+1))
}

// maxIndex is how many bytes of a repository's index are read: some 600,000 files.
const maxIndex = 64 << 20

// tracks says why what git tracks in dir, whose files are below top, must not be shown; "": no rule is about it.
func (g *inspector) tracks(dir, top string) string {
	if why := g.named(dir, top); why != "" {
		return why
	}
	found, err := g.index(filepath.Join(dir, "index"),
		func(name string, _ bool) bool { return g.ruled(filepath.Join(top, name)) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "a rule names files, and the list of files in the repository cannot be read"
	case found:
		return "a rule covers a file of the repository; name other files after --"
	}
	return ""
}

// index is indexHas for a file.
func (g *inspector) index(file string, f func(name string, submodule bool) bool) (bool, error) {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return false, err
	}
	defer dir.Close()
	r, err := g.files.Open(context.Background(), filestate.File{Dir: dir, Name: filepath.Base(file), Path: file})
	if err != nil {
		return false, err
	}
	defer r.Close()
	return indexHas(io.NewSectionReader(r, 0, maxIndex), f)
}

// clip keeps a key short: a subsection may have any length.
func clip(key string) string {
	const most = 80
	if len(key) <= most {
		return key
	}
	return strings.ToValidUTF8(key[:most], "") + "…"
}

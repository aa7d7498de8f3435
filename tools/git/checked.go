package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate"
)

const (
	// maxConfig is how many bytes a configuration may have that is read here; real ones have a few hundred.
	maxConfig = 1 << 20
	// maxModules is how many directories are visited for the configurations of submodules.
	maxModules = 1000
)

// configured checks all configuration files of one repository and of its submodules, which git enters for status and
// diff.
func (g *Inspector) configured(r *repository) string {
	own := func(key, value string) bool { return isWorktree(key) && real(below(r.dir, value)) == real(r.top) }
	for _, file := range r.configs() {
		if _, why := g.config(file, own); why != "" {
			return why
		}
	}
	if why := g.named(r); why != "" {
		return why
	}
	for _, modules := range []string{filepath.Join(r.common, "modules"), filepath.Join(r.dir, "modules")} {
		if why := g.modules(modules); why != "" {
			return why
		}
	}
	return g.submodules(r)
}

// configs are the files of a repository's configuration, which need not exist.
func (r *repository) configs() []string {
	return []string{filepath.Join(r.common, "config"), filepath.Join(r.common, "config.worktree"),
		filepath.Join(r.dir, "config.worktree")}
}

func isWorktree(key string) bool { return strings.EqualFold(key, "core.worktree") }

// named looks at the files that the configuration of a repository names and of which git shows lines: each is one of
// its work tree, and no rule is about it.
func (g *Inspector) named(r *repository) (why string) {
	for _, file := range r.configs() {
		text, err := g.read(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unreadable
		}
		configKeys(text, func(key, name string) bool {
			path := below(r.top, name)
			switch {
			case strings.EqualFold(key, "mailmap.blob") && g.Ruled != nil:
				why = "the repository's configuration has mailmap.blob, which may show a file that a rule covers"
			case !slices.Contains(fileKeys, strings.ToLower(key)):
			// `~` is a home, `%` git's own place, and `:` a word of git's about the path.
			case !ownFile(r.top, path) || strings.ContainsAny(name[:min(1, len(name))], "~%:"):
				why = "the repository's configuration has " + clip(name) + ", which is no file of it"
			case g.Ruled != nil && g.Ruled(path):
				why = "the repository's configuration has " + clip(name) + ", which a rule covers"
			}
			return why == ""
		})
		if why != "" {
			return why
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

// submodules looks at the repositories that stand where the index has submodules, no matter whether git made them.
func (g *Inspector) submodules(r *repository) string {
	why := ""
	err := g.index(filepath.Join(r.dir, "index"), func(name string, submodule bool) bool {
		if submodule {
			if g.dirs++; g.dirs > maxModules {
				why = "the repository has too many submodules to check"
			} else {
				why = g.submodule(filepath.Join(r.top, name, ".git"))
			}
		}
		return why != ""
	})
	if why == "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "the repository's index cannot be read"
	}
	return why
}

func (g *Inspector) submodule(place string) string {
	r, why := g.at(place, false)
	if why == "" && r != nil {
		return g.configured(r)
	}
	return why
}

// modules looks for repositories below dir. Their core.worktree is git's own doing.
func (g *Inspector) modules(dir string) string {
	if g.dirs++; g.dirs > maxModules {
		return "the repository has too many submodules to check"
	}
	if g.isRepository(dir) {
		for _, name := range []string{"config", "config.worktree"} {
			text, why := g.config(filepath.Join(dir, name), func(key, _ string) bool { return isWorktree(key) })
			if why != "" {
				return why
			}
			if named := configFiles(text); len(named) > 0 {
				return "the configuration of a submodule has " + clip(named[0])
			}
		}
		if why := g.links(dir); why != "" {
			return why
		}
		return g.modules(filepath.Join(dir, "modules"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unreadable
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			return clip(at) + " is a link in place of a submodule's repository"
		case e.IsDir():
			if why := g.modules(at); why != "" {
				return why
			}
		}
	}
	return ""
}

// config looks at one file, which need not exist, and returns what is in it.
func (g *Inspector) config(file string, harmless func(key, value string) bool) (text []byte, why string) {
	text, err := g.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	if err != nil || len(text) > maxConfig {
		return nil, unreadable
	}
	if key := configRuns(text, harmless); key != "" {
		return nil, "the repository's configuration has " + clip(key)
	}
	return text, ""
}

// read returns what is in a regular file, up to a byte more than may be used.
func (g *Inspector) read(file string) ([]byte, error) {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	r, err := g.Files.Open(context.Background(), filestate.File{Dir: dir, Name: filepath.Base(file), Path: file})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, maxConfig+1))
}

// maxIndex is how many bytes of a repository's index are read: some 600,000 files.
const maxIndex = 64 << 20

// index calls f for what a file's index has, until it returns true.
func (g *Inspector) index(file string, f func(name string, submodule bool) bool) error {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	r, err := g.Files.Open(context.Background(), filestate.File{Dir: dir, Name: filepath.Base(file), Path: file})
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = indexHas(io.NewSectionReader(r, 0, maxIndex), f)
	return err
}

// clip keeps a key or a path short: both may have any length.
func clip(key string) string {
	const most = 160
	if len(key) <= most {
		return key
	}
	return strings.ToValidUTF8(key[:most], "") + "…"
}

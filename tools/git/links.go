package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxEntries is how many entries of git's directories are looked at for links. A repository keeps most of its objects
// in packs.
const maxEntries = 200_000

// unread are directories of a repository that reading git does not go into, in which others put links.
var unread = []string{"hooks", "lfs", "annex", "modules"}

// links says which link in a directory of git's leads where git may not read, or which list of further objects does;
// "": none does.
func (g *Inspector) links(dir string) string {
	why := g.down(dir, unread)
	if why != "" {
		return why
	}
	return g.alternates(filepath.Join(dir, "objects"))
}

// down looks at what is below dir, but for what is named in without.
func (g *Inspector) down(dir string, without []string) string {
	if g.walked[dir] {
		return ""
	}
	if g.walked == nil {
		g.walked = map[string]bool{}
	}
	g.walked[dir] = true
	list, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return unreadable
	}
	defer list.Close()
	for {
		entries, err := list.ReadDir(1000)
		if g.files += len(entries); g.files > maxEntries {
			return "the repository has too many files to check"
		}
		for _, e := range entries {
			if why := g.entry(filepath.Join(dir, e.Name()), e, without); why != "" {
				return why
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return unreadable
		}
	}
}

// entry looks at one entry of a directory of git's.
func (g *Inspector) entry(at string, e fs.DirEntry, without []string) string {
	for _, name := range without {
		if e.Name() == name {
			return ""
		}
	}
	if e.Type()&fs.ModeSymlink == 0 {
		if e.IsDir() {
			return g.down(at, nil)
		}
		return ""
	}
	to, err := filepath.EvalSymlinks(at)
	if errors.Is(err, fs.ErrNotExist) { // a branch that has no commit yet, where HEAD is a link
		text, err := os.Readlink(at)
		if err != nil || !filepath.IsLocal(text) {
			return clip(at) + " is a link that leads to nothing"
		}
		return ""
	}
	switch info, statErr := os.Stat(to); {
	case err != nil || statErr != nil:
		return unreadable
	case !g.allows(to):
		return leads(at, to)
	case g.Ruled != nil && g.Ruled(to):
		return clip(at) + " leads to " + clip(to) + ", which a rule covers"
	case info.IsDir():
		return g.down(to, nil)
	}
	return ""
}

// alternates looks at the directories in which git looks for further objects (git, gitrepository-layout).
func (g *Inspector) alternates(objects string) string {
	file := filepath.Join(objects, "info", "alternates")
	text, err := g.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil || len(text) > maxConfig {
		return clip(file) + " cannot be read"
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '"': // quoted as in C
			return clip(file) + " has a line that cannot be read"
		}
		dir := real(below(objects, line))
		if !g.allows(dir) {
			return leads(file, dir)
		}
		if g.walked[dir] {
			continue
		}
		if why := g.down(dir, nil); why != "" {
			return why
		}
		if why := g.alternates(dir); why != "" {
			return why
		}
	}
	return ""
}

package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/permission"
)

// maxLooked is how many entries of the roots are looked at for files that a rule is about: a walk must not be what a
// command waits for. A rule that needs more is reported, and holds on the text of commands alone.
const maxLooked = 20_000

// A ruled is what the rules of a policy come to on the disk: existing paths, no one below another one.
type ruled struct {
	Hide []string // no command may read it
	Keep []string // no command may change it
	// Missed is what cannot be kept by the kernel: its files are too many to look for, or outside the roots.
	Missed []permission.Rule

	by map[string]string // the rule about each of Hide and Keep, with its origin
}

// ruledNow looks for the files that deny rules are about, in the roots and where a pattern begins outside of them. What
// is made later is not found: text and tools keep it until the next command.
func ruledNow(rules *permission.Policy, roots []string) ruled {
	out := ruled{by: map[string]string{}}
	for _, c := range rules.Coverage() {
		if c.Verdict != permission.Deny || c.Kind != permission.Path {
			continue
		}
		reads := c.Names("Read", nil, permission.FamilyRead)
		changes := c.Names("Edit", nil, permission.FamilyEdit)
		if !reads && !changes {
			continue
		}
		found, whole := matches(c, roots)
		if !whole {
			out.Missed = append(out.Missed, c.Rule)
		}
		for _, path := range found {
			out.by[path] = c.Rule.Text + ", " + c.Rule.Origin
		}
		if reads {
			out.Hide = append(out.Hide, found...)
		} else {
			out.Keep = append(out.Keep, found...)
		}
	}
	out.Hide, out.Keep = tops(out.Hide), tops(out.Keep)
	return out
}

// Unkept returns the deny rules about files that the kernel cannot keep for commands here, as their files are too many
// to look for, or anywhere on the machine. They hold on the text of commands.
func Unkept(rules *permission.Policy, roots []string) []permission.Rule {
	return ruledNow(rules, roots).Missed
}

// matches returns what exists of what a rule covers. Patterns are followed component by component, with a look into a
// directory only where one has a star; what counts at any depth is looked for in the roots.
func matches(c permission.Coverage, roots []string) (found []string, whole bool) {
	w := walk{covers: c.Covers, left: maxLooked}
	whole = true
	for _, pattern := range c.Paths {
		parts := strings.Split(strings.Trim(pattern, "/"), "/")
		at := string(filepath.Separator)
		if vol := filepath.VolumeName(filepath.FromSlash(pattern)); vol != "" {
			at, parts = vol+at, parts[1:]
		}
		whole = w.follow(at, parts, roots) && whole
	}
	return w.found, whole
}

// anyName stands for whatever a directory may hold.
const anyName = "\x01"

// A walk collects what a pattern matches.
type walk struct {
	covers func(path string) bool
	found  []string
	left   int
}

// follow goes from dir on along the rest of a pattern.
func (w *walk) follow(dir string, parts []string, roots []string) (whole bool) {
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			w.add(dir)
			return true
		case part == "**":
			return w.below(dir, roots)
		case strings.ContainsAny(part, `*?[\`):
			return w.each(dir, part, parts[i+1:], roots)
		}
		dir = filepath.Join(dir, part)
		if _, err := os.Lstat(dir); err != nil {
			return true // nothing is there
		}
	}
	w.add(dir)
	return true
}

// each follows a pattern through the entries of dir that fit its next part.
func (w *walk) each(dir, part string, rest, roots []string) (whole bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true // it is missing, or the server cannot read it
	}
	whole = true
	for _, e := range entries {
		if w.left--; w.left < 0 {
			return false
		}
		// A pattern that this cannot read is left to the rule itself, which is asked about everything that is found.
		if fits, err := filepath.Match(part, e.Name()); err == nil && !fits {
			continue
		}
		whole = w.follow(filepath.Join(dir, e.Name()), rest, roots) && whole
	}
	return whole
}

// below looks at everything in dir, as far as it lies in a root, or holds one.
func (w *walk) below(dir string, roots []string) (whole bool) {
	// There are no walks outside of the roots.
	whole = slices.ContainsFunc(roots, func(root string) bool { return within(dir, root) })
	for _, root := range roots {
		switch {
		case within(dir, root):
			root = dir
		case !within(root, dir):
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if w.left--; w.left < 0 {
				return fs.SkipAll
			}
			if err != nil || path == root {
				return nil //nolint:nilerr // what this user may not look at, commands may not, either
			}
			switch dir := d.IsDir(); {
			case w.covers(path), dir && w.covers(filepath.Join(path, anyName)): // `d/**` is about what is in d
				w.found = append(w.found, path)
				if dir {
					return fs.SkipDir
				}
			}
			return nil
		})
		whole = whole && err == nil && w.left >= 0
	}
	return whole
}

func (w *walk) add(path string) {
	if _, err := os.Lstat(path); err == nil {
		w.found = append(w.found, path)
	}
}

// within says whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// tops sorts paths and leaves out those below another one.
func tops(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	all := slices.Clone(paths)
	return slices.DeleteFunc(paths, func(p string) bool {
		return slices.ContainsFunc(all, func(up string) bool { return up != p && within(p, up) })
	})
}

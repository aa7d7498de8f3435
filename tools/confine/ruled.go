package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/confine/look"
	"codehand/tools/permission"
)

// A ruled is what the rules of a policy come to on the disk: existing paths, no one below another one.
type ruled struct {
	Hide []string // no command may read it
	Keep []string // no command may change it
	// Missed is what cannot be kept by the kernel, since its files may lie anywhere outside of the roots.
	Missed []permission.Rule
	// Unlinked says that not all files in what is denied could be asked for other names.
	Unlinked bool
	// Broken is what would have to look at too many files. No command may run with it.
	Broken []permission.Rule

	by map[string]string // the rule about each of Hide and Keep, with its origin
}

// ruledNow looks for the files that deny rules are about, in the roots and where a pattern begins outside of them. What
// is made later is not found: text and tools keep it until the next command.
func ruledNow(l *look.Looker, rules *permission.Policy, roots []string) ruled {
	out := ruled{by: map[string]string{}}
	w := walk{looker: l, roots: roots, left: l.Limit(), by: out.by}
	hide, keep := kind{name: "hide"}, kind{name: "keep"}
	for _, c := range rules.Coverage() {
		if c.Verdict != permission.Deny || c.Kind != permission.Path {
			continue
		}
		k := &keep
		if c.Names("Read", nil, permission.FamilyRead) {
			k = &hide
		} else if !c.Names("Edit", nil, permission.FamilyEdit) {
			continue
		}
		w.begin(k, c)
		if w.outside {
			out.Missed = append(out.Missed, c.Rule)
		}
		if w.broken {
			out.Broken = append(out.Broken, c.Rule)
		}
	}
	for _, k := range []*kind{&hide, &keep} {
		out.Broken = append(out.Broken, w.finish(k)...)
		whole, broken := w.otherNames(k)
		out.Unlinked = out.Unlinked || !whole
		out.Broken = append(out.Broken, broken...)
	}
	out.Hide, out.Keep = tops(hide.found), tops(keep.found)
	return out
}

// Unkept returns the deny rules about files that the kernel cannot keep for commands here, as their files are too many
// to look for, or anywhere on the machine. They hold on the text of commands.
func Unkept(rules *permission.Policy, roots []string) []permission.Rule {
	r := ruledNow(new(look.Looker), rules, roots)
	return slices.Concat(r.Missed, r.Broken)
}

// A kind are rules that do the same to what they find.
type kind struct {
	name  string
	found []string
	deep  []start
}

// A start is where a rule about files at any depth begins.
type start struct {
	dir  string
	rule permission.Coverage
}

// anyName stands for whatever a directory may hold.
const anyName = "\x01"

// A walk looks for what rules cover. Patterns are followed component by component, with a look into a directory only
// where one has a star; what counts at any depth is looked for in the roots, for all rules of a kind at once.
type walk struct {
	looker *look.Looker
	roots  []string
	left   int
	by     map[string]string

	kind            *kind
	rule            permission.Coverage
	outside, broken bool
}

// begin follows the patterns of a rule.
func (w *walk) begin(k *kind, c permission.Coverage) {
	w.kind, w.rule, w.outside, w.broken = k, c, false, false
	for _, pattern := range c.Paths {
		parts := strings.Split(strings.Trim(pattern, "/"), "/")
		at := string(filepath.Separator)
		if vol := filepath.VolumeName(filepath.FromSlash(pattern)); vol != "" {
			at, parts = vol+at, parts[1:]
		}
		w.follow(at, parts)
	}
}

// follow goes from dir on along the rest of a pattern.
func (w *walk) follow(dir string, parts []string) {
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			w.add(dir)
			return
		case part == "**":
			w.below(dir)
			return
		case strings.ContainsAny(part, `*?[\`):
			w.each(dir, part, parts[i+1:])
			return
		}
		up := dir
		dir = filepath.Join(dir, part)
		if _, err := os.Lstat(dir); err != nil {
			w.shut(up, err)
			return // nothing is there
		}
	}
	w.add(dir)
}

// each follows a pattern through the entries of dir that fit its next part.
func (w *walk) each(dir, part string, rest []string) {
	entries, err := os.ReadDir(dir)
	if w.shut(dir, err) {
		return
	}
	fits := w.rule.Component(part)
	for _, e := range entries {
		if w.left--; w.left < 0 {
			w.broken = true
			return
		}
		if !fits(e.Name()) {
			continue
		}
		w.follow(filepath.Join(dir, e.Name()), rest)
	}
}

// shut adds a directory of this user's that this user may not look into: a command could open it, also one of
// sandbox.writable. It says so if err is about that.
func (w *walk) shut(dir string, err error) bool {
	if !errors.Is(err, fs.ErrPermission) {
		return false
	}
	if info, err := os.Lstat(dir); err == nil && look.Mine(info) {
		w.add(dir)
		w.by[dir] += " (its user cannot look into " + dir + ", so what it holds is not known)"
	}
	return true
}

// below notes that a rule is about everything in dir, as far as it lies in a root, or holds one. There are no walks
// outside of the roots.
func (w *walk) below(dir string) {
	w.outside = w.outside || !slices.ContainsFunc(w.roots, func(root string) bool { return within(dir, root) })
	for _, root := range w.roots {
		switch {
		case within(dir, root):
			root = dir
		case !within(root, dir):
			continue
		}
		w.kind.deep = append(w.kind.deep, start{root, w.rule})
	}
}

// finish looks for what the rules of a kind cover at any depth, and returns those that have too much to look at.
func (w *walk) finish(k *kind) (broken []permission.Rule) {
	w.kind = k
	for len(k.deep) > 0 {
		dir := k.deep[0].dir
		var rules []permission.Coverage
		name := k.name
		k.deep = slices.DeleteFunc(k.deep, func(s start) bool {
			if s.dir != dir {
				return false
			}
			rules = append(rules, s.rule)
			said := []string{name, s.rule.Rule.Text, s.rule.Rule.Origin}
			name = strings.Join(append(said, s.rule.Paths...), "\x00")
			return true
		})
		hits, whole := w.looker.Find(dir, name, look.Search{Left: &w.left, Shut: []int{0},
			Judge: func(path string, d fs.DirEntry, _ int) (of []int, enter bool) {
				for i, c := range rules {
					// `d/**` is about what is in d
					if c.Covers(path) || d.IsDir() && c.Covers(filepath.Join(path, anyName)) {
						return []int{i}, false
					}
				}
				return nil, true
			}})
		for _, h := range hits {
			w.rule = rules[h.Of[0]]
			w.add(h.Path)
		}
		if !whole {
			for _, c := range rules {
				broken = append(broken, c.Rule)
			}
		}
	}
	return broken
}

// maxInside is how many files in directories that rules deny are asked for other names, for each command.
const maxInside = 10_000

// otherNames adds the other names, in the roots, of files that were found or lie in what was. whole is false if there
// were too many to ask, broken are the rules for which there was too much to look at.
func (w *walk) otherNames(k *kind) (whole bool, broken []permission.Rule) {
	wanted := map[look.File]string{} // the rule
	left := maxInside
	ask := func(rule string, info fs.FileInfo) {
		if file, several := look.FileOf(info); several {
			wanted[file] = rule
		}
	}
	for _, found := range k.found {
		info, err := os.Lstat(found)
		if err != nil {
			continue
		}
		rule := w.by[found]
		if ask(rule, info); !info.IsDir() {
			continue
		}
		_ = filepath.WalkDir(found, func(_ string, d fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					ask(rule, info)
				}
			}
			return nil // what this user cannot look at, commands cannot, either, as long as it is hidden
		})
	}
	if len(wanted) == 0 {
		return left >= 0, nil
	}
	files := make([]string, 0, len(wanted))
	for file := range wanted {
		files = append(files, fmt.Sprint(file))
	}
	slices.Sort(files)
	var rules []string
	for _, root := range w.roots {
		hits, all := w.looker.Find(root, "names\x00"+strings.Join(files, "\x00"), look.Search{
			Left: &w.left,
			Judge: func(_ string, d fs.DirEntry, _ int) (of []int, enter bool) {
				if !d.Type().IsRegular() {
					return nil, true
				}
				info, err := d.Info()
				if err != nil {
					return nil, false
				}
				if file, several := look.FileOf(info); several && wanted[file] != "" {
					return []int{0}, false
				}
				return nil, false
			}})
		for _, h := range hits {
			info, err := os.Lstat(h.Path)
			if err != nil {
				continue
			}
			file, _ := look.FileOf(info)
			if w.by[h.Path] == "" && wanted[file] != "" {
				w.by[h.Path] = wanted[file]
				k.found = append(k.found, h.Path)
			}
		}
		if !all {
			rules = append(rules, slices.Collect(maps.Values(wanted))...)
		}
	}
	slices.Sort(rules)
	for _, rule := range slices.Compact(rules) {
		broken = append(broken, permission.Rule{Text: rule, Origin: "other names of its files"})
	}
	return left >= 0, broken
}

func (w *walk) add(path string) {
	if _, err := os.Lstat(path); err == nil {
		w.kind.found = append(w.kind.found, path)
		w.by[path] = w.rule.Rule.Text + ", " + w.rule.Rule.Origin
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
	all := make(map[string]bool, len(paths))
	for _, p := range paths {
		all[p] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		for up := filepath.Dir(p); ; up = filepath.Dir(up) {
			if all[up] && up != p {
				return true
			}
			if up == filepath.Dir(up) {
				return false
			}
		}
	})
}

// DeniedNow returns what deny rules keep commands in roots from reading, of what is there now.
func (s *Session) DeniedNow(rules *permission.Policy, roots []string) []string {
	if s == nil || s.o.Off {
		return nil
	}
	return ruledNow(&s.looker, rules, roots).Hide
}

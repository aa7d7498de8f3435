package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/auth"
)

// placeholder stands in a root for the directory name of the calling principal.
const placeholder = "{principal}"

// workspaces is the default place of principals' roots, below the data directory. It is the only part of that directory
// that a root may lie in.
const workspaces = "workspaces"

// readTemplate reads a root of a principal.
func readTemplate(s string, in input) (string, error) {
	path, err := absolute(s, in)
	if err != nil {
		return "", err
	}
	if personal(s) && !personal(path) {
		return "", fmt.Errorf("%s: .. must not follow %s", s, placeholder)
	}
	return path, auth.CheckRoot(path)
}

// fixed is the deepest directory of a template that is the same for all principals.
func fixed(template string) string {
	for strings.Contains(template, placeholder) {
		template = filepath.Dir(template)
	}
	return template
}

// personal says whether each principal has another directory.
func personal(template string) bool { return strings.Contains(template, placeholder) }

// Apart are the directories, without links, that hold the roots of principals about whom something is said, whatever
// their names: those of one principal must not be shown to another one.
func (c Config) Apart(said Principals) []string {
	dirs := []string{Canonical(filepath.Join(c.DataDir(), workspaces))}
	add := func(v auth.Values) {
		for _, root := range v.Roots {
			if dir := Canonical(fixed(root)); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	add(said.Default)
	for _, v := range said.Named {
		add(v)
	}
	for _, g := range said.Groups {
		add(g.Values)
	}
	return dirs
}

// canonical resolves the links of the fixed part, which is all that exists for sure.
func canonical(template string) string {
	rel, err := filepath.Rel(fixed(template), template)
	if err != nil { // cannot be: it lies in it
		return template
	}
	return filepath.Join(Canonical(fixed(template)), rel)
}

// CheckRoot refuses a root of a principal, such as one that a token names: a template that is not absolute, or that for
// some principal contains or lies in what serve keeps, other than the workspaces in its data directory.
func (c Config) CheckRoot(template string) error {
	if _, err := readTemplate(template, input{file: true}); err != nil {
		return err
	}
	for _, dir := range c.keptDirs() {
		if how := c.meeting(template, dir); how != "" {
			return fmt.Errorf("%s %s the %s %s", template, how, dir.name, dir.path)
		}
	}
	return nil
}

// A keptDir is a directory of ours.
type keptDir struct {
	name string
	key  string // of the setting that moves it
	path string
}

// keptDirs are the directories that no root may meet.
func (c Config) keptDirs() []keptDir {
	dirs := []keptDir{{"state directory", "state_dir", c.StateDir}}
	if c.HTTP.DataDir != c.StateDir {
		dirs = append(dirs, keptDir{"data directory", "http.data_dir", c.HTTP.DataDir})
	}
	dirs = append(dirs, keptDir{"shared directory", "cluster.shared_dir", c.Cluster.SharedDir})
	return slices.DeleteFunc(dirs, func(d keptDir) bool { return d.path == "" })
}

// meeting says how the directories of a template meet one of ours; "": they do not.
func (c Config) meeting(template string, dir keptDir) string {
	root, ours := canonical(template), Canonical(dir.path)
	if dir.path == c.HTTP.DataDir {
		if shared := filepath.Join(ours, workspaces); root != shared && contains(shared, root) {
			return ""
		}
	}
	switch {
	case !overlap(root, ours):
		return ""
	case contains(ours, root):
		return "lies in"
	case personal(template):
		return "could, for some principal, be, contain or lie in"
	}
	return "contains"
}

// overlap says whether a directory of a template could be, contain or lie in dir.
func overlap(template, dir string) bool {
	a, b := components(template), components(dir)
	for i := range min(len(a), len(b)) {
		if !couldBeName(a[i], b[i]) {
			return false
		}
	}
	return filepath.VolumeName(template) == filepath.VolumeName(dir)
}

func components(path string) []string {
	path = strings.Trim(path[len(filepath.VolumeName(path)):], string(filepath.Separator))
	if path == "" {
		return nil
	}
	return strings.Split(path, string(filepath.Separator))
}

// couldBeName says whether one component of a template could be name, for a principal with a fitting ID. What stands
// for it has lower case; on some disks names in upper case mean the same.
func couldBeName(template, name string) bool {
	parts := strings.Split(template, placeholder)
	if len(parts) == 1 {
		return template == name
	}
	first, last := parts[0], parts[len(parts)-1]
	name, first, last = strings.ToLower(name), strings.ToLower(first), strings.ToLower(last)
	if len(name) <= len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	return len(parts) > 2 || strings.Trim(name[len(first):len(name)-len(last)],
		"abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// A rootList are the roots that one source says, for messages.
type rootList struct {
	key   string // principals.default.roots
	roots []string
}

// templates returns the roots of all principals about whom something is said.
func (l *loader) templates() []rootList {
	var lists []rootList
	l.eachPrincipal(func(of personalTable, v *values) {
		lists = append(lists, rootList{of.key("roots"), v.Roots})
	})
	return lists
}

// checkTemplates looks whether the workspaces of serve are there, or can be made.
func (l *loader) checkTemplates() {
	for _, list := range l.templates() {
		for _, root := range list.roots {
			if err := l.checkTemplate(list, root); err != nil {
				l.rootProblem(list.key, err.Error())
			}
		}
	}
	l.checkSeeds()
}

// rootProblem notes what is wrong with a root of a principal. A ROOT argument has no key.
func (l *loader) rootProblem(key, text string) {
	origin := l.config.origins[key]
	if origin != rootArgument {
		text = key + ": " + text
	}
	l.problems.add(origin, text)
}

func (l *loader) checkTemplate(list rootList, root string) error {
	if !personal(root) {
		for _, other := range list.roots {
			if personal(other) && contains(Canonical(root), Canonical(fixed(other))) {
				return fmt.Errorf("%s contains %s, so everyone could reach everyone's files", root, other)
			}
		}
		l.warnAboutHome(root)
		if err := existing(root); err != nil {
			return fmt.Errorf("%w; make it, or write {principal} into it, which is made for each principal", err)
		}
		return nil
	}
	parent := fixed(root)
	if contains(filepath.Join(Canonical(l.config.HTTP.DataDir), workspaces), Canonical(parent)) {
		return nil // made together with the data directory
	}
	if err := existing(parent); err != nil {
		return fmt.Errorf("%s: %w", root, err)
	}
	if err := writable(parent); err != nil {
		return fmt.Errorf("%s: cannot create directories in %s: %w", root, parent, err)
	}
	return nil
}

// absent is the error of a path where nothing is. A person who starts a client reads it in that client's log.
type absent string

func (path absent) Error() string { return string(path) + " does not exist" }

// Is says that errors.Is finds fs.ErrNotExist in it.
func (path absent) Is(target error) bool { return target == fs.ErrNotExist }

// existing refuses what is no directory.
func existing(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return absent(dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New(dir + " is not a directory")
	}
	return nil
}

// checkSeeds looks whether what is copied into new workspaces is there.
func (l *loader) checkSeeds() {
	l.eachPrincipal(func(of personalTable, v *values) {
		if v.Seed == nil || *v.Seed == "" {
			return
		}
		if err := existing(*v.Seed); err != nil {
			key := of.key("seed")
			l.problems.add(l.config.origins[key], key+": "+err.Error())
		}
	})
}

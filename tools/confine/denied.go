package confine

import (
	"fmt"
	"path/filepath"
	"slices"
)

// A DeniedError means that a command would begin in a directory of which the rules let nothing be read.
type DeniedError struct {
	Dir    string
	Rule   string // with its origin, or the setting
	Opener string // who can change that: "the user" or "the operator"
}

func (e *DeniedError) Error() string { return fmt.Sprintf("%s is denied by %s", e.Dir, e.Rule) }

// hideSetting is what DeniedError says of what the operator hides.
const hideSetting = "sandbox.hide"

// denied is what rules and the operator hide. What is usual for a profile gives way to it: a path that is both opened
// and denied is denied.
type denied struct {
	rules    []string          // what deny rules come to, and what links outside of the roots lead to from there
	by       map[string]string // the rule of each of these
	operator []string          // sandbox.hide
}

// deniedBy returns what is denied for commands in roots.
func (c *Confiner) deniedBy(now ruled, roots []string) denied {
	d := denied{rules: slices.Clone(now.Hide), by: make(map[string]string, len(now.Hide)), operator: c.o.Hide}
	for _, path := range now.Hide {
		d.by[path] = now.by[path]
		if slices.ContainsFunc(roots, func(root string) bool { return within(path, root) }) {
			continue // a link in a root leads where a cloned repository wants
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			d.rules, d.by[real] = append(d.rules, real), now.by[path]
		}
	}
	return d
}

// wholly says by what all of a path is denied, which the operator, the person or the profile opens by its name; "":
// nothing. What the operator hides around it stays open.
func (d denied) wholly(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		if rule := d.by[at]; rule != "" {
			return rule
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if slices.Contains(d.operator, path) {
		return hideSetting
	}
	return ""
}

// but returns the paths that are not denied as a whole.
func (d denied) but(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return d.wholly(path) != "" })
}

// butUsual is but for what commands of everyone find: that stays open nowhere in what the operator hides.
func (d denied) butUsual(paths []string) []string {
	return slices.DeleteFunc(d.but(paths), func(path string) bool {
		return slices.ContainsFunc(d.operator, func(dir string) bool { return within(path, dir) })
	})
}

// at says why no command can begin in a directory; nil: one can. A command without a directory begins in the first
// root.
func (d denied) at(dir string, roots []string, opener string) error {
	if dir == "" && len(roots) > 0 {
		dir = roots[0]
	}
	if rule := d.wholly(dir); dir != "" && rule != "" {
		return &DeniedError{dir, rule, opener}
	}
	return nil
}

package confine

import (
	"fmt"
	"path/filepath"
	"slices"
)

// apart returns the directories of which commands in roots see only what is theirs.
func (c *Confiner) apart(roots []string) (dirs []string) {
	if c.o.State != "" {
		dirs = append(dirs, c.o.State)
	}
	if c.o.Apart != nil {
		dirs = append(dirs, c.o.Apart()...)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(roots, dir) })
}

// beside returns the paths that do not lie in one of apart, unless they lie in a root.
func beside(paths, apart, roots []string) []string {
	in := func(path string) func(dir string) bool { return func(dir string) bool { return within(path, dir) } }
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		return slices.ContainsFunc(apart, in(path)) && !slices.ContainsFunc(roots, in(path))
	})
}

// CheckApart says why the directories of people cannot be kept from each other: what every command reads lies there, or
// one of named, which the operator opens to all commands. All paths are absolute and without links.
func CheckApart(apart, named []string) error {
	for _, dir := range apart {
		for _, path := range systemDirs {
			if real, err := filepath.EvalSymlinks(path); err == nil && within(real, dir) {
				return fmt.Errorf("%s holds %s, which the commands of everyone read: what is in it cannot be kept "+
					"from others; use a directory of its own", dir, path)
			}
		}
		for _, path := range named {
			if within(path, dir) {
				return fmt.Errorf("%s, which sandbox.readable or sandbox.writable opens to the commands of everyone, "+
					"lies in %s, which is kept from others", path, dir)
			}
		}
	}
	return nil
}

package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// Check says whether path is that of a file of settings, the operator's or a project's, and what would keep the next
// start from reading data there. It looks at single keys and values, not at how they go together. err is Problems.
func (c Config) Check(path string, data []byte) (own bool, err error) {
	dir, project := strings.CutSuffix(filepath.ToSlash(path), "/"+projectFile)
	others := slices.DeleteFunc(slices.Clone(c.Files),
		func(file string) bool { return slices.Contains(c.Projects, file) })
	if !project && !slices.ContainsFunc(others,
		func(file string) bool { return path == file || path == Canonical(file) }) {
		return false, nil
	}
	l := loader{config: defaults()}
	l.config.WorkDir, l.config.Home, l.config.ConfigHome = c.WorkDir, c.Home, c.ConfigHome
	l.config.Hooks.TrustProject = c.Hooks.TrustProject
	l.config.origins = map[string]string{}
	l.table = table(&l.config)
	switch {
	case len(data) > maxFileBytes:
		l.problems.add(path, "is larger than 1 MiB")
	case project:
		l.projectEntries(filepath.FromSlash(dir), path, data)
	default:
		l.file(path, data)
	}
	if len(l.problems) > 0 {
		return true, l.problems
	}
	return true, nil
}

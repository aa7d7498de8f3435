package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/permission"
)

// roots decides which directories sessions may touch: arguments, else the setting, else the working directory, unless
// that is where a program happens to be started.
func (l *loader) roots() {
	const key = "roots"
	switch {
	case len(l.src.Roots) > 0:
		l.config.Roots = nil
		for _, arg := range l.src.Roots {
			path, err := absolute(arg, l.typed(arg, "argument"))
			if err != nil {
				l.problems.add("argument ROOT", err.Error())
				continue
			}
			l.config.Roots = append(l.config.Roots, path)
		}
		l.config.origins[key] = "argument ROOT"
	case len(l.config.Roots) > 0:
	case l.byAccident(l.config.WorkDir):
		l.warnings = append(l.warnings, Warning{Text: fmt.Sprintf("no directory may be touched: started in %s, which is never a root by itself; add a ROOT argument", l.config.WorkDir)})
	case l.config.WorkDir != "":
		l.config.Roots = []string{l.config.WorkDir}
		l.config.origins[key] = "working directory"
	}
	for _, root := range l.config.Roots {
		l.checkRoot(root)
	}
}

// byAccident says that a program is started in dir when nobody chose one.
func (l *loader) byAccident(dir string) bool {
	if dir == "" {
		return false
	}
	real := resolved(dir)
	never := []string{l.config.Home, l.env["SYSTEMROOT"], l.env["WINDIR"]}
	if real == filepath.Dir(real) || slices.ContainsFunc(never, func(d string) bool { return d != "" && resolved(d) == real }) {
		return true
	}
	if windows := l.env["SYSTEMROOT"]; windows != "" && contains(resolved(windows), real) {
		return true
	}
	return slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc"}, func(d string) bool { return contains(d, real) })
}

func (l *loader) checkRoot(root string) {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		l.problems.add(l.config.origins["roots"], err.Error())
	case !info.IsDir():
		l.problems.add(l.config.origins["roots"], root+" is not a directory")
	case l.config.Home != "" && resolved(root) == resolved(l.config.Home):
		l.warnings = append(l.warnings, Warning{Text: root + " is the home directory; a project's directory is the better root"})
	}
}

// keepApart refuses roots and state directories that lie in each other: what the model can change must not be what we
// remember. A home directory as root always holds the state directory, so there a rule keeps tools away from it.
func (l *loader) keepApart() {
	state := resolved(l.config.StateDir)
	for _, root := range l.config.Roots {
		real := resolved(root)
		switch {
		case contains(state, real):
			l.problems.add(l.config.origins["roots"], fmt.Sprintf("%s lies in the state directory %s", root, l.config.StateDir))
		case !contains(real, state):
		case l.config.Home != "" && real == resolved(l.config.Home):
			l.denyState(state)
		default:
			l.problems.add(l.config.origins["roots"], fmt.Sprintf("%s contains the state directory %s; set state_dir to a place outside", root, l.config.StateDir))
		}
	}
}

func (l *loader) denyState(state string) {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(filepath.ToSlash(state))
	l.config.Permissions.Deny = append(l.config.Permissions.Deny, permission.Rule{
		Text: "Edit(//" + strings.TrimPrefix(pattern, "/") + "/**)", Origin: permission.BuiltIn, Dir: l.config.WorkDir,
	})
}

// contains says whether path is dir or lies in it, by whole components.
func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolved resolves the links in the part of path that exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	up := filepath.Dir(path)
	if up == path {
		return path
	}
	return filepath.Join(resolved(up), filepath.Base(path))
}

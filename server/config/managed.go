package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"codehand/tools/permission"
)

// managedRulesOnly is the one key that only the managed file takes: allow rules of everybody else count for nothing.
const managedRulesOnly = "permissions.managed_rules_only"

// managedFile is the place for the settings of the machine's administrator.
func managedFile() string {
	switch runtime.GOOS {
	case "windows":
		dir := os.Getenv("ProgramData")
		if dir == "" {
			dir = `C:\ProgramData`
		}
		return filepath.Join(dir, "codehand", "managed.toml")
	case "darwin":
		return "/Library/Application Support/codehand/managed.toml"
	}
	return "/etc/codehand/managed.toml"
}

// A managed layer is what the machine's administrator fixed.
type managed struct {
	path      string
	fixed     map[string]bool // keys whose value no other source may change
	rulesOnly bool
}

// managedFile applies the administrator's file over everything that people may say. Its entries of lists that grow are
// added to theirs. Anything else is fixed, and a different value is an error that says so.
func (l *loader) managedFile() {
	path := l.src.ManagedFile
	l.config.Permissions.Highest = permission.Bypass
	if path == "" {
		return
	}
	data, err := readManagedFile(path, l.src.managedBy)
	if err != nil {
		l.problems.add(path, err.Error())
		return
	}
	if data == nil {
		return
	}
	l.config.Files = append([]string{path}, l.config.Files...)
	entries, err := parse(path, data)
	if err != nil {
		l.fail(err)
		return
	}
	l.managed = managed{path: path, fixed: map[string]bool{}}
	for _, e := range entries {
		l.manage(e, input{raw: e.raw, origin: e.origin, lines: e.lines, home: l.config.Home, file: true})
	}
}

// manage applies one entry of the administrator's file.
func (l *loader) manage(e entry, in input) {
	switch s := l.find(e.key); {
	case e.key == managedRulesOnly:
		if err := (toggle{&l.managed.rulesOnly}).set(in); err != nil {
			l.refuse(e.key, in.origin, err)
		}
	case named(e.path):
		l.problems.add(e.origin, e.key+": principals cannot be set in this file; what it fixes holds for all of them")
	case mountPath(e.path):
		l.mount(e, in)
	case lspPath(e.path):
		l.languageServer(e, in)
	case issuerArray(e.path):
		l.problems.add(e.origin, e.key+": issuers cannot be set in this file")
	case hookArray(e.path):
		l.hook(e, in)
	case s == nil:
		l.problems.add(e.origin, notThere(e))
	default:
		l.fix(*s, in)
	}
}

// fix sets a value for good.
func (l *loader) fix(s setting, in input) {
	if _, grows := s.at.(growing); grows {
		l.set(s, in)
		return
	}
	said, before := l.config.origins[s.key], s.at.text()
	if s.key == "roots" && !l.src.Serve && len(l.src.Roots) > 0 {
		said, before = rootArgument, dirs{&[]string{}}.text()
		if roots := l.rootArguments(absolute); len(roots) > 0 {
			before = dirs{&roots}.text()
		}
	}
	problems := len(l.problems)
	l.set(s, in)
	if len(l.problems) > problems {
		return
	}
	l.managed.fixed[s.key] = true
	if now := s.at.text(); said != byDefault && said != serveOrigin && now != before {
		l.problems.add(said, fmt.Sprintf("%s: %s is not allowed: %s fixes it at %s", s.key, shown(before), in.origin,
			shown(now)))
	}
}

func shown(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// holdManaged makes what is fixed hold for principals, too, and takes rules away that only the administrator may make.
func (l *loader) holdManaged() {
	p := &l.config.Permissions
	if l.managed.fixed[modeKey] {
		p.Highest = p.Mode
	}
	if !l.managed.rulesOnly {
		return
	}
	p.ManagedRulesOnly = true
	if !l.managed.fixed[preapprovedKey] {
		l.config.Web.Preapproved = nil // it stands for rules that allow
	}
	var ignored []string
	p.Allow = slices.DeleteFunc(p.Allow, func(r permission.Rule) bool {
		if strings.HasPrefix(r.Origin, l.managed.path+":") {
			return false
		}
		if !slices.Contains(ignored, r.Origin) {
			ignored = append(ignored, r.Origin)
		}
		return true
	})
	l.eachPrincipal(func(of personalTable, v *values) {
		if len(v.Allow) > 0 {
			ignored = append(ignored, l.config.origins[of.key("allow")])
			v.Allow = nil
		}
	})
	if len(ignored) > 0 {
		l.warnings = append(l.warnings, Warning{
			Origin: l.managed.path,
			Text:   managedRulesOnly + ": rules that allow are ignored: " + strings.Join(ignored, ", "),
		})
	}
}

// A personalTable is the path of a table about one principal, all or a group, without principals.
type personalTable []string

// key is that of one setting in the table.
func (t personalTable) key(name string) string {
	return dotted(append(append([]string{principalsTable}, t...), name))
}

// eachPrincipal lets f change what is said about principals, about all of them first, about groups last.
func (l *loader) eachPrincipal(f func(of personalTable, v *values)) {
	p := &l.config.Principals
	f(personalTable{everyone}, &p.Default)
	for _, id := range slices.Sorted(maps.Keys(p.Named)) {
		v := p.Named[id]
		f(personalTable{id}, &v)
		p.Named[id] = v
	}
	for i := range p.Groups {
		f(personalTable{groups, p.Groups[i].Name}, &p.Groups[i].Values)
	}
}

// readManagedFile reads the administrator's file. nil, nil: there is none. by is the user that it must belong to.
func readManagedFile(path string, by int) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.Lstat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := ownedBy(dir, by); err != nil {
		return nil, fmt.Errorf("its directory %w", err)
	}
	if err := checkManaged(info, by); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkManaged(opened, by); err != nil { // the name may mean another file by now
		return nil, err
	}
	return readChecked(f, false)
}

func checkManaged(info fs.FileInfo, by int) error {
	if !info.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}
	return ownedBy(info, by)
}

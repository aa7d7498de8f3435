package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// projects applies the project files. All that they can do is narrow, so every root's file counts; where two of them
// differ in what they may choose freely, the first root wins.
func (l *loader) projects() {
	// that was told
	dirs := slices.DeleteFunc(slices.Clone(l.config.Roots), func(dir string) bool { return existing(dir) != nil })
	if l.src.ProjectDir != "" {
		dirs = []string{l.join(l.src.ProjectDir)}
	}
	for _, dir := range slices.Backward(dirs) {
		l.project(dir)
	}
	l.warnings = append(l.warnings, l.config.closeNetwork()...)
	// A project that shortens the longest time means the usual one, too.
	l.config.Shell.DefaultTimeoutMS = min(l.config.Shell.DefaultTimeoutMS, l.config.Shell.MaxTimeoutMS)
}

func (l *loader) project(dir string) {
	path := filepath.Join(dir, filepath.FromSlash(projectFile))
	data, err := readProjectFile(dir, filepath.FromSlash(projectFile))
	if err != nil {
		l.problems.add(path, err.Error())
		return
	}
	if data == nil {
		return
	}
	l.config.Files, l.config.Projects = append(l.config.Files, path), append(l.config.Projects, path)
	l.projectEntries(dir, path, data)
}

// projectEntries applies the content of a project file as far as it may count.
func (l *loader) projectEntries(dir, path string, data []byte) {
	entries, err := parse(path, data)
	if err != nil {
		l.fail(err)
		return
	}
	var ignored []string
	ignore := func(e entry) { // with line and column, since the warning is one for the whole file
		ignored = append(ignored, fmt.Sprintf("%s (%s)", e.key, strings.TrimPrefix(e.origin, path+":")))
	}
	for _, e := range entries {
		// What `/x` in a rule and a relative path mean is the project's top, not the directory that only holds the
		// file.
		in := input{raw: e.raw, origin: e.origin, lines: e.lines, ruleDir: Canonical(dir), base: dir,
			home: l.config.Home, file: true}
		switch s := l.find(e.key); {
		case mountPath(e.path):
			if !l.mountOff(e) {
				ignore(e)
			}
		case lspPath(e.path):
			if !l.languageServerOff(e) {
				ignore(e)
			}
		case named(e.path), issuerArray(e.path), hookArray(e.path) && !l.config.Hooks.TrustProject,
			e.key == managedRulesOnly:
			ignore(e)
		// a guard that the operator counts on must not be left out without a word, so mistakes stop the start
		case hookArray(e.path):
			before := len(l.config.Hooks.Entries)
			l.hook(e, in)
			for i := range l.config.Hooks.Entries[before:] {
				l.config.Hooks.Entries[before+i].Project = true
			}
		case s == nil:
			l.problems.add(e.origin, notThere(e))
		case !l.narrow(*s, in):
			ignore(e)
		}
	}
	if len(ignored) > 0 {
		l.warnings = append(l.warnings,
			Warning{Origin: path, Text: "a project file can only narrow; ignored: " + strings.Join(ignored, ", ")})
	}
}

// narrow applies one setting of a project file as far as it may; ok is false if it counts for nothing.
func (l *loader) narrow(s setting, in input) (ok bool) {
	switch s.project {
	case added:
		return l.addEntries(s, in)
	case narrower:
		return l.setIfStricter(s, in)
	case guidance:
		if !l.typedAlready(s.key) && !l.managed.fixed[s.key] {
			l.set(s, in)
		}
		return true
	}
	return false
}

// addEntries adds the rules and names that can be used. One that cannot is told and left out: a repository must not be
// able to keep the server from starting by a rule of a newer version.
func (l *loader) addEntries(s setting, in input) (ok bool) {
	grows, ok := s.at.(growing)
	if !ok {
		return false
	}
	add, count, bad := grows.read(in)
	for _, p := range bad {
		l.warnings = append(l.warnings, Warning{Origin: p.Origin, Text: s.key + ": ignored: " + p.Text})
	}
	if count > 0 {
		add()
		l.config.origins[s.key] = in.origin
	}
	return true
}

// setIfStricter sets a value and takes it back if it is looser than what held without it, whatever that came from.
func (l *loader) setIfStricter(s setting, in input) (ok bool) {
	if v, ok := s.at.(domains); ok {
		was, problems := *v.p, len(l.problems)
		l.set(s, in)
		return len(l.problems) > problems || v.meet(was)
	}
	r, comparable := s.at.(ranked)
	if !comparable {
		return false
	}
	before, held := l.config, r.rank()
	origin := l.config.origins[s.key]
	problems := len(l.problems)
	was := s.at.text()
	l.set(s, in)
	now, said := r.rank(), s.at.text()
	if len(l.problems) > problems || now < held {
		return true
	}
	l.config = before // the origins are shared
	repeats := said == was
	// What a project repeats of the defaults of serve is then said, and ForOnePerson leaves it alone.
	if !repeats || origin != serveOrigin {
		l.config.origins[s.key] = origin
	}
	return repeats // another value of the same rank counts for nothing, and that is told
}

// typedAlready says whether a setting came from a flag or the environment, which stand above project files.
func (l *loader) typedAlready(key string) bool {
	origin := l.config.origins[key]
	env, flag := spellings(key)
	return origin == env || origin == "flag "+flag
}

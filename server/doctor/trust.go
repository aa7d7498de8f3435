package doctor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// This file decides which programs doctor may start: people run doctor in directories whose files others wrote.

// programName is how releases of codehand name their program: codehand, or codehand-OS-ARCH.
var programName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^codehand(-[a-z0-9]+-[a-z0-9]+)?(\.exe)?$`)
})

// distrust says why doctor does not start a program, given by its absolute path; "": it may. It may start this
// program's own file, and another codehand that lies outside of the project and of dir, the directory in which it would
// run ("": none). Launchers (npx, shells, shims of version managers) take what they run from the directory that they
// are started in, so that their own place proves nothing. What cannot be found out counts against the program.
func (m Machine) distrust(command, dir string) string {
	if same(command, m.Program) {
		return ""
	}
	real, err := filepath.EvalSymlinks(command)
	if err != nil {
		return "its links cannot be followed"
	}
	for _, around := range m.project(dir) {
		if inside(command, around) || inside(real, around) {
			return "it lies in " + around + ", whose files need not be yours"
		}
	}
	for _, at := range []string{command, real} {
		if inside(m.Config.WorkDir, filepath.Dir(at)) && !m.own(filepath.Dir(at)) {
			return "it lies in " + filepath.Dir(at) + ", above the working directory"
		}
	}
	named := programName().MatchString(filepath.Base(command)) && programName().MatchString(filepath.Base(real))
	if !named || script(real) {
		return "it is not codehand itself"
	}
	return ""
}

// distrustSettings says why doctor does not start a launch whose program it may start; "": it may. A file of settings
// names hooks, which run as soon as a session starts.
func (m Machine) distrustSettings(l launch) string {
	for i, a := range l.args {
		file, ok := strings.CutPrefix(a, "--config=")
		if a == "--config" && i+1 < len(l.args) {
			file, ok = l.args[i+1], true
		}
		if ok && !filepath.IsAbs(file) {
			file = filepath.Join(l.dir, file)
		}
		real, err := filepath.EvalSymlinks(file)
		for _, around := range m.project(l.dir) {
			if ok && (inside(file, around) || err == nil && inside(real, around)) {
				return "its settings lie in " + around + ", whose files need not be yours"
			}
		}
	}
	return ""
}

// project are the directories whose contents need not be the user's own: the working directory, the roots, dir, and the
// top of the git work tree around each. Each is named as it is written, and with its links followed.
func (m Machine) project(dir string) []string {
	var all []string
	for _, start := range append([]string{m.Config.WorkDir, dir}, m.Config.Roots...) {
		if start == "" || m.own(start) {
			continue
		}
		all = append(all, start)
		if real, err := filepath.EvalSymlinks(start); err == nil && real != start {
			all = append(all, real)
		}
	}
	for _, start := range all {
		for at := start; !m.own(at); at = filepath.Dir(at) {
			if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
				all = append(all, at) // the outermost one counts, too: a submodule lies in its repository
			}
		}
	}
	return all
}

// own says whether a directory is no project: the user's home directory, or the top of a file system.
func (m Machine) own(dir string) bool {
	return filepath.Dir(dir) == dir || dir == m.Config.Home || same(dir, m.Config.Home)
}

// inside says whether a path is dir or lies below it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// script says whether another program runs the file, or whether that cannot be found out.
func script(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }() // it was only read
	var head [2]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return true
	}
	return bytes.Equal(head[:], []byte("#!"))
}

// line is what a person types to start the same.
func (l launch) line() string { return strings.Join(append([]string{l.command}, l.args...), " ") }

package bash

import (
	"path"
	"strings"

	"codehand/tools/guarded"
)

// path is R5 (g): what is wrong with a word as a path that a command reads; "": nothing. Paths are relative without
// `..`, or absolute and inside.
func (p *prover) path(w word) string {
	if why := p.components(w); why != "" {
		return why
	}
	p.paths = append(p.paths, w)
	full := w.text
	if !strings.HasPrefix(full, "/") {
		if p.dir == "" {
			return ""
		}
		full = p.dir + "/" + full
	}
	if !p.inside(path.Clean(full)) {
		return "path " + snippet(w.text) + " is outside"
	}
	return ""
}

// components looks at what stands between slashes. A name also counts behind a colon, as in `HEAD:.env`.
func (p *prover) components(w word) string {
	for from := 0; from <= len(w.text); {
		to := from + len(w.text[from:])
		if i := strings.IndexByte(w.text[from:], '/'); i >= 0 {
			to = from + i
		}
		name := w.text[from:to]
		switch {
		case name == "..":
			return "path " + snippet(w.text) + " goes up"
		case isGitDir(name):
			return "path " + snippet(w.text) + " goes into .git"
		case name != "" && isSecretWord(name):
			return "path " + snippet(w.text) + " has a secret name"
		case strings.HasPrefix(name, ".") && w.shape != "" && strings.ContainsAny(w.shape[from:to], globs):
			return "glob " + snippet(w.text) + " matches hidden names"
		case name != "" && w.shape != "" && strings.ContainsAny(w.shape[from:to], globs) && globsSecret(name, false):
			return "glob " + snippet(w.text) + " matches a secret name"
		}
		from = to + 1
	}
	return ""
}

func isSecretWord(name string) bool {
	for {
		if name != "" && guarded.Secret(name) {
			return true
		}
		i := strings.IndexByte(name, ':')
		if i < 0 {
			return false
		}
		name = name[i+1:]
	}
}

// isGitDir knows .git in every spelling that some file system takes for it.
func isGitDir(name string) bool {
	if len(name) < 4 || name[0] != '.' && name[0]|0x20 != 'g' {
		return false
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// enter notes that relative paths may start in dir from here on. They may also start where they did before, if the `cd`
// fails or was in a pipe; paths that pass are right from there, too.
func (p *prover) enter(dir string) {
	switch {
	case strings.HasPrefix(dir, "/"):
		p.dir = path.Clean(dir)
	case p.dir != "":
		p.dir = path.Join(p.dir, dir)
	}
}

package bash

import (
	"path"
	"strings"

	"codehand/tools/bash/programs"
	"codehand/tools/guarded"
)

// words looks at every word of a command for paths that are secret (D5) or devices (D7).
func (k *check) words(c *simple) {
	name, pattern := "", -1
	for _, h := range c.heads {
		if h.sure && h.via != "find" {
			name, pattern = h.name, h.at
		}
	}
	secret, device := true, true
	switch name {
	case "echo", "printf":
		secret, device = false, false
	case "find", "test", "[":
		secret = false
	default:
		pattern = patternOf(name, c.words, pattern)
	}
	for i := range c.words {
		w := &c.words[i]
		if i == pattern && w.shape&globbed == 0 { // a glob becomes the files that it matches
			continue
		}
		if secret {
			k.secretWord(w, c.dir)
		}
		if device {
			k.deviceWord(w, c.heads[0].row)
		}
	}
}

// isSearch says whether the first operand of a program is what it looks for.
func isSearch(name string) bool {
	row := programs.Of(name)
	return row != nil && row.Takes().First == "pattern"
}

// patternOf returns which word is what a search looks for: text, like that of echo. It is the first word without a
// dash, if no option gives the pattern; a word before it that were a value is not skipped, so that no file is taken for
// it.
func patternOf(name string, words []spelt, at int) int {
	at++
	if name == "git" && at > 0 && at < len(words) && words[at].bare == "grep" {
		name, at = "grep", at+1
	}
	if !isSearch(name) || at == 0 {
		return -1
	}
	if r := read(name, words[at:]); r.instead() {
		return -1
	}
	for ; at < len(words); at++ {
		if t := words[at].bare; t == "--" {
			return at + 1
		} else if !strings.HasPrefix(t, "-") {
			return at
		}
	}
	return -1
}

// secretWord is D5 for one word; dir is where relative paths begin.
func (k *check) secretWord(w *spelt, dir string) {
	if len(w.text) < len(".ssh") && w.shape&globbed == 0 || k.why != "" {
		return
	}
	for p := range pieces(w.text) {
		if name := secretPath(p, w.shape); name != "" {
			k.held("D5", w.text, name+" is secret")
			return
		}
	}
	if w.text != w.bare {
		for p := range pieces(w.bare) {
			if name := secretPath(p, w.shape); name != "" {
				k.held("D5", w.text, name+" is secret")
				return
			}
		}
	}
	if strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "~") {
		if name := secretPath(under(dir, w.text), w.shape); name != "" {
			k.held("D5", w.text, name+" is secret")
		}
	}
}

// pieces are the parts of a word that may be paths: split at `= @ : ,`, and what is glued to a short option.
func pieces(t string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i <= len(t); i++ {
			if i < len(t) && t[i] != '=' && t[i] != '@' && t[i] != ':' && t[i] != ',' {
				continue
			}
			if i > start && !yield(t[start:i]) {
				return
			}
			start = i + 1
		}
		if len(t) < 3 || t[0] != '-' || t[1] == '-' {
			return
		}
		if !yield(t[2:]) {
			return
		}
		if i := strings.IndexAny(t, "./~"); i > 2 {
			yield(t[i:])
		}
	}
}

// secretPath returns the component of a path that is secret; "": none is.
func secretPath(p string, s shape) string {
	first := true
	home := false // the last component is a home directory
	for rest := p; rest != ""; {
		component, after, more := strings.Cut(rest, "/")
		rest = after
		if component == "" {
			first = first && !more
			continue
		}
		if guarded.Secret(component) || home && strings.EqualFold(component, ".config") {
			return component
		}
		if s&globbed != 0 && strings.ContainsAny(component, "*?[") && globsSecret(component, home) {
			return component
		}
		home = isHome(p, component, rest, first)
		first = false
	}
	if strings.Contains(p, "proc/") && secretOfProc(path.Clean(p)) {
		return p
	}
	if strings.Contains(p, "etc/") && guarded.OfSystem(path.Clean(p)) != "" {
		return p
	}
	return ""
}

// isHome says whether a component that ends where rest begins is a home directory, as far as it is written as one.
func isHome(p, component, rest string, first bool) bool {
	if first && (component[0] == '~' || component == "$HOME" || component == "${HOME}") {
		return true
	}
	before := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(p, rest), "/"), component)
	return before == "/home/" || before == "/Users/" || before == "/" && component == "root"
}

// secretOfProc says whether a path is the memory or the environment of a process.
func secretOfProc(p string) bool {
	rest, ok := strings.CutPrefix(p, "/proc/")
	if !ok {
		return false
	}
	process, name, ok := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 { // /proc/1/task/1/environ
		name = name[i+1:]
	}
	switch name {
	case "environ", "mem", "maps":
		return ok && process != "sys"
	}
	return false
}

// globsSecret says whether a component with a glob matches a secret name. Without its first dot no shell matches one
// that begins with a dot.
func globsSecret(pattern string, home bool) bool {
	if pattern[0] != '.' && !strings.HasPrefix(pattern, "id_") {
		return false
	}
	for _, name := range [...]string{".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store",
		".netrc", ".npmrc", ".pypirc", ".git-credentials", ".vault-token", ".htpasswd", ".env", ".env.local",
		".env.production", "id_rsa", "id_ed25519", "id_ecdsa", ".config"} {
		if name == ".config" && !home {
			continue
		}
		if ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name); ok && err == nil {
			return true
		}
	}
	return false
}

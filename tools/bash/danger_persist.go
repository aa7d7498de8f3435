package bash

import (
	"path"
	"strings"

	"codehand/tools/bash/programs"
	"codehand/tools/guarded"
)

// writes says whether a program may write to what its words name, for D7 and D8.
func writes(row *programs.Program) bool {
	if row == nil {
		return false
	}
	switch row.Takes().Kind {
	case "write", "put", "move", "link", "key":
		return true
	}
	return row.Name == "sed" || row.Has("writes")
}

// writesTo is D8 for the words of a command that writes.
func (k *check) writesTo(row *programs.Program, name string, args []spelt) {
	if !writes(row) {
		return
	}
	use := sedOf(name, args)
	if len(use.scripts) > 0 && !use.inPlace && use.plain() {
		return
	}
	for i := range args {
		k.persists(name, &args[i])
	}
	for _, w := range use.named("wW") {
		k.persists(name, &w)
	}
}

// persists is D8 for one word: code that runs later, without another question.
func (k *check) persists(name string, w *spelt) {
	if len(w.text) < 4 {
		return
	}
	for p := range pieces(w.text) {
		if t := lasting(under(k.c.dir, p)); t != "" {
			k.found("D8", name, w.text+" is protected: "+t)
			return
		}
	}
	if w.text == w.bare {
		return
	}
	for p := range pieces(w.bare) {
		if t := lasting(under(k.c.dir, p)); t != "" {
			k.found("D8", name, w.text+" is protected: "+t)
			return
		}
	}
}

// lasting returns what makes a path one that outlives the command; "": nothing does.
func lasting(p string) string {
	if t := guarded.Protected(p); t != "" {
		return t
	}
	if path.Base(p) == "authorized_keys" {
		return "authorized_keys"
	}
	clean := path.Clean(p)
	if strings.HasPrefix(clean, "/etc/") {
		return "/etc"
	}
	for _, dir := range [...]string{".local/bin", "bin"} {
		if in, ok := belowHome(clean, dir); ok && in {
			return "~/" + dir
		}
	}
	return ""
}

// belowHome says whether a path is dir in a home directory, or below it.
func belowHome(p, dir string) (in, ok bool) {
	var rest string
	switch {
	case strings.HasPrefix(p, "~/"):
		rest = p[2:]
	case strings.HasPrefix(p, "$HOME/"):
		rest = p[len("$HOME/"):]
	case strings.HasPrefix(p, "${HOME}/"):
		rest = p[len("${HOME}/"):]
	case strings.HasPrefix(p, "/root/"):
		rest = p[len("/root/"):]
	case strings.HasPrefix(p, "/home/"), strings.HasPrefix(p, "/Users/"):
		_, rest, _ = strings.Cut(p[1:], "/")
		_, rest, _ = strings.Cut(rest, "/")
	default:
		return false, false
	}
	return rest == dir || strings.HasPrefix(rest, dir+"/"), true
}

// link is D11: a symbolic link that leads out of the roots.
func (k *check) link(args []spelt) {
	r := read("ln", args)
	if r.has("-s", "--symbolic") == "" {
		return
	}
	relative := r.has("-r", "--relative") != ""
	dir, operands := "", []string{}
	if w := r.given("-t", "--target-directory"); w != nil {
		dir = w.text + "/"
	}
	for _, w := range r.operands() {
		operands = append(operands, w.text)
	}
	if dir == "" && len(operands) > 1 {
		dir = operands[len(operands)-1]
		operands = operands[:len(operands)-1]
		if len(operands) > 1 {
			dir += "/"
		}
	}
	if relative {
		dir = ""
	}
	for _, target := range operands {
		if k.leadsOut(target, path.Dir(dir)) {
			k.found("D11", "ln", target+" leads out of the roots")
		}
	}
}

// leadsOut says whether a link in dir with this target does not stay below the directory in which the line starts.
func (k *check) leadsOut(target, dir string) bool {
	switch {
	case home(target):
		return true
	case strings.HasPrefix(target, "/"):
		return !k.inside(path.Clean(target))
	case strings.HasPrefix(target, "$"), strings.HasPrefix(dir, "$"):
		return false
	}
	p := under(k.c.dir, path.Join(dir, target))
	if strings.HasPrefix(p, "/") {
		return !k.inside(p)
	}
	return home(p) || p == ".." || strings.HasPrefix(p, "../")
}

package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// table finds what the row of a program says is dangerous about it: parts of D1, D2, D3, D6, D7, D9, and options that
// name a program or hold code.
func (k *check) table(h head, name string, args []spelt) {
	if strings.HasPrefix(name, "mkfs.") {
		name = "mkfs"
	}
	if name == "kill" && !h.quiet {
		k.kill(args)
	}
	r := read(name, args)
	if r.row == nil {
		return
	}
	for _, d := range r.row.Danger {
		switch t := r.has(d.Options...); {
		case len(d.Options) == 0 && !h.quiet:
			k.found(d.Clause, name, d.Why)
		case t != "":
			k.found(d.Clause, name, t+" "+d.Why)
		}
	}
	for i := range r.Options {
		if o := &r.Options[i]; o.Option != nil && o.Kind == programs.Runs {
			k.program(name, args[o.At].text+" names a program")
		}
	}
}

// kill finds signals to all processes or to the first. The first of several words that begins with `-` is the signal.
func (k *check) kill(args []spelt) {
	if len(args) > 1 {
		switch t := args[0].bare; {
		case t == "-s" || t == "-n":
			args = args[min(2, len(args)):]
		case t != "--" && strings.HasPrefix(t, "-"):
			args = args[1:]
		}
	}
	for i := range args {
		if t := args[i].bare; t == "1" || t == "-1" {
			k.found("D7", "kill", t+" is not one process of yours")
		}
	}
}

// rights is the rest of D2: chmod.
func (k *check) rights(name string, args []spelt) {
	if name != "chmod" && name != "gchmod" {
		return
	}
	for i := range args {
		t := args[i].bare
		switch {
		case abbreviates(t, "--recursive"), len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.Contains(t, "R"):
			k.found("D2", "chmod", t+" changes rights recursively")
		case widens(t):
			k.found("D2", "chmod", t+" gives rights to others or to whoever runs it")
		}
	}
}

// widens says whether a mode gives write to others, setuid or setgid.
func widens(mode string) bool {
	if mode == "" {
		return false
	}
	if strings.Trim(mode, "01234567") == "" {
		if n := len(mode); n >= 3 {
			return (mode[n-1]-'0')&2 != 0 || n > 3 && (mode[n-4]-'0')&6 != 0
		}
		return (mode[len(mode)-1]-'0')&2 != 0
	}
	for clause := range strings.SplitSeq(mode, ",") {
		i := strings.IndexAny(clause, "+=")
		if i < 0 || strings.Trim(clause[:i], "ugoa") != "" || strings.Trim(clause[i:], "+-=rwxXstugo") != "" {
			continue
		}
		who, what := clause[:i], clause[i+1:]
		if strings.ContainsAny(who, "oa") && strings.Contains(what, "w") || strings.Contains(what, "s") && who != "o" {
			return true
		}
	}
	return false
}

// destroys is D1 of the table alone, for what runs elsewhere.
func (k *check) destroys(name string, args []spelt) {
	r := read(name, args)
	c := gitCall{}
	if name == "git" {
		c = gitOf(args)
		r = c.reading
	}
	if r.row == nil {
		return
	}
	for _, d := range r.row.Danger {
		if t := r.has(d.Options...); t != "" && d.Clause == "D1" {
			k.found(d.Clause, name, t+" "+d.Why)
		}
	}
	if t := c.destroys(); t != "" {
		k.found("D1", "git "+c.sub, t+" destroys work")
	}
}

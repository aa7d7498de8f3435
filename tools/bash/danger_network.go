package bash

import (
	"path"
	"strings"

	"codehand/tools/bash/programs"
)

// network is the rest of D6, and the programs that show secrets (D5).
func (k *check) network(name string, args []spelt) {
	switch name {
	case "curl":
		k.curl(k.c.reading(k.head))
	case "rsync":
		for i := range args {
			if t := args[i].text; isRemote(t) {
				k.found("D6", name, t+" is on another machine")
			}
		}
	case "security":
		k.keychain(args)
	case "pass":
		if len(args) > 0 && args[0].bare == "show" {
			k.found("D5", name, "show shows secrets")
		}
	}
}

func (k *check) keychain(args []spelt) {
	for i := range args {
		if t := args[i].bare; t == "dump-keychain" || strings.HasPrefix(t, "find-") && strings.HasSuffix(t,
			"-password") {
			k.found("D5", "security", t+" shows secrets")
		}
	}
}

// isRemote says whether an operand of rsync is `host:path`.
func isRemote(t string) bool {
	if strings.HasPrefix(t, "-") || strings.HasPrefix(t, "/") || strings.HasPrefix(t, ".") {
		return false
	}
	i := strings.IndexByte(t, ':')
	return i > 0 && !strings.Contains(t[:i], "/")
}

// curl finds methods that change something, and output outside the roots. What carries data out is in its row.
func (k *check) curl(r *reading) {
	note := k.found
	if isLocal(k.c.words) {
		note = k.held
	}
	for i := range r.Options {
		o := &r.Options[i]
		if o.Option == nil || o.Value < 0 {
			continue
		}
		option, value := r.args[o.At].text, r.value(o).text
		switch m := strings.ToUpper(value); {
		case o.Kind == programs.Write && !isOneOf(value, "/dev/null - /dev/stdout /dev/stderr") && k.outside(value):
			k.held("D6", "curl", option+" "+value+" is outside the roots")
		case (o.Name == "-X" || o.Name == "--request") && m != "GET" && m != "HEAD":
			note("D6", "curl", option+" "+value+" is not a read request")
		}
	}
}

// outside says whether a path is known to be outside the roots, as far as a text tells.
func (k *check) outside(p string) bool {
	switch {
	case p == "" || strings.HasPrefix(p, "$") && !home(p):
		return false
	case home(p):
		return true
	}
	p = under(k.c.dir, p)
	if strings.HasPrefix(p, "/") {
		return !k.inside(path.Clean(p))
	}
	clean := path.Clean(p)
	return home(p) || clean == ".." || strings.HasPrefix(clean, "../")
}

// home says whether a path begins in a home directory.
func home(p string) bool {
	return strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$HOME") || strings.HasPrefix(p, "${HOME}")
}

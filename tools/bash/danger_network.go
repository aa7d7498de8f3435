package bash

import (
	"path"
	"slices"
	"strings"
)

// network is the rest of D6, and the programs that show secrets (D5).
func (k *check) network(name string, args []spelt) {
	switch name {
	case "curl":
		k.curl(args)
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

// curlValued are the letters of curl that take a value.
const curlValued = "AbcCDeEHhmoPQrtuUwxXyYzdFTK"

// curl finds uploads, methods that change something, and output outside the roots.
func (k *check) curl(args []spelt) {
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		if len(t) < 2 || t[0] != '-' {
			continue
		}
		next := ""
		if i+1 < len(args) {
			next = args[i+1].text
		}
		if strings.HasPrefix(t, "--") {
			if k.curlLong(args[i].text, next) {
				i++
			}
			continue
		}
		for n := 1; n < len(t); n++ {
			if strings.IndexByte(curlValued, t[n]) < 0 {
				continue
			}
			value := t[n+1:]
			if value == "" {
				value = next
				i++
			}
			k.curlOption(t[n], t, value)
			break
		}
	}
}

// curlLong looks at a long option and says whether next is its value.
func (k *check) curlLong(t, next string) bool {
	name, value, glued := strings.Cut(t, "=")
	if !glued {
		value = next
	}
	var letter byte
	switch {
	case strings.HasPrefix(name, "--data"), strings.HasPrefix(name, "--form"), name == "--json",
		abbreviates(name, "--upload-file") && len(name) > 3,
		abbreviates(name, "--config") && len(name) > 5:
		letter = 'd'
	case abbreviates(name, "--request") && len(name) > 5:
		letter = 'X'
	case abbreviates(name, "--output") && len(name) > 4, name == "--output-dir", name == "--dump-header",
		name == "--cookie-jar",
		name == "--trace", name == "--trace-ascii", name == "--stderr":
		letter = 'o'
	default:
		return slices.Contains([]string{"--header", "--user", "--user-agent", "--url", "--write-out", "--max-time",
			"--cookie", "--referer", "--proxy"}, name) && !glued
	}
	k.curlOption(letter, t, value)
	return !glued
}

func (k *check) curlOption(letter byte, option, value string) {
	note := k.found
	if isLocal(k.c.words) {
		note = k.held
	}
	switch letter {
	case 'd', 'F', 'T', 'K':
		note("D6", "curl", option+" carries data out or takes options from a file")
	case 'X':
		if m := strings.ToUpper(value); m != "GET" && m != "HEAD" {
			note("D6", "curl", option+" "+value+" is not a read request")
		}
	case 'o', 'D', 'c':
		if value != "/dev/null" && value != "-" && value != "/dev/stdout" && value != "/dev/stderr" &&
			k.outside(value) {
			k.held("D6", "curl", option+" "+value+" is outside the roots")
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

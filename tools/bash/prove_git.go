package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// git is rule R6 for the words behind `git`. What is wrong begins with the blank or colon that goes behind the name.
func (p *prover) git(args []word) string {
	dir := p.dir
	defer func() { p.dir = dir }() // -C holds for this command only
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		switch args[0].text {
		case "--no-pager", "-P", "--no-optional-locks":
			args = args[1:]
			continue
		case "-C":
			if len(args) > 1 && !args[1].glob() && args[1].text != "-" && p.path(args[1]) == "" {
				p.enter(args[1].text)
				args = args[2:]
				continue
			}
		}
		return ": option " + snippet(args[0].text) + " before the sub-command is not on the list"
	}
	if len(args) == 0 {
		return ": there is no sub-command"
	}
	for _, w := range args {
		if startsGPG(w.text) {
			return ": word " + snippet(w.text) + " starts gpg"
		}
	}
	name, rest := args[0].text, args[1:]
	if name == "config" {
		if why := configFault(rest); why != "" {
			return " config: " + why
		}
		return ""
	}
	row := programs.OfSub("git", name)
	if len(rest) > 0 {
		if longer := programs.OfSub("git", name+" "+rest[0].text); longer != nil {
			row, name, rest = longer, name+" "+rest[0].text, rest[1:]
		}
	}
	if row == nil || !row.Reads || name == "*" {
		return " " + snippet(name) + " is not on the list"
	}
	if why := p.match(row, rest); why != "" {
		return " " + name + ": " + why
	}
	if name == "reflog" || name == "reflog show" {
		return reflogFault(p.rest)
	}
	return ""
}

// reflogFault refuses the sub-commands of reflog that write or may come to write.
func reflogFault(operands []word) string {
	for _, w := range operands {
		switch w.text {
		case "expire", "delete", "drop", "exists", "write":
			return " reflog " + w.text + " is not on the list"
		}
	}
	return ""
}

// startsGPG says whether a format would have signatures checked, for which git starts the configured gpg program.
// Between the % and the name, git takes `+`, `-` and a blank in formats of log, and `*` in those of for-each-ref.
func startsGPG(s string) bool {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return false
		}
		s = s[i+1:]
		if strings.HasPrefix(strings.TrimLeft(s, "+- "), "G") {
			return true
		}
		if field, ok := strings.CutPrefix(s, "("); ok && strings.HasPrefix(strings.TrimLeft(field, "* "), "signature") {
			return true
		}
	}
}

// configFault looks at the words of git config: one key is read, and no word may stand behind it, since that sets it.
func configFault(args []word) string {
	reads := false
	if len(args) > 1 {
		switch args[0].text {
		case "--local", "--global", "--system":
			args = args[1:]
			if args[0].text != "--get" && args[0].text != "--get-all" {
				return "word " + snippet(args[0].text) + " is not on the list"
			}
		}
		switch args[0].text {
		case "--get", "--get-all", "get":
			args, reads = args[1:], true
		}
	}
	switch {
	case len(args) == 0:
		return "there is no key"
	case len(args) > 1:
		return "word " + snippet(args[1].text) + " is not on the list"
	}
	key := args[0]
	switch name := strings.ToLower(key.text); {
	case key.glob(), strings.HasPrefix(name, "-"), !reads && !strings.Contains(name, "."):
		return "word " + snippet(key.text) + " is not on the list"
	case strings.HasSuffix(name, "extraheader"), strings.Contains(name, "password"), strings.Contains(name, "token"),
		strings.HasPrefix(name, "credential."):
		return "key " + snippet(key.text) + " may hold a secret"
	}
	return ""
}

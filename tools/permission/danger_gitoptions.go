package permission

import (
	"slices"
	"strings"
)

// gitOptions are the rows of the table about git.
func (k *check) gitOptions(args []spelt) {
	sub, rest, plain := gitCommand(args)
	if !plain {
		k.found("D3", "git", "-c or --config-env before the sub-command sets a key that may run a program")
		return
	}
	for i := range args {
		if strings.HasPrefix(args[i].bare, "ext::") {
			k.found("D3", "git", args[i].text+" runs a program")
			return
		}
	}
	switch sub {
	case "difftool", "mergetool", "instaweb", "send-email", "fast-import":
		k.found("D3", "git", sub+" runs programs")
		return
	case "config":
		if key := setsKey(rest); key != "" {
			k.found("D8", "git config", key+" runs programs later")
		}
		return
	}
	if t := gitProgram(sub, rest); t != "" {
		k.found("D3", "git "+sub, t+" names a program")
	}
}

// gitProgram returns the word with which a git command starts a program; "": none does.
func gitProgram(sub string, args []spelt) string {
	first := ""
	if len(args) > 0 {
		first = args[0].bare
	}
	switch sub {
	case "clone":
		return optionOf(args, "cu", "boj", "--config", "--upload-pack")
	case "push", "archive", "send-pack":
		return optionOf(args, "", "", "--exec", "--receive-pack", "--upload-pack")
	case "rebase":
		return optionOf(args, "x", "XCsS", "--exec")
	case "bisect":
		if first == "run" {
			return first
		}
	case "submodule":
		if slices.ContainsFunc(args, func(w spelt) bool { return w.bare == "foreach" }) {
			return "foreach"
		}
	case "grep":
		return gitGrepPager(args)
	}
	return optionOf(args, "", "", "--upload-pack", "--receive-pack")
}

// gitGrepPager finds -O and its long form where they have a value.
func gitGrepPager(args []spelt) string {
	for i := range args {
		t := args[i].bare
		if t == "--" {
			return ""
		}
		if strings.HasPrefix(t, "--") {
			if abbreviates(t, "--open-files-in-pager") && strings.Contains(t, "=") {
				return t
			}
			continue
		}
		if n := strings.IndexByte(t, 'O'); len(t) > 1 && t[0] == '-' && n > 0 && n+1 < len(t) && !strings.ContainsAny(t[:n], "eABCmf") {
			return t
		}
	}
	return ""
}

// setsKey returns the key of `git config` that is set and that names a program; "": there is none.
func setsKey(args []spelt) string {
	reads := false
	var operands []string
	for i := 0; i < len(args); i++ {
		switch t := args[i].bare; {
		case t == "--get" || t == "--get-all" || t == "--get-regexp" || t == "--list" || t == "-l" || t == "--get-urlmatch" || t == "--get-color":
			reads = true
		case t == "-f" || t == "--file" || t == "--blob" || t == "--type" || t == "--default" || t == "--comment" || t == "--value":
			i++
		case strings.HasPrefix(t, "-"):
		default:
			operands = append(operands, t)
		}
	}
	if len(operands) > 0 {
		switch operands[0] {
		case "get", "list":
			reads = true
		case "set", "unset", "edit", "rename-section", "remove-section":
			operands = append(operands[1:], "")
		}
	}
	if reads || len(operands) < 2 || !runsKey(operands[0]) {
		return ""
	}
	return operands[0]
}

// runsKey says whether a key of git's configuration names a program, or leads to others that do.
func runsKey(key string) bool {
	key = strings.ToLower(key)
	section, rest, ok := strings.Cut(key, ".")
	if !ok {
		return false
	}
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	switch section {
	case "pager", "alias", "filter", "credential", "gpg", "includeif", "difftool", "mergetool", "protocol", "uploadpack",
		"trailer", "browser", "man", "sendemail", "safe":
		return true
	case "core":
		return slices.Contains([]string{"fsmonitor", "hookspath", "pager", "editor", "sshcommand", "askpass", "gitproxy",
			"alternaterefscommand", "worktree", "attributesfile"}, name)
	case "diff":
		return name == "external" || name != rest && (name == "command" || name == "textconv")
	case "merge":
		return name == "driver"
	case "include":
		return name == "path"
	case "interactive":
		return name == "difffilter"
	case "sequence":
		return name == "editor"
	case "submodule":
		return name == "update"
	case "remote":
		return slices.Contains([]string{"uploadpack", "receivepack", "vcs", "proxy"}, name)
	case "url":
		return name == "insteadof" || name == "pushinsteadof"
	case "web":
		return name == "browser"
	}
	return name == "program"
}

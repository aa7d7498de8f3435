package bash

import (
	"slices"
	"strings"

	"codehand/tools/git"
)

// gitOptions are the rows of the table about git.
func (k *check) gitOptions(args []spelt) {
	sub, rest, plain := gitCommand(args)
	if !plain && !harmlessSettings(args) {
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
		if n := strings.IndexByte(t, 'O'); len(t) > 1 && t[0] == '-' && n > 0 && n+1 < len(t) &&
			!strings.ContainsAny(t[:n], "eABCmf") {
			return t
		}
	}
	return ""
}

// setsKey returns the key of `git config` that is set and that names a program; "": there is none.
func setsKey(args []spelt) string {
	if use := gitConfigOf(args); !use.reads && use.key != "" && git.KeyRuns(use.key) {
		return use.key
	}
	return ""
}

// A gitConfigUse is what `git config` does.
type gitConfigUse struct {
	key   string // of what is set, removed or read; "": none is named
	reads bool   // it changes nothing
}

// gitConfigOf reads the arguments of `git config`. One key alone is read, one with a value is set.
func gitConfigOf(args []spelt) (use gitConfigUse) {
	changes := false
	var operands []string
	for i := 0; i < len(args); i++ {
		switch t := args[i].bare; {
		case isOneOf(t, "--get --get-all --get-regexp --list -l --get-urlmatch --get-color --get-colorbool -h --help"):
			use.reads = true
		case isOneOf(t, "--unset --unset-all --add --replace-all --rename-section --remove-section --edit -e"):
			changes = true
		case isOneOf(t, "-f --file --blob --type --default --comment --value"):
			i++
		case strings.HasPrefix(t, "-"):
		default:
			operands = append(operands, t)
		}
	}
	if len(operands) > 0 {
		switch operands[0] {
		case "get", "list":
			use.reads, operands = true, operands[1:]
		case "set", "unset", "edit", "rename-section", "remove-section":
			changes, operands = true, operands[1:]
		}
	}
	if len(operands) > 0 {
		use.key = operands[0]
	}
	use.reads = use.reads || !changes && len(operands) < 2
	return use
}

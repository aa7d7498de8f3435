package bash

import (
	"path"
	"strings"
)

// destroys is the rest of D1.
func (k *check) destroys(name string, args []spelt) {
	switch name {
	case "rm", "grm":
		if t := optionOf(args, "rRf", "", "--recursive", "--force"); t != "" {
			k.found("D1", name, t+" removes without asking or recursively")
		}
	case "find", "gfind":
		for i := range args {
			switch t := args[i].bare; t {
			case "-delete", "-exec", "-execdir", "-ok", "-okdir":
				k.found("D1", name, t+" changes what it finds")
			}
		}
	case "git":
		sub, args, plain := gitCommand(args)
		if !plain && !harmlessSettings(args) {
			return // see gitOptions
		}
		if t := gitDestroys(sub, args); t != "" {
			k.found("D1", "git "+sub, t+" destroys work")
		}
	}
}

// optionOf returns the first word of args before `--` that is one of the long options, perhaps shortened, or has one of
// letters in a cluster; "": none. A letter of valued takes the rest of its word.
func optionOf(args []spelt, letters, valued string, long ...string) string {
	for i := range args {
		t := args[i].bare
		if t == "--" {
			return ""
		}
		if isOption(t, letters, valued, long...) {
			return t
		}
	}
	return ""
}

func isOption(t, letters, valued string, long ...string) bool {
	if len(t) < 2 || t[0] != '-' {
		return false
	}
	if t[1] == '-' {
		for _, l := range long {
			if abbreviates(t, l) {
				return true
			}
		}
		return false
	}
	for i := 1; i < len(t); i++ {
		if strings.IndexByte(letters, t[i]) >= 0 {
			return true
		}
		if strings.IndexByte(valued, t[i]) >= 0 {
			return false
		}
	}
	return false
}

// gitCommand finds the sub-command behind git's own options. not plain: an option there runs programs or sets keys.
func gitCommand(args []spelt) (sub string, rest []spelt, plain bool) {
	plain = true
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		switch {
		case t == "-C", t == "--git-dir", t == "--work-tree", t == "--namespace", t == "--super-prefix",
			t == "--attr-source":
			i++
		case t == "--config-env":
			plain = false
			i++
		case t == "-c":
			plain = false
			i++
		case strings.HasPrefix(t, "-c"), abbreviates(t, "--config-env"):
			plain = false
		case strings.HasPrefix(t, "-"):
		default:
			return t, args[i+1:], plain
		}
	}
	return "", nil, plain
}

// gitDestroys returns the word of a git command that loses work; "": none does.
func gitDestroys(sub string, args []spelt) string {
	first := ""
	if len(args) > 0 {
		first = args[0].bare
	}
	switch sub {
	case "push":
		return gitPush(args)
	case "reset":
		return optionOf(args, "", "", "--hard")
	case "clean":
		if optionOf(args, "n", "e", "--dry-run") == "" {
			return "without -n it"
		}
	case "checkout":
		return gitCheckout(args)
	case "switch":
		return optionOf(args, "f", "cC", "--force", "--discard-changes")
	case "restore":
		if optionOf(args, "S", "s", "--staged") == "" || optionOf(args, "W", "s", "--worktree") != "" {
			return "without --staged alone it"
		}
	case "stash":
		if first == "drop" || first == "clear" {
			return first
		}
	case "branch":
		if t := optionOf(args, "D", "u"); t != "" {
			return t
		}
		if optionOf(args, "d", "u", "--delete") != "" {
			return optionOf(args, "f", "u", "--force")
		}
	case "update-ref":
		return optionOf(args, "d", "m", "--delete")
	case "reflog":
		if first == "expire" || first == "delete" {
			return first
		}
	case "gc":
		return gitPrunes(args)
	case "filter-branch", "filter-repo":
		return sub
	case "rm":
		return optionOf(args, "r", "")
	case "worktree":
		if first == "remove" {
			return optionOf(args[1:], "f", "", "--force")
		}
	case "submodule":
		if first == "deinit" {
			return optionOf(args[1:], "f", "", "--force")
		}
	}
	return ""
}

func gitPush(args []spelt) string {
	if t := optionOf(args, "fd", "o", "--force-with-lease", "--force-if-includes", "--mirror", "--delete"); t != "" {
		return t
	}
	for i := range args {
		if t := args[i].bare; strings.HasPrefix(t, "+") || strings.HasPrefix(t, ":") {
			return t
		}
	}
	return ""
}

func gitCheckout(args []spelt) string {
	if t := optionOf(args, "f", "bB", "--force"); t != "" {
		return t
	}
	for i := range args {
		if t := args[i].bare; t == "--" || t == ":/" || t != "" && path.Clean(t) == "." {
			return t
		}
	}
	return ""
}

func gitPrunes(args []spelt) string {
	for i := range args {
		if t := args[i].bare; abbreviates(t, "--prune") &&
			(strings.HasSuffix(t, "=now") || strings.HasSuffix(t, "=all")) {
			return t
		}
	}
	return ""
}

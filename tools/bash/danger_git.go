package bash

import (
	"path"
	"strings"

	"codehand/tools/bash/programs"
	"codehand/tools/git"
)

// git is what is dangerous about git: D1, D3, D8.
func (k *check) git(c *gitCall, args []spelt) {
	name := "git " + c.sub
	if !c.plain() && !harmlessSettings(args) {
		k.program("git", "-c or --config-env before the sub-command sets a key that may run a program")
	}
	for i := range args {
		if strings.HasPrefix(args[i].bare, "ext::") {
			k.program("git", args[i].text+" runs a program")
			return
		}
	}
	if c.row == nil {
		return
	}
	for _, d := range c.row.Danger {
		if t := c.has(d.Options...); t != "" {
			c.note(k)(d.Clause, name, t+" "+d.Why)
		} else if len(d.Options) == 0 {
			k.found(d.Clause, "git", c.sub+" "+d.Why)
		}
	}
	if t := c.destroys(); t != "" {
		c.note(k)("D1", name, t+" destroys work")
	}
	for i := range c.Options {
		// a bare -O of git grep only asks for the pager
		if o := &c.Options[i]; o.Option != nil && o.Kind == programs.Runs && o.Value >= 0 {
			k.program(name, c.args[o.At].text+" names a program")
		}
	}
	switch first := c.firstWord(); {
	case c.sub == "bisect" && first == "run", c.bisectRuns(), c.sub == "submodule" && c.hasWord("foreach"):
		k.program(name, "it runs its words as a command")
	case c.sub == "config":
		if key := setsKey(c.args); key != "" {
			k.found("D8", "git config", key+" runs programs later")
		}
	}
}

// note is how what a git command destroys is noted: what is on another machine or only in the repository is kept by
// nothing, but commits are by git itself.
func (c *gitCall) note(k *check) func(clause, word, text string) {
	switch c.sub {
	case "branch":
		return k.held
	case "push":
		if c.has("-n", "--dry-run") != "" || c.has("-f", "-d", "--force", "--mirror", "--delete", "--prune") == "" &&
			c.destroys() == "" {
			return k.held // --force-with-lease overwrites only what was seen
		}
		return k.afar
	case "reflog", "gc", "update-ref", "filter-branch", "filter-repo", "worktree", "submodule":
		return k.afar
	}
	return k.found
}

// firstWord is the first word behind the sub-command.
func (c *gitCall) firstWord() string {
	if len(c.args) == 0 {
		return ""
	}
	return c.args[0].bare
}

func (c *gitCall) hasWord(word string) bool {
	for i := range c.args {
		if c.args[i].bare == word {
			return true
		}
	}
	return false
}

// destroys returns the word of a git command that loses work, where more than one option decides; "": none does.
func (c *gitCall) destroys() string {
	first := c.firstWord()
	switch c.sub {
	case "push":
		for i := range c.args {
			if t := c.args[i].bare; strings.HasPrefix(t, "+") || strings.HasPrefix(t, ":") {
				return t
			}
		}
	case "clean":
		if c.has("-n", "--dry-run") == "" {
			return "without -n it"
		}
	case "checkout":
		for i := range c.args {
			if t := c.args[i].bare; t == "--" || t == ":/" || t != "" && path.Clean(t) == "." {
				return t
			}
		}
	case "restore":
		if c.has("-S", "--staged") == "" || c.has("-W", "--worktree") != "" {
			return "without --staged alone it"
		}
	case "branch":
		if c.has("-d", "--delete") != "" {
			return c.has("-f", "--force")
		}
	case "gc":
		if w := c.given("--prune"); w != nil && (w.text == "now" || w.text == "all") {
			return "--prune=" + w.text
		}
	case "filter-branch", "filter-repo":
		return c.sub
	case "stash":
		return isFirst(first, "drop clear")
	case "reflog":
		return isFirst(first, "expire delete")
	case "worktree":
		if first == "remove" {
			return c.has("-f", "--force")
		}
	case "submodule":
		if first == "deinit" {
			return c.has("-f", "--force")
		}
	}
	return ""
}

func isFirst(word, list string) string {
	if isOneOf(word, list) {
		return word
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

// bisectRuns says whether the words behind `git bisect view` are a sub-command of git, an alias or a program: what
// does not begin with a dash (git 2.39.5, builtin/bisect--helper.c, bisect_visualize).
func (c *gitCall) bisectRuns() bool {
	return c.sub == "bisect" && isOneOf(c.firstPlain(), "view visualize") &&
		len(readAs(gitRow("log"), c.args).Operands) > 1
}

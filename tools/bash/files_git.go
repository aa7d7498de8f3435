package bash

import (
	"path"
	"slices"
	"strings"
)

// gitPaths are the paths that a git command changes as it is told to: its operands, and its own configuration.
func gitPaths(args []spelt) (reads, writes []spelt) {
	c := gitOf(args)
	dir, known := c.starts()
	first := c.firstPlain()
	switch c.sub {
	case "rm", "mv":
		if known { // nothing is known behind --git-dir and the like
			writes = c.operands()
		}
	case "config":
		writes = gitConfigured(c.args)
	case "remote":
		if isOneOf(first, "add rm remove rename set-url set-branches") {
			writes = []spelt{literalSpelt(".git/config")}
		}
	case "submodule":
		switch {
		case isOneOf(first, "add set-url set-branch"):
			writes = []spelt{literalSpelt(".gitmodules"), literalSpelt(".git/config")}
		case isOneOf(first, "init deinit sync absorbgitdirs"), first == "update" && c.has("--init") != "":
			writes = []spelt{literalSpelt(".git/config")}
		}
	case "init":
		if c.has("--template") != "" { // which brings hooks
			writes = []spelt{literalSpelt(".git/hooks")}
		}
	case "lfs":
		if isOneOf(first, "install update") {
			writes = []spelt{literalSpelt(".git/hooks")}
		}
	default:
		reads = c.reads()
		if c.row != nil {
			_, writes = c.values()
		}
	}
	return seenFrom(dir, reads), seenFrom(dir, writes)
}

// firstPlain is the first word behind the sub-command that is no option; "": there is none.
func (c *gitCall) firstPlain() string {
	if words := plainDashes(c.args); len(words) > 0 {
		return words[0].bare
	}
	return ""
}

// starts is where -C makes git start. Not known: git also works in another place than the text tells.
func (c *gitCall) starts() (dir spelt, known bool) {
	for i := range c.own.Options {
		o := &c.own.Options[i]
		if o.Option == nil || o.Name != "-C" || o.Value < 0 {
			continue
		}
		at := dir
		dir = c.own.value(o)
		if dir.text, dir.shape = under(at.text, dir.text), dir.shape|at.shape; len(dir.text) > maxPath {
			return spelt{}, false
		}
	}
	return dir, !c.elsewhere()
}

// seenFrom are paths as seen from where the command stands. Where that is not known, their names alone count.
func seenFrom(dir spelt, words []spelt) []spelt {
	if dir.text == "" || !dir.known() && dir.shape != homely {
		return words
	}
	for i := range words {
		if !rooted(words[i].text) || words[i].text[0] == '~' && words[i].shape&homely == 0 {
			words[i].shape |= dir.shape
			words[i].text = path.Join(dir.text, words[i].text)
			words[i].bare = words[i].text
		}
	}
	return words
}

// gitConfigured is the file that `git config` changes; none: it only reads.
func gitConfigured(args []spelt) []spelt {
	use := gitConfigOf(args)
	if use.reads {
		return nil
	}
	r := readAs(gitRow("config"), args)
	switch file := r.given("-f", "--file"); {
	case file != nil:
		return []spelt{*file}
	case r.has("--global") != "":
		return []spelt{{text: "~/.gitconfig", bare: "~/.gitconfig", shape: homely}}
	case r.has("--system") != "":
		return []spelt{literalSpelt("/etc/gitconfig")}
	case r.has("--worktree") != "":
		return []spelt{literalSpelt(".git/config.worktree")}
	}
	return []spelt{literalSpelt(".git/config")}
}

// reads are the files that git shows: `REV:path`, and what stands behind the options of a command that shows contents.
// Git's own revisions are among them, as the text does not tell them from names; no rule is about those.
func (c *gitCall) reads() []spelt {
	if !gitShows(c.sub) || c.row == nil {
		return nil
	}
	reads, _ := c.values()
	for _, w := range c.operands()[c.skipped():] {
		if name := pathInRevision(w.text); name != "" {
			w.text, w.bare = name, name
		}
		reads = append(reads, w)
	}
	return reads
}

// gitShows says whether a git command shows contents of files.
func gitShows(sub string) bool {
	return isOneOf(sub, "show diff log whatchanged format-patch range-diff diff-tree diff-index diff-files blame "+
		"annotate cat-file archive stash reflog checkout-index apply grep")
}

// showsText says whether a git command shows more of files than their names.
func (c *gitCall) showsText() bool {
	patch := c.has("-p", "-u", "-U", "-L", "-W", "-c", "--patch", "--unified", "--cc", "--patch-with-stat",
		"--function-context") != ""
	switch c.sub {
	case "log", "reflog":
		return patch
	case "show", "diff", "stash", "diff-tree":
		return patch || c.has("-s", "--stat", "--numstat", "--shortstat", "--name-only", "--name-status", "--summary",
			"--no-patch", "--quiet", "--dirstat") == ""
	}
	return c.sub != "blame" && c.sub != "annotate"
}

// namesBlobs says whether each operand of a git command is `REV:path`.
func namesBlobs(args []spelt) bool {
	named := false
	for i := range args {
		switch t := args[i].bare; {
		case t == "--":
			return false
		case t == "" || t[0] == '-':
		case !strings.Contains(t, ":") || strings.HasSuffix(t, ":"):
			return false
		default:
			named = true
		}
	}
	return named
}

// behindDashes are the words behind `--`.
func behindDashes(args []spelt) []spelt {
	for i := range args {
		if args[i].bare == "--" {
			return slices.Clone(args[i+1:])
		}
	}
	return nil
}

// isOneOf says whether a word is one of a list with blanks between.
func isOneOf(word, list string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

func literalSpelt(text string) spelt { return spelt{text: text, bare: text} }

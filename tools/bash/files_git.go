package bash

import (
	"path"
	"slices"
	"strings"
)

// gitPaths are the paths that a git command changes as it is told to: its operands, and its own configuration.
func gitPaths(c *gitCall) (reads, writes []spelt) {
	dir, known := c.starts()
	first := c.firstPlain()
	switch c.sub {
	case "rm", "mv":
		if known { // nothing is known behind --git-dir and the like
			writes = c.operands()
		}
	case "checkout", "restore", "checkout-index":
		writes = c.restored()
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

// restored are the files that git checkout, restore and checkout-index write, as far as their words can be nothing
// else.
func (c *gitCall) restored() []spelt {
	switch {
	case c.sub == "checkout":
		return behindDashes(c.args)
	case c.sub == "restore" && c.has("-S", "--staged") != "" && c.has("-W", "--worktree") == "":
		return nil // it changes the index only
	}
	return c.operands()
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
	if !c.row.Has("contents") {
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
	if word == "" || strings.IndexByte(word, ' ') >= 0 {
		return false
	}
	for from := 0; ; {
		i := strings.Index(list[from:], word)
		if i < 0 {
			return false
		}
		i += from
		from = i + len(word)
		if (i == 0 || list[i-1] == ' ') && (from == len(list) || list[from] == ' ') {
			return true
		}
	}
}

func literalSpelt(text string) spelt { return spelt{text: text, bare: text} }

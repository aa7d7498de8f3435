package bash

import (
	"path"
	"slices"
	"strings"

	"codehand/tools/bash/programs"
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
			writes = []spelt{ownSpelt(".git/config")}
		}
	case "submodule":
		switch {
		case isOneOf(first, "add set-url set-branch"):
			writes = []spelt{ownSpelt(".gitmodules"), ownSpelt(".git/config")}
		case isOneOf(first, "init deinit sync absorbgitdirs"), first == "update" && c.has("--init") != "":
			writes = []spelt{ownSpelt(".git/config")}
		}
	case "worktree":
		if known && first == "remove" {
			writes = plainDashes(c.args)[1:]
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

// ownSpelt is a file by which git itself is configured.
func ownSpelt(name string) spelt { return spelt{text: name, bare: name, shape: ofGit} }

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
		return []spelt{ownSpelt(".git/config.worktree")}
	}
	return []spelt{ownSpelt(".git/config")}
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

// eachGit calls visit for each call of git that a command is known to be.
func (c *simple) eachGit(visit func(call *gitCall)) {
	for n, h := range c.heads {
		if !h.quiet && h.name == "git" {
			visit(c.reading(n).gitCall())
		}
	}
}

// gitPlaces are the directories in which git may start, as the shell would enter them: relative to where the line
// starts; all: there are no others.
func (f *finding) gitPlaces() (places []string, all bool) {
	all = !f.odd
	for i := range f.commands {
		c := &f.commands[i]
		all = all && !c.moves()
		c.eachGit(func(call *gitCall) {
			for _, at := range append([]ground{c.ground}, c.others...) {
				place, known := at.gitStart(call)
				places, all = append(places, place), all && known
			}
		})
	}
	slices.Sort(places)
	places = slices.Compact(places)
	return places, all && len(places) <= maxGrounds
}

// gitStart is where git starts for which a shell stands there. Not ok: the text does not tell, or a link may lead
// elsewhere than the text.
func (st *ground) gitStart(call *gitCall) (place string, ok bool) {
	dir, known := call.starts()
	if dir.text == "" {
		dir = literalSpelt(".")
	}
	c := simple{stand: stand{ground: *st}}
	place, ok = c.place(&dir)
	for i := range len(call.own.args) - len(call.args) {
		ok = ok && call.own.args[i].shape&computed == 0 // it may be -C
	}
	ok = ok && known && !strings.HasPrefix(place, "~") && !slices.Contains(strings.Split(place, "/"), "..")
	return path.Clean(place), ok
}

// moves says whether the shell may stand elsewhere behind a command than the text tells.
func (c *simple) moves() bool {
	return slices.ContainsFunc(c.heads, func(h head) bool {
		return !h.quiet && (isOneOf(h.name, "eval source . builtin trap alias enable exec") ||
			h.at > 0 && isOneOf(h.name, "cd pushd popd") || c.words[h.at].shape&computed != 0)
	})
}

// shows says whether git may show contents of files that its words do not name, as far as its row and its options tell.
// Options that the table does not know count as if they made it.
func (c *gitCall) shows() bool {
	switch {
	case c.sub == "", isOneOf(c.sub, "blame annotate apply"):
		return false
	case c.row == nil, c.told(programs.Shows):
		return true
	case isOneOf(c.sub, "log whatchanged diff diff-files diff-tree diff-index show"):
	case isOneOf(c.sub, "branch tag for-each-ref"): // %(raw) is what is in an object
		return slices.ContainsFunc(c.args, func(w spelt) bool { return strings.Contains(w.text, "raw") })
	case isOneOf(c.sub, "stash bisect notes fsck mktree update-index read-tree worktree rerere reflog"):
		return true // perhaps: what else they do is not looked at
	default:
		return !c.row.Has("names")
	}
	for i := range c.Options {
		o := &c.Options[i]
		text := c.args[o.At].bare
		if number := len(text) > 1 && strings.Trim(text[1:], "0123456789") == ""; o.Option == nil && !number {
			return true
		}
	}
	return c.does(programs.Shows) && !c.told(programs.Hides)
}

// changes says whether git may change files that its words do not name.
func (c *gitCall) changes() bool {
	switch first := c.firstPlain(); c.sub {
	case "checkout", "switch": // a new branch that begins here changes nothing
		return c.has("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan") == "" || len(c.operands()) > 0
	case "restore":
		return len(c.restored()) > 0 || c.has("--pathspec-from-file") != ""
	case "reset":
		return c.has("--hard", "--merge", "--keep", "-p", "--patch") != ""
	case "apply":
		return !mayHave(c.args, "", "--stat", "--numstat", "--summary", "--check") || mayHave(c.args, "", "--apply")
	case "read-tree":
		return mayHave(c.args, "u", "--reset")
	case "stash":
		return !isOneOf(first, "list show drop clear create store")
	case "submodule":
		return isOneOf(first, "update deinit")
	case "sparse-checkout":
		return !isOneOf(first, "list check-rules")
	case "bisect":
		return !isOneOf(first, "log view visualize terms")
	}
	return isOneOf(c.sub, "checkout-index rm mv merge-file mergetool merge pull cherry-pick revert rebase am "+
		"filter-branch checkout--worker")
}

// pathInRevision is the path in `REV:path` and `:N:path`, relative to where git starts if it begins with ./, else to
// the top of the repository; "": there is none.
func pathInRevision(text string) string {
	_, name, is := strings.Cut(text, ":")
	if stage, rest, staged := strings.Cut(name, ":"); staged && len(stage) == 1 && isDigit(stage[0]) {
		name = rest
	}
	if !is || name == "" || name[0] == '/' {
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

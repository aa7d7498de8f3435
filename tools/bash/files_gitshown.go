package bash

import (
	"path"
	"slices"
	"strings"

	"codehand/tools/bash/programs"
	"codehand/tools/git"
)

// shows notes what a command shows and changes of the files of a repository if it is git. added: a command before it
// may have made git keep more; the result says so for the next.
func (a *Analysis) shows(c *simple, added bool) bool {
	for n, h := range c.heads {
		if h.quiet || h.name != "git" {
			continue
		}
		call := c.reading(n).gitCall()
		added = added || call.does(programs.Adds)
		show, shows := call.shown()
		change, changes := call.changed()
		if shows && added {
			a.unsure(true, false, "git shows what it is given in the same command")
		}
		dir, known := call.starts()
		from, ok := c.gitStart(&dir)
		if !known || !ok {
			a.unsure(shows, changes, "git uses files of a repository that is not in the text")
			from, show = path.Clean(under(c.dir, ".")), git.Show{Past: true, Whole: true}
			change = show
		}
		show.From, change.From = from, from
		if shows {
			a.Shows = append(a.Shows, show)
		}
		if changes {
			a.Changes = append(a.Changes, change)
		}
	}
	return added
}

// gitStart is where git starts that is told so by -C.
func (c *simple) gitStart(dir *spelt) (string, bool) {
	if dir.text == "" {
		dir = &spelt{text: ".", bare: "."}
	}
	p, ok := c.place(dir)
	return path.Clean(p), ok
}

// shown is what a git command shows of files, but for those that its words name as `git blame` does. not ok: nothing. A
// command that is not known here may be an alias.
func (c *gitCall) shown() (s git.Show, ok bool) {
	everything := git.Show{Past: true, Whole: true}
	switch first := c.firstPlain(); c.sub {
	case "", "blame", "annotate", "apply":
		return s, false
	case "show":
		s = c.words(git.Show{Past: true, Blobs: !c.showsPatch()})
		return s, true
	case "diff":
		s = c.words(git.Show{Trees: true, Past: c.has("--cached", "--staged", "--merge-base") != ""})
		return s, c.showsPatch() && c.has("--no-index") == "" // of which the operands are files
	case "diff-files":
		return c.words(s), c.showsPatch()
	case "log", "whatchanged", "diff-tree", "diff-index":
		return c.words(git.Show{Trees: true, Past: true}), c.showsPatch()
	case "reflog": // its options are those of log
		return everything, c.showsPatch()
	case "stash":
		switch first {
		case "show":
			return everything, c.as("stash show").showsPatch()
		case "list": // its options are those of log
			return everything, c.as("log").showsPatch()
		}
		return everything, mayHave(c.args, "pu", "--patch")
	case "bisect": // options of view are those of log
		return everything, isOneOf(first, "view visualize") && (c.bisectRuns() || c.as("log").showsPatch())
	case "notes": // which may hold what is in any file
		return everything, !c.notesQuiet()
	case "fsck": // it writes contents to files that have other names
		return everything, mayHave(c.args, "", "--lost-found")
	case "cat-file":
		return c.object()
	case "grep":
		return c.words(git.Show{Trees: true, Past: mayHave(c.args, "", "--recurse-submodules")}), true
	case "checkout-index":
		return c.words(s), true
	case "archive", "format-patch", "range-diff":
		return c.words(git.Show{Trees: true, Past: true}), true
	case "add", "stage", "commit", "status", "checkout", "reset", "restore", "rebase", "am":
		return everything, c.told(programs.Shows)
	case "for-each-ref", "branch", "tag": // %(raw) is what is in an object
		return everything, c.hasPart("(raw") || c.hasPart("(*raw")
	case "mktree": // what git keeps gets another name
		return everything, true
	case "update-index":
		return everything, mayHave(c.args, "", "--cacheinfo", "--index-info")
	case "read-tree":
		return everything, mayHave(c.args, "", "--prefix")
	case "worktree":
		return everything, first == "add"
	case "rerere":
		return everything, first == "diff"
	}
	return everything, !c.row.Has("names")
}

// changed is which files of the work tree a git command changes. not ok: none that git tracks.
func (c *gitCall) changed() (s git.Show, ok bool) {
	everything := git.Show{Past: true, Whole: true}
	switch first := c.firstPlain(); c.sub {
	case "checkout":
		// a new branch that begins here changes nothing
		fresh := c.has("-b", "-B", "--orphan") != ""
		return c.words(s), !fresh || len(c.operands()) > 0
	case "switch":
		fresh := c.has("-c", "-C", "--create", "--force-create", "--orphan") != ""
		return everything, !fresh || len(c.operands()) > 0
	case "restore":
		return c.words(s), len(c.restored()) > 0 || c.has("--pathspec-from-file") != ""
	case "checkout-index", "rm", "mv":
		return c.words(s), true
	case "reset":
		return everything, c.has("--hard", "--merge", "--keep", "-p", "--patch") != ""
	case "apply":
		looks := mayHave(c.args, "", "--stat", "--numstat", "--summary", "--check")
		return everything, !looks || mayHave(c.args, "", "--apply")
	case "read-tree":
		return everything, mayHave(c.args, "u", "--reset")
	case "stash":
		return everything, !isOneOf(first, "list show drop clear create store")
	case "submodule":
		return everything, isOneOf(first, "update deinit")
	case "sparse-checkout":
		return everything, !isOneOf(first, "list check-rules")
	case "bisect":
		return everything, !isOneOf(first, "log view visualize terms") || c.bisectRuns()
	case "merge-file", "mergetool", "merge", "pull", "cherry-pick", "revert", "rebase", "am", "filter-branch",
		"checkout--worker":
		return everything, true
	}
	return s, false
}

// words adds to s the operands of a git command.
func (c *gitCall) words(s git.Show) git.Show {
	if c.row == nil {
		s.Past, s.Whole = true, true
		return s
	}
	behind := behindDashes(c.args)
	operands := c.operands()[c.skipped():]
	operands = operands[:max(0, len(operands)-len(behind))]
	s.Dashes = len(behind) > 0 || c.hasWord("--")
	s.Words, s.Paths = texts(operands), texts(behind)
	if len(s.Words)+len(s.Paths) < len(operands)+len(behind) { // some are not in the text
		s.Past, s.Whole = true, true
	}
	return s
}

// texts are the words of which the text tells what they are.
func texts(words []spelt) (known []string) {
	for i := range words {
		if words[i].known() {
			known = append(known, words[i].text)
		}
	}
	return known
}

// object is what `git cat-file` shows.
func (c *gitCall) object() (git.Show, bool) {
	if mayHave(c.args, "", "--batch", "--batch-command") && !c.hasWord("--batch-check") {
		return git.Show{Past: true, Whole: true}, true // what it is fed
	}
	s := c.words(git.Show{Past: true, Blobs: true})
	if len(s.Words) > 1 && isOneOf(s.Words[0], "blob tree commit tag") {
		s.Words = s.Words[1:]
	}
	s.Dashes = true
	return s, c.has("-t", "-s", "-e") == "" && !c.hasWord("--batch-check")
}

// hasPart says whether a word has a text in it.
func (c *gitCall) hasPart(text string) bool {
	return slices.ContainsFunc(c.args, func(w spelt) bool { return strings.Contains(w.text, text) })
}

// as reads the words of a git command by the row of another sub-command.
func (c *gitCall) as(sub string) *gitCall {
	return &gitCall{own: c.own, sub: c.sub, args: c.args, reading: readAs(gitRow(sub), c.args)}
}

// notesQuiet says whether `git notes` shows no note and makes none of what git keeps. The value of an option may stand
// where the sub-command seems to be.
func (c *gitCall) notesQuiet() bool {
	first := c.firstWord()
	if isOneOf(first, "add append edit") {
		return !mayHave(c.args, "Cc", "--reuse-message", "--reedit-message")
	}
	return len(c.args) == 0 || isOneOf(first, "list copy remove prune merge get-ref")
}

// bisectRuns says whether the words behind `git bisect view` are a sub-command of git, an alias or a program: what
// does not begin with a dash (git 2.39.5, builtin/bisect--helper.c, bisect_visualize).
func (c *gitCall) bisectRuns() bool {
	return c.sub == "bisect" && isOneOf(c.firstPlain(), "view visualize") && len(c.as("log").Operands) > 1
}

// showsPatch says whether a git command shows more of files than their names. Options that the table does not know
// count as if they made it.
func (c *gitCall) showsPatch() bool {
	if c.row == nil || c.told(programs.Shows) {
		return true
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

// searches are the places in which git looks for files that it does not track: of `git grep` and `git diff`.
func (c *gitCall) searches() []spelt {
	dir, _ := c.starts()
	switch {
	case c.sub == "grep" && mayHave(c.args, "", "--no-index", "--untracked"):
		return seenFrom(dir, []spelt{literalSpelt(".")})
	case c.sub == "diff" && mayHave(c.args, "", "--no-index"):
		return seenFrom(dir, plainDashes(c.args))
	}
	return nil
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

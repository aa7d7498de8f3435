package bash

import (
	"path"
	"slices"
	"strings"
)

// shows notes the places whose tracked files a command shows if it is git: those behind `--`, or the whole repository.
// added: a command before it may have made git keep more; the result says so for the next.
func (a *Analysis) shows(c *simple, added bool) bool {
	for _, h := range c.heads {
		if h.quiet || c.words[h.at].name() != "git" {
			continue
		}
		args := c.words[h.at+1 : h.end]
		git := gitOf(args)
		added = added || git.addsFiles()
		if !git.showsTracked() {
			continue
		}
		if added {
			a.unsure(true, false, "git shows what it is given in the same command")
		}
		dir, known := git.starts()
		from, ok := c.gitStart(&dir)
		if !known || !ok {
			a.unsure(true, false, "git shows files of a repository that is not in the text")
			from = path.Clean(under(c.dir, "."))
		}
		if !slices.Contains(a.ShowsFrom, from) {
			a.ShowsFrom = append(a.ShowsFrom, from)
		}
		below := seenFrom(dir, behindDashes(git.args))
		if len(below) == 0 || !known || !ok {
			a.Shows = []string{"/"}
			continue
		}
		for i := range below {
			p, ok := c.place(&below[i])
			// `:!x` is all but x, and git has globs of its own
			if !ok || strings.HasPrefix(below[i].text, ":") || strings.ContainsAny(below[i].text, globs) {
				p = "/"
			}
			a.Shows = append(a.Shows, path.Clean(p))
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

// showsTracked says whether a git command shows contents of tracked files that its words do not name. A command that is
// not known here may be an alias.
func (c *gitCall) showsTracked() bool {
	switch {
	case gitShows(c.sub):
		if c.sub == "diff" && mayHave(c.args, "", "--no-index") {
			return false // its operands are files
		}
		if c.sub == "reflog" && mayHave(c.args, "pu", "--patch") {
			return true // its options are those of log
		}
		return c.showsText() && !namesBlobs(c.args)
	case isOneOf(c.sub, "add commit status checkout reset restore rebase am"):
		return mayHave(c.args, "vp", "--verbose", "--patch", "--interactive", "--show-current-patch")
	}
	return c.sub != "" && !showsNames(c.sub)
}

// showsNames knows the commands of git 2.47 that show no contents of files.
func showsNames(sub string) bool {
	return isOneOf(sub, "bisect branch check-attr check-ignore check-mailmap cherry cherry-pick clean commit-graph "+
		"commit-tree config count-objects describe fetch for-each-ref fsck gc hash-object help init lfs ls-files "+
		"ls-remote ls-tree maintenance merge merge-base mktag mktree mv name-rev notes pack-refs prune pull push "+
		"read-tree remote repack replace rerere rev-list rev-parse revert rm shortlog show-ref sparse-checkout stage "+
		"submodule switch symbolic-ref tag update-index update-ref update-server-info var verify-commit verify-pack "+
		"verify-tag version write-tree")
}

// addsFiles says whether a git command makes git keep files that it did not track, so that what it tracks before the
// command says nothing about what it shows then.
func (c *gitCall) addsFiles() bool {
	switch c.sub {
	case "add", "stage", "update-index", "hash-object":
		return true
	case "stash":
		return mayHave(c.args, "ua", "--include-untracked", "--all")
	}
	return false
}

// gitSearches are the places in which git looks for files that it does not track: of `git grep` and `git diff`.
func gitSearches(args []spelt) []spelt {
	c := gitOf(args)
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

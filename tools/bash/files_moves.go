package bash

import (
	"slices"
	"strings"
)

// A Move is one place to which a git command brings other contents of files than are there. Git itself can say before
// which files these are.
type Move struct {
	Dir string // where git starts, as Loss.Path
	// Lists are arguments by which git prints names from the top of the work tree on, each with a NUL behind it. The
	// first that it can run tells: a word may be a branch, or a file.
	Lists [][]string
}

// diffNames and logNames begin the lists of Move.
var (
	diffNames = []string{"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules"}
	logNames = []string{"log", "--no-walk=unsorted", "-m", "--format=", "--name-only", "-z", "--no-renames"}
)

// differ lists what is different between HEAD, or what else stands there, and the work tree or another commit.
func differ(words ...string) []string { return slices.Concat(diffNames, words, []string{"--"}) }

// moves are the places to which a git command brings other contents. It has none of what a command fetches before,
// and none of patches.
func (c *gitCall) moves() (moves [][][]string) {
	if !c.changes() || c.has("-p", "--patch", "--pathspec-from-file") != "" {
		return nil
	}
	words, known := c.plainWords()
	if !known {
		return nil
	}
	each := func(list func(word string) []string) {
		for _, w := range words {
			moves = append(moves, [][]string{list(w)})
		}
	}
	upstream := func() {
		if len(words) == 0 {
			words = []string{"@{upstream}"}
		}
	}
	switch c.sub {
	case "checkout", "switch":
		return [][][]string{c.checkedOut(words)}
	case "restore":
		if paths := c.restored(); len(paths) > 0 {
			from := c.given("-s", "--source")
			list := slices.Clone(diffNames)
			if from != nil && from.known() {
				list = append(list, from.text)
			}
			return [][][]string{{slices.Concat(list, []string{"--"}, words)}}
		}
	case "reset":
		if len(words) == 0 {
			words = []string{"HEAD"}
		}
		return [][][]string{{differ(words[0])}}
	case "merge":
		if mayHave(c.args, "", "--abort") {
			return [][][]string{{differ("HEAD")}}
		}
		upstream()
		each(func(w string) []string { return differ("HEAD..." + w) })
	case "pull":
		if len(words) > 1 {
			words = []string{words[0] + "/" + words[1]}
		} else {
			words = []string{"@{upstream}"}
		}
		each(func(w string) []string { return differ("HEAD..." + w) })
	case "rebase":
		if mayHave(c.args, "", "--abort", "--continue", "--skip") {
			return [][][]string{{differ("HEAD", "ORIG_HEAD")}}
		}
		upstream()
		if onto := c.given("--onto"); onto != nil && onto.known() {
			words[0] = onto.text
		}
		each(func(w string) []string { return differ("HEAD", w) })
	case "cherry-pick", "revert":
		if mayHave(c.args, "", "--abort") {
			return [][][]string{{differ("HEAD")}}
		}
		each(func(w string) []string { return slices.Concat(logNames, []string{w, "--"}) })
	case "stash":
		return c.stashed(words)
	}
	return moves
}

// plainWords are the operands of a git command. Not known: only the shell knows one, or it looks like an option.
func (c *gitCall) plainWords() (words []string, known bool) {
	for _, w := range c.operands() {
		if !w.known() || w.text == "" || len(w.text) > 1 && w.text[0] == '-' {
			return nil, false
		}
		words = append(words, w.text)
	}
	return words, true
}

// checkedOut are the lists of checkout and switch.
func (c *gitCall) checkedOut(words []string) [][]string {
	force := c.has("-f", "--force", "--discard-changes") != ""
	behind := behindDashes(c.args)
	switch {
	case len(behind) > 0:
		at := max(len(words)-len(behind), 0)
		return [][]string{slices.Concat(diffNames, words[:at], []string{"--"}, words[at:])}
	case len(words) > 1:
		return [][]string{slices.Concat(diffNames, words[:1], []string{"--"}, words[1:]),
			slices.Concat(diffNames, []string{"--"}, words)}
	case len(words) == 0 && force:
		return [][]string{differ("HEAD")}
	case len(words) == 0:
		return nil
	case words[0] == "-":
		words = []string{"@{-1}"}
	}
	from := []string{"HEAD"}
	if force {
		from = nil // also what is changed there
	}
	lists := [][]string{
		differ(append(slices.Clone(from), words[0])...),
		differ(append(slices.Clone(from), "refs/remotes/origin/"+words[0])...), // a branch that only the remote has
	}
	if c.sub == "checkout" { // last: it works for any name
		lists = append(lists, slices.Concat(diffNames, []string{"--"}, words))
	}
	return lists
}

// stashed are the lists of git stash.
func (c *gitCall) stashed(words []string) [][][]string {
	switch first := c.firstPlain(); {
	case isOneOf(first, "pop apply"):
		list := []string{"stash", "show", "--name-only", "-z", "--no-renames", "--include-untracked"}
		return [][][]string{{append(list, words[1:]...)}}
	case first == "" || isOneOf(first, "push save"):
		return [][][]string{{differ("HEAD")}}
	}
	return nil
}

// movesOf are those of a command line. A name that begins with a dash would be read as an option.
func (c *simple) movesOf(call *gitCall) (all []Move) {
	lists := call.moves()
	if len(lists) == 0 {
		return nil
	}
	place, known := c.gitStart(call)
	if !known || strings.HasPrefix(place, "-") {
		return nil
	}
	for _, l := range lists {
		if len(l) > 0 {
			all = append(all, Move{Dir: place, Lists: l})
		}
	}
	return all
}

package bash

import (
	"path"
	"slices"
	"strings"
)

// gitPaths are the paths that a git command changes as it is told to: its operands, and its own configuration.
func gitPaths(args []spelt) (reads, writes []spelt) {
	sub, rest, _ := gitCommand(args)
	dir, elsewhere := gitStarts(args)
	switch sub {
	case "rm", "mv":
		if !elsewhere { // nothing is known behind --git-dir and the like
			writes = plainWords(rest, "", " --pathspec-from-file ")
		}
	case "config":
		writes = gitConfigured(rest)
	case "remote":
		if first := firstPlain(rest); isOneOf(first, "add rm remove rename set-url set-branches") {
			writes = []spelt{literalSpelt(".git/config")}
		}
	case "submodule":
		switch first := firstPlain(rest); {
		case isOneOf(first, "add set-url set-branch"):
			writes = []spelt{literalSpelt(".gitmodules"), literalSpelt(".git/config")}
		case isOneOf(first, "init deinit sync absorbgitdirs"),
			first == "update" && optionOf(rest, "", "", "--init") != "":
			writes = []spelt{literalSpelt(".git/config")}
		}
	case "init":
		if optionOf(rest, "", "b", "--template") != "" { // which brings hooks
			writes = []spelt{literalSpelt(".git/hooks")}
		}
	case "lfs":
		if isOneOf(firstPlain(rest), "install update") {
			writes = []spelt{literalSpelt(".git/hooks")}
		}
	default:
		reads, writes = gitReads(sub, rest), gitOutputs(sub, rest)
	}
	return seenFrom(dir, reads), seenFrom(dir, writes)
}

// gitStarts is where -C makes git start. elsewhere: it also works in another place than the text tells.
func gitStarts(args []spelt) (dir spelt, elsewhere bool) {
	for i := 0; i < len(args) && strings.HasPrefix(args[i].bare, "-"); i++ {
		switch t := args[i].bare; {
		case t == "-C" && i+1 < len(args):
			i++
			at := dir
			dir = args[i]
			if dir.text, dir.shape = under(at.text, dir.text), dir.shape|at.shape; len(dir.text) > maxPath {
				return spelt{}, true
			}
		case t == "-c", t == "--config-env", t == "--namespace", t == "--attr-source":
			i++
		case t == "--git-dir", t == "--work-tree", t == "--super-prefix":
			i++
			elsewhere = true
		case abbreviates(t, "--git-dir"), abbreviates(t, "--work-tree"):
			elsewhere = true
		}
	}
	return dir, elsewhere
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
	switch file := optionValue(args, 'f', "t", "--file"); {
	case file != nil:
		return []spelt{*file}
	case optionOf(args, "", "", "--global") != "":
		return []spelt{{text: "~/.gitconfig", bare: "~/.gitconfig", shape: homely}}
	case optionOf(args, "", "", "--system") != "":
		return []spelt{literalSpelt("/etc/gitconfig")}
	case optionOf(args, "", "", "--worktree") != "":
		return []spelt{literalSpelt(".git/config.worktree")}
	}
	return []spelt{literalSpelt(".git/config")}
}

// gitReads are the files that git shows: `REV:path`, and what stands behind the options of a command that shows
// contents. Git's own revisions are among them, as the text does not tell them from names; no rule is about those.
func gitReads(sub string, args []spelt) []spelt {
	valued, ok := gitShows(sub)
	if !ok {
		return nil
	}
	var reads []spelt
	for _, w := range plainWords(args, valued,
		" --author --committer --grep --since --until --after --before --format --pretty --date --max-count --skip ") {
		if _, name, is := strings.Cut(w.text, ":"); is && name != "" && name[0] != '/' {
			w.text, w.bare = strings.TrimPrefix(name, "./"), strings.TrimPrefix(name, "./")
		}
		reads = append(reads, w)
	}
	return reads
}

// gitOutputs are the files, or the directories, that git writes what it shows into: those of every option, as the last
// counts.
func gitOutputs(sub string, args []spelt) (writes []spelt) {
	letter := byte(0)
	if sub == "archive" || sub == "format-patch" {
		letter = 'o'
	}
	for i := range args {
		if args[i].bare == "--" {
			break
		}
		if args[i].bare == "" || args[i].bare[0] != '-' {
			continue
		}
		out := optionValue(args[i:min(i+2, len(args))], letter, "SGLnU", "--output-directory") // so --output, too
		if out != nil && (len(writes) == 0 || writes[len(writes)-1].text != out.text) {
			writes = append(writes, *out)
		}
	}
	return writes
}

// gitShows says whether a git command shows contents of files, with the letters that take a value.
func gitShows(sub string) (valued string, ok bool) {
	switch sub {
	case "show", "diff", "log", "whatchanged", "format-patch", "range-diff", "diff-tree", "diff-index", "diff-files":
		return "SGLnUOlo", true
	case "blame", "annotate":
		return "LSMC", true
	case "cat-file", "archive", "stash", "reflog", "checkout-index", "apply":
		return "", true
	case "grep":
		return "eABCmfO", true
	}
	return "", false
}

// shown are the places whose tracked files a command shows if it is git: those behind `--`, or the whole repository.
func (c *simple) shown() (places []string) {
	for _, h := range c.heads {
		if h.quiet || c.words[h.at].name() != "git" {
			continue
		}
		args := c.words[h.at+1 : h.end]
		sub, rest, _ := gitCommand(args)
		if _, shows := gitShows(sub); !shows || !showsText(sub, rest) || namesBlobs(rest) {
			continue
		}
		dir, elsewhere := gitStarts(args)
		below := seenFrom(dir, behindDashes(rest))
		if len(below) == 0 || elsewhere {
			return []string{"/"}
		}
		for i := range below {
			p, ok := c.place(&below[i])
			// `:!x` is all but x, and git has globs of its own
			if !ok || strings.HasPrefix(below[i].text, ":") || strings.ContainsAny(below[i].text, globs) {
				return []string{"/"}
			}
			places = append(places, path.Clean(p))
		}
	}
	return places
}

// showsText says whether a git command shows more of files than their names.
func showsText(sub string, args []spelt) bool {
	patch := optionOf(args, "puULWc", "SGln", "--patch", "--unified", "--cc", "--patch-with-stat",
		"--function-context") != ""
	switch sub {
	case "log", "reflog":
		return patch
	case "show", "diff", "stash", "diff-tree":
		return patch || optionOf(args, "s", "SGlnUO", "--stat", "--numstat", "--shortstat", "--name-only",
			"--name-status", "--summary", "--no-patch", "--quiet", "--dirstat") == ""
	}
	return sub != "blame" && sub != "annotate"
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

// firstPlain is the first word that is no option; "": there is none.
func firstPlain(args []spelt) string {
	if words := plainWords(args, "", ""); len(words) > 0 {
		return words[0].bare
	}
	return ""
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

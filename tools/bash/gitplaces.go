package bash

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxGitPlaces is in how many directories one command line may start git. What starts it in more is not read-only.
const maxGitPlaces = 16

// movers are commands, other than cd, after which the text does not tell the working directory.
var movers = []string{"pushd", "popd", "eval", "source", ".", "builtin", "command", "trap", "alias", "enable", "exec"}

// gitPlaces returns the directories in which a command line may start git, as the shell would enter them: relative to
// where it starts; and whether these are all. Since a cd may fail, or stand in a pipe, git may also start
// where the shell stood before.
func (s *script) gitPlaces() (places []string, all bool) {
	if s.file == nil {
		return nil, false
	}
	at, all, git := []string{"."}, true, false
	syntax.Walk(s.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl, *syntax.CoprocClause:
			all = false
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				return true
			}
			switch name, _ := gitWord(n.Args[0].Parts); {
			case n.Args[0].Lit() == "[": // no glob here
			case name == "" || slices.Contains(movers, name) && !harmlessCommand(n.Args):
				all = false
			case name == "cd":
				words, literal := gitWords(n.Args[1:])
				moved, ok := enterEach(at, cdOperands(words))
				at, all = union(at, moved), all && ok && literal
			case name == "git":
				git = true
				words, _ := gitWords(n.Args[1:])
				moved, ok := enterEach(at, gitOperands(words))
				places, all = union(places, moved), all && ok
			}
		}
		return true
	})
	return places, !git || all && len(places) <= maxGitPlaces
}

// harmlessCommand says that `command` only says what its words are.
func harmlessCommand(list []*syntax.Word) bool {
	words, _ := gitWords(list)
	return words[0] == "command" && len(words) > 1 && (words[1] == "-v" || words[1] == "-V")
}

// gitWords returns words without their quotes; one that is not literal is "", and all is then false.
func gitWords(list []*syntax.Word) (words []string, all bool) {
	all = true
	words = make([]string, 0, len(list))
	for _, w := range list {
		text, ok := gitWord(w.Parts)
		words, all = append(words, text), all && ok
	}
	return words, all
}

func gitWord(parts []syntax.WordPart) (string, bool) {
	if len(parts) == 1 {
		if lit, ok := parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, `\*?[{~`) {
			return lit.Value, true
		}
	}
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, `\*?[{~`) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner, ok := gitWord(p.Parts)
			if !ok || p.Dollar || strings.Contains(inner, `\`) {
				return "", false
			}
			b.WriteString(inner)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// cdOperands are where cd goes; none: the targets are unknown.
func cdOperands(words []string) []string {
	for len(words) > 0 && (words[0] == "-L" || words[0] == "-P") {
		words = words[1:]
	}
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) != 1 || strings.HasPrefix(words[0], "-") {
		return []string{""}
	}
	return words
}

// gitOperands are the directories of -C, in their order.
func gitOperands(words []string) []string {
	var dirs []string
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-C":
			if i++; i == len(words) {
				return []string{""}
			}
			dirs = append(dirs, words[i])
		case "--no-pager", "-P", "--no-optional-locks", "--version":
		case "":
			return []string{""} // it may be -C
		default:
			if strings.HasPrefix(words[i], "-") {
				return []string{""} // --git-dir and the like
			}
			return dirs
		}
	}
	return dirs
}

// enterEach goes from each place through dirs, one after the other. false: one is not known, or leads up.
func enterEach(places, dirs []string) (moved []string, ok bool) {
	for _, at := range places {
		for _, dir := range dirs {
			if dir == "" || slices.Contains(strings.Split(dir, "/"), "..") {
				return nil, false
			}
			if path.IsAbs(dir) {
				at = ""
			}
			at = path.Join(at, dir)
		}
		moved = append(moved, at)
	}
	return moved, true
}

// union returns what is in a or b, once; more than maxGitPlaces are not looked at.
func union[T comparable](a, b []T) []T {
	a = slices.Clone(a)
	for _, s := range b {
		if len(a) <= maxGitPlaces && !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

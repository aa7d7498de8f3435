package bash

import (
	"slices"
	"strings"

	"codehand/tools/bash/programs"
	"codehand/tools/git"
)

// A runsUse is what a program runs because its options say so.
type runsUse struct {
	texts []string // command lines, or names of programs
	code  string   // the word that gives code which rules cannot read; "": none does
	away  string   // the word that takes code from outside the workspace, or from a stream
	files []spelt  // that it takes code from
	open  bool     // texts are put together when it runs
}

// exact says whether a program runs more than its text says.
func (use *runsUse) exact() bool { return use.texts != nil || use.code != "" || use.away != "" }

// runsOf reads what a program runs besides the words of a wrapper, by its options as far as they are its own.
func runsOf(c *simple, n int) (use runsUse) {
	h := &c.heads[n]
	words := c.words[h.at:h.end]
	use.texts = textsOf(words)
	name, args := h.name, words[1:]
	if h.row.Has("leads") {
		if next, certain := c.reading(n).behind(); certain {
			args = words[1:next]
		}
	}
	use.read(h.row, args)
	if name == "git" {
		git := c.reading(n).gitCall()
		use.read(programs.OfSub("git", git.sub), git.args)
		use.git(git, args)
		return use
	}
	for i := range args {
		if t := args[i].bare; t != "" && t[0] != '-' && t[0] != '+' {
			use.read(programs.OfSub(name, t), args[i+1:])
			break
		}
	}
	use.console(name, args)
	if name == "npm" { // explore PACKAGE [--] COMMAND
		if i := slices.IndexFunc(args, func(w spelt) bool { return w.bare == "explore" }); i >= 0 && i+2 < len(args) {
			use.texts = append(use.texts, joined(withoutDashes(args[i+2:])))
		}
	}
	if name == "hatch" { // env:command
		for i := range words[1:] {
			if _, command, ok := strings.Cut(words[i+1].text, ":"); ok {
				use.texts = append(use.texts, strings.TrimSpace(command+" "+joined(words[i+2:])))
			}
		}
	}
	return use
}

// withoutDashes are the words behind a first `--`, or all.
func withoutDashes(words []spelt) []spelt {
	if len(words) > 0 && words[0].bare == "--" {
		return words[1:]
	}
	return words
}

// read adds what options of a row run.
func (use *runsUse) read(row *programs.Program, args []spelt) {
	if !row.RunsByOptions() {
		return
	}
	words := make([]string, len(args))
	for i := range args {
		words[i] = args[i].text
	}
	for _, f := range row.Runs(words) {
		value := spelt{}
		if f.Value >= 0 {
			value = args[f.Value]
			if f.ValueFrom > 0 {
				value.text = value.text[min(f.ValueFrom, len(value.text)):]
				value.bare = value.text
			}
		}
		switch f.Kind {
		case programs.RunText:
			use.texts = append(use.texts, value.text)
		case programs.RunCode:
			use.code = args[f.At].text
		case programs.RunFrom:
			use.files = append(use.files, value)
			switch {
			case isStream(value.bare):
				use.code = args[f.At].text
			case value.shape&^globbed != 0 || away(value.bare):
				use.away = args[f.At].text
			}
		}
	}
}

// puts returns a word of a command that is put together when it runs, and that is in one of the texts which the command
// gives to a shell: quotes there hold nothing back. "": there is none.
func puts(words []spelt, texts []string) string {
	for i := range words {
		w := &words[i]
		if w.shape&computed != 0 && slices.ContainsFunc(texts, func(text string) bool {
			return text != "" && (strings.Contains(text, w.text) || strings.HasSuffix(w.text, text))
		}) {
			return snippet(w.text)
		}
	}
	return ""
}

// isStream says whether a name means what a program reads from its input, or holds what it reads.
func isStream(name string) bool {
	return name == "-" || name == "/dev/stdin" || strings.HasPrefix(name, "data:") ||
		strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

// away says whether a path may lead out of the workspace, or into a git directory.
func away(name string) bool {
	if rooted(name) || strings.Contains(name, "://") {
		return true
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == ".." || isGitDir(component) {
			return true
		}
	}
	return false
}

// git adds what git runs besides the options of its sub-commands. args begin behind `git`.
func (use *runsUse) git(c *gitCall, args []spelt) {
	rest := c.args
	for i := range args[:len(args)-len(rest)] {
		setting := strings.TrimPrefix(args[i].text, "-c")
		if key, value, ok := strings.Cut(setting, "="); ok && git.KeyRuns(key) {
			use.texts = append(use.texts, strings.TrimPrefix(value, "!"))
		}
		if strings.HasPrefix(args[i].text, "--exec-path=") {
			use.code = args[i].text
		}
	}
	for i := range rest {
		if _, program, ok := strings.Cut(rest[i].text, "ext::"); ok {
			use.texts = append(use.texts, program)
		}
	}
	switch c.sub {
	case "shell", "remote-ext", "web--browse", "daemon", "for-each-repo":
		for i := range rest {
			_, value, glued := strings.Cut(rest[i].text, "=")
			if !glued {
				value = joined(rest[i:])
			}
			use.texts = append(use.texts, value)
		}
	case "bisect":
		if len(rest) > 1 && rest[0].bare == "run" {
			use.texts = append(use.texts, joined(rest[1:]), quoted(rest[1:]))
		}
	case "submodule":
		for i := range rest {
			if rest[i].bare != "foreach" {
				continue
			}
			for i++; i < len(rest) && strings.HasPrefix(rest[i].bare, "-"); {
				i++
			}
			use.texts = append(use.texts, joined(rest[i:]), quoted(rest[i:]))
			break
		}
	case "config":
		if config := gitConfigOf(rest); !config.reads && git.KeyRuns(config.key) && len(rest) > 0 {
			use.texts = append(use.texts, strings.TrimPrefix(rest[len(rest)-1].text, "!"))
		}
	case "clone":
		for i := range rest {
			if key, value, ok := strings.Cut(rest[i].text, "="); ok && git.KeyRuns(strings.TrimPrefix(key, "-c")) {
				use.texts = append(use.texts, strings.TrimPrefix(value, "!"))
			}
		}
	}
}

// quoted puts words together as a text in which each stays one word.
func quoted(words []spelt) string {
	var b strings.Builder
	for i := range words {
		b.WriteString("'" + strings.ReplaceAll(words[i].text, "'", `'\''`) + "' ")
	}
	return b.String()
}

// harmlessSettings says whether all keys that git is given before its sub-command start nothing and name no file: the
// common ones, with values that say so.
func harmlessSettings(args []spelt) bool {
	for i := 0; i < len(args); i++ {
		switch t := args[i].bare; {
		case t == "-c" && i+1 < len(args):
			i++
			key, value, _ := strings.Cut(args[i].text, "=")
			if args[i].shape != 0 || !harmlessSetting(strings.ToLower(key), value) {
				return false
			}
		case strings.HasPrefix(t, "-c"), strings.HasPrefix(t, "--config"):
			return false
		case t == "-C":
			i++
		case !strings.HasPrefix(t, "-"):
			return true
		}
	}
	return true
}

func harmlessSetting(key, value string) bool {
	section, _, _ := strings.Cut(key, ".")
	switch {
	case section == "user" || section == "color" || section == "advice":
		return true
	case isOneOf(key, "core.quotepath core.autocrlf core.longpaths core.filemode core.ignorecase core.abbrev "+
		"init.defaultbranch diff.noprefix diff.mnemonicprefix diff.algorithm diff.renames diff.renamelimit "+
		"merge.conflictstyle merge.renamelimit rebase.autostash rebase.autosquash pull.rebase pull.ff push.default "+
		"fetch.prune log.date log.decorate status.showuntrackedfiles gc.auto commit.verbose tag.sort branch.sort "+
		"protocol.version submodule.recurse column.ui"):
		return true
	case isOneOf(key, "commit.gpgsign tag.gpgsign log.showsignature core.fsmonitor"), section == "pager":
		return value == "false"
	case key == "core.pager":
		return value == "cat" || value == ""
	case key == "core.editor" || key == "sequence.editor":
		return value == "true" || value == ":"
	case key == "core.hookspath":
		return value == NullDevice
	}
	return false
}

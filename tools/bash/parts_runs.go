package bash

import (
	_ "embed"
	"strings"
	"sync"

	"codehand/tools/git"
)

//go:embed runs.txt
var runsList string

// A runsOption is one option of runs.txt.
type runsOption struct {
	kind string // text, code, from
	name string
	part string // what its value must contain
}

// runsTable is runs.txt by program and sub-command; without one, it is about all uses of the program.
var runsTable = sync.OnceValue(func() map[[2]string][]runsOption {
	table := make(map[[2]string][]runsOption)
	for line := range strings.Lines(runsList) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		names, options, _ := strings.Cut(line, ": ")
		var read []runsOption
		for field := range strings.FieldsSeq(options) {
			kind, name, _ := strings.Cut(field, ":")
			o := runsOption{kind: kind}
			o.name, o.part, _ = strings.Cut(name, "~")
			read = append(read, o)
		}
		for names != "" {
			var name string
			if rest, quoted := strings.CutPrefix(names, `"`); quoted {
				name, names, _ = strings.Cut(rest, `"`)
			} else {
				name, names, _ = strings.Cut(names, " ")
			}
			names = strings.TrimSpace(names)
			program, sub, _ := strings.Cut(name, " ")
			key := [2]string{program, sub}
			table[key] = append(table[key], read...)
		}
	}
	return table
})

// A runsUse is what a program runs because its options say so.
type runsUse struct {
	texts []string // command lines, or names of programs
	code  string   // the word that gives code which rules cannot read; "": none does
	away  string   // the word that takes code from outside the workspace, or from a stream
}

// exact says whether a program runs more than its text says.
func (use *runsUse) exact() bool { return use.texts != nil || use.code != "" || use.away != "" }

// runsOf reads what a program runs besides the words of a wrapper, by its options as far as they are its own.
func runsOf(words []spelt) (use runsUse) {
	use.texts = textsOf(words)
	name, args := words[0].name(), words[1:]
	if w, ok := wrapperOf(name); ok && w.leads {
		if next, certain := w.skip(words, 1); certain {
			args = words[1:next]
		}
	}
	use.read(runsTable()[[2]string{name}], args)
	if name == "git" {
		sub, rest, _ := gitCommand(args)
		use.read(runsTable()[[2]string{"git", sub}], rest)
		use.git(sub, args, rest)
		return use
	}
	for i := range args {
		if t := args[i].bare; t != "" && t[0] != '-' && t[0] != '+' {
			use.read(runsTable()[[2]string{name, t}], args[i+1:])
			break
		}
	}
	use.console(name, args)
	if name == "hatch" { // env:command
		for i := range words[1:] {
			if _, command, ok := strings.Cut(words[i+1].text, ":"); ok {
				use.texts = append(use.texts, strings.TrimSpace(command+" "+joined(words[i+2:])))
			}
		}
	}
	return use
}

func (use *runsUse) read(options []runsOption, args []spelt) {
	for i := range args {
		if args[i].bare == "--" {
			return
		}
		for n := range options {
			value, ok := options[n].valueAt(args, i)
			if !ok || !strings.Contains(value.text, options[n].part) {
				continue
			}
			switch options[n].kind {
			case "text":
				use.texts = append(use.texts, value.text)
			case "code":
				use.code = args[i].text
			case "from":
				switch {
				case isStream(value.bare):
					use.code = args[i].text
				case value.shape&^globbed != 0 || away(value.bare):
					use.away = args[i].text
				}
			}
		}
	}
}

// isStream says whether a name means what a program reads from its input.
func isStream(name string) bool {
	return name == "-" || name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") ||
		strings.HasPrefix(name, "/proc/self/fd/")
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

// valueAt returns the value of the option if it stands at args[i]. not ok: another word does.
func (o *runsOption) valueAt(args []spelt, i int) (value spelt, ok bool) {
	w := args[i]
	next := func() (spelt, bool) {
		if i+1 < len(args) {
			return args[i+1], true
		}
		return spelt{}, true
	}
	rest := func(n int) (spelt, bool) {
		from := min(n, len(w.text))
		return spelt{text: w.text[from:], bare: w.text[from:], shape: w.shape}, true
	}
	t := w.text
	switch {
	case o.name[0] == '!':
		return w, t == o.name[1:]
	case o.name[0] != '-': // NAME= and @
		if strings.HasPrefix(t, o.name) {
			return rest(len(o.name))
		}
		return w, false
	case len(o.name) == 2:
		if !strings.HasPrefix(t, o.name) {
			return w, false
		}
		if len(t) == 2 {
			return next()
		}
		return rest(2)
	}
	name, _, glued := strings.Cut(t, "=")
	if i := strings.IndexByte(name, ':'); i > 0 && o.name[1] != '-' { // of java
		name, glued = name[:i], true
	}
	switch {
	case name == o.name, o.name[1] != '-' && name == "-"+o.name,
		o.name[1] == '-' && len(name) > 4 && abbreviates(name, o.name):
	case o.name == "-TT" && strings.HasPrefix(t, "-") && strings.HasSuffix(t, "TT"): // of zip
	default:
		return w, false
	}
	if glued {
		return rest(len(name) + 1)
	}
	return next()
}

// git adds what git runs besides the options of its sub-commands. args begin behind `git`, rest behind the sub-command.
func (use *runsUse) git(sub string, args, rest []spelt) {
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
	switch sub {
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

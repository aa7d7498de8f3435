package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// isShell says whether name is a program that runs command texts.
func isShell(name string) bool { return programs.Of(name).Has("shell") }

// A shellUse is how a shell is started.
type shellUse struct {
	text   *spelt // the argument of -c
	script *spelt // the file that it runs; nil together with text: it reads its input
	start  *spelt // the file that it runs first, if it is interactive
	input  bool   // -s: it reads its input, whatever the operands are
	checks bool   // -n: it runs nothing
}

// shellOf reads the arguments of a shell.
func shellOf(args []spelt) shellUse {
	var use shellUse
	command := false
	i := 0
options:
	for ; i < len(args); i++ {
		t := args[i].bare
		switch {
		case t == "-" || t == "--":
			i++
			break options
		case strings.HasPrefix(t, "--"):
			name, value, glued := strings.Cut(t[2:], "=")
			switch {
			case name == "rcfile" || name == "init-file":
				if i++; i < len(args) {
					use.start = &args[i]
				}
			case name == "command" && glued:
				use.text = &spelt{text: value, bare: value, shape: args[i].shape}
			case name == "command":
				command = true
			}
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			i += strings.Count(t, "o") + strings.Count(t, "O")
			command = command || t[0] == '-' && strings.Contains(t, "c")
			use.input = use.input || strings.Contains(t, "s")
			use.checks = use.checks || t[0] == '-' && strings.Contains(t, "n")
		default:
			break options
		}
	}
	if i >= len(args) || use.text != nil {
		return use
	}
	if command {
		use.text = &args[i]
	} else if args[i].bare != "-" {
		use.script = &args[i]
	}
	return use
}

// textsOf returns the texts that a command gives to a shell: the argument of -c, of eval, of a trap and so on.
func textsOf(words []spelt) []string {
	name, args := words[0].name(), words[1:]
	if isShell(name) {
		if use := shellOf(args); use.text != nil {
			return []string{use.text.text}
		}
		return nil
	}
	switch name {
	case "eval":
		if len(args) > 0 && args[0].bare == "--" {
			args = args[1:]
		}
		return []string{joined(args)}
	case "trap":
		if len(args) > 1 && args[0].bare == "--" {
			args = args[1:]
		}
		if len(args) > 0 && !strings.HasPrefix(args[0].bare, "-") {
			return []string{args[0].text}
		}
	case "alias":
		var texts []string
		for i := range args {
			if _, value, ok := strings.Cut(args[i].text, "="); ok {
				texts = append(texts, value)
			}
		}
		return texts
	case "su", "runuser", "flock", "script", "env", "mapfile", "readarray", "complete", "compgen", "expect", "watch",
		"parallel", "ssh":
		return optionTexts(name, args)
	}
	return nil
}

// optionTexts returns what programs give to a shell that are none themselves: the value of an option, and for some all
// words joined, since they do not quote them again.
func optionTexts(name string, args []spelt) []string {
	letter, long := byte('c'), "--command"
	switch name {
	case "env":
		letter, long = 'S', "--split-string"
	case "mapfile", "readarray", "complete", "compgen":
		letter, long = 'C', ""
	case "watch", "parallel":
		return spacedTexts(args)
	case "ssh":
		return remoteTexts(args)
	}
	var texts []string
	for i := range args {
		t := args[i].text
		switch {
		case long != "" && abbreviates(t, long):
			if _, value, glued := strings.Cut(t, "="); glued {
				texts = append(texts, value)
			} else if i+1 < len(args) {
				texts = append(texts, args[i+1].text)
			}
		case len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.IndexByte(t, letter) > 0:
			if value := t[strings.IndexByte(t, letter)+1:]; value != "" {
				texts = append(texts, value+" "+joined(args[i+1:]))
			}
			if i+1 < len(args) {
				texts = append(texts, args[i+1].text)
			}
		}
	}
	return texts
}

// spacedTexts are the words that hold more than one word, and all of them from each such word on.
func spacedTexts(args []spelt) []string {
	for i := range args {
		if strings.ContainsAny(args[i].text, " \t\n;&|") {
			return []string{args[i].text, joined(args[i:])}
		}
	}
	return nil
}

// remoteTexts is what ssh runs on the other side.
func remoteTexts(args []spelt) []string {
	if i := remoteCommand(args); i < len(args) {
		return []string{joined(args[i:])}
	}
	return nil
}

// remoteCommand returns where the command begins in the arguments of ssh; len(args): there is none.
func remoteCommand(args []spelt) int {
	if r := read("ssh", args); r.Command >= 0 {
		return r.Command
	}
	return len(args)
}

// joined puts words together as a text for a shell.
func joined(words []spelt) string {
	if len(words) == 1 {
		return words[0].text
	}
	size := len(words)
	for i := range words {
		size += len(words[i].text)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[i].text)
	}
	return b.String()
}

// abbreviates says whether a word is the long option, perhaps shortened, perhaps with a value behind "=".
func abbreviates(word, long string) bool {
	if len(word) < 3 || word[:2] != "--" {
		return false
	}
	name, _, _ := strings.Cut(word, "=")
	return len(name) > 2 && strings.HasPrefix(long, name)
}

package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// wraps says whether a program runs its words.
func wraps(row *programs.Program) bool { return row != nil && row.Takes().Kind == "command" }

// behind returns how many words behind the name of a wrapper the command begins that it runs; len(args) + 1: there is
// none. Not certain: an option is not known, so it may begin anywhere behind the wrapper.
func (r *reading) behind() (next int, certain bool) {
	switch {
	case r.row.Has("subs") && r.From == 0: // no sub-command that runs one
		return len(r.args) + 1, true
	case r.row.Has("unsure") || !r.Sure:
		return r.From + 1, false
	case r.Command < 0:
		return len(r.args) + 1, true
	}
	return r.Command + 1, true
}

// leads says whether a rule with a `*` allows this wrapper where it names the command behind it.
func leads(name string) bool { return programs.Of(name).Has("leads") }

// stripped says whether a rule that allows looks past this wrapper, all of whose options are known.
func stripped(name string) bool { return programs.Of(name).Has("looked past") }

// runsItsWords says whether a program runs its words as a command of their own, so that no rule with a star allows it.
func runsItsWords(name string) bool { return programs.Of(name).Has("exact") }

// assigned returns the name in `NAME=value`, "" if it is none.
func assigned(t string) string {
	name, _, ok := strings.Cut(t, "=")
	if !ok || name == "" || '0' <= name[0] && name[0] <= '9' {
		return ""
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			return ""
		}
	}
	return name
}

// RunsAnything says whether a program runs what its words say: a rule for all its uses would allow everything.
func RunsAnything(name string) bool {
	row := programs.Of(name)
	return wraps(row) && !row.Has("leads") && !row.Has("subs") || isShell(name) ||
		isOneOf(name, "cmd powershell pwsh eval source .")
}

// NeverMatched says why no part of a command that begins with a name is compared with a rule which allows and has a
// star; "": it is.
func NeverMatched(name string) string {
	switch {
	case stripped(name):
		return name + " is left out before rules that allow are compared; write the rule for the command behind it"
	case runsItsWords(name):
		return name + " runs its words as a command, so only a rule without a star allows it"
	}
	return ""
}

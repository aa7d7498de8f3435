package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// psFault keeps environments from being shown. procps (4.0.2 to 4.0.4, src/ps/parser.c) reads its words as SysV and GNU
// do, and after any error, such as a user who does not exist or columns that are given twice, all of them again as BSD
// did: there a dash means nothing, -C has no value, and an e is an option that shows environments. So either there is
// no e that could be read in this way, or nothing that could be wrong for the first reading.
func (m *matching) psFault() string {
	if !m.holdsE() {
		return ""
	}
	full, columns, sorts := false, false, 0
	for i := range m.Options {
		o := &m.Options[i]
		ok := true
		switch o.Name {
		case "-e", "-a", "-A", "-w", "--forest", "--no-headers":
		case "-f", "-l":
			full = true
		case "-p":
			ok = listOf(m.given(o), isDigits)
		case "-o":
			columns = true
			ok = listOf(m.given(o), func(s string) bool { return isOneOf(strings.TrimSuffix(s, "="), psColumns) })
		case "--sort":
			sorts++
			ok = listOf(m.given(o), func(s string) bool { return isOneOf(strings.TrimLeft(s, "+-"), psColumns) })
		default:
			ok = false
		}
		if !ok || full && columns || sorts > 1 {
			return "option " + snippet(m.args[o.At].text) + " may make it read an e as BSD does and show environments"
		}
	}
	if len(m.Operands) > 0 {
		return "operand " + snippet(m.args[m.Operands[0]].text) + " beside an e is not on the list"
	}
	return ""
}

// holdsE says whether ps, reading as BSD did, may find the option e: in any word but long options and their values.
func (m *matching) holdsE() bool {
	for _, w := range m.args {
		if strings.Contains(w.text, "e") && !strings.HasPrefix(w.text, "--") {
			return true
		}
	}
	return false
}

// given is the value of an option.
func (m *matching) given(o *programs.Found) string { return m.args[o.Value].text[o.ValueFrom:] }

// listOf says whether a text is a list with commas of which every item is one.
func listOf(s string, is func(string) bool) bool {
	for item := range strings.SplitSeq(s, ",") {
		if !is(item) {
			return false
		}
	}
	return true
}

// psColumns are columns that every ps knows, so that they cannot be wrong.
const psColumns = "%cpu %mem args cmd comm command egid egroup etime etimes euid euser fname gid group " +
	"lstart ni nice nlwp pcpu pgid pgrp pid pmem ppid pri psr rgid rss ruid ruser s sess sid " +
	"size start state stat stime sz tgid time tname tpgid tt tty uid uname user vsize vsz " +
	"wchan"

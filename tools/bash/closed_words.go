package bash

import (
	"slices"
	"strconv"
	"strings"

	"codehand/tools/bash/programs"
)

// match is R5 for the words behind the name of a program, by the column `proved` of its row. It leaves the operands in
// p.rest and returns what is wrong; "": nothing.
func (p *prover) match(row *programs.Program, args []word) string {
	m := matching{p: p, row: row, args: args}
	p.texts, p.rest = p.texts[:0], p.rest[:0]
	ended := false
	var leads []word
	for _, w := range args {
		switch ended = ended || w.text == "--"; {
		case w.leads() && (!ended && !row.Has("glob") || row.Has("response")):
			if leads = append(leads, w); row.Has("response") || row.Has("expression") {
				return mayLead(w)
			}
		case row.Has("response") && strings.HasPrefix(w.text, "@"):
			return "option " + snippet(w.text) + " is not on the list"
		}
		p.texts = append(p.texts, w.text)
	}
	m.Reading = row.Read(p.texts)
	for i := range m.Options {
		if why := m.option(&m.Options[i]); why != "" {
			return why
		}
	}
	if m.Command >= 0 {
		return "it runs " + snippet(args[m.Command].text)
	}
	for _, at := range m.Operands {
		p.rest = append(p.rest, args[at])
	}
	if why := m.operands(); why != "" {
		return why
	}
	if len(leads) > 0 {
		return mayLead(leads[0])
	}
	return ""
}

func mayLead(w word) string { return "glob " + snippet(w.text) + " may turn into an option" }

// A matching goes through the words of one program.
type matching struct {
	programs.Reading
	p    *prover
	row  *programs.Program
	args []word
}

// option looks at one option and its value.
func (m *matching) option(o *programs.Found) string {
	w := m.args[o.At]
	behind := len(m.Operands) > 0 && m.Operands[0] < o.At
	switch {
	case o.Option == nil && m.row.Has("expression"):
		return "word " + snippet(w.text) + " is not on the list"
	case o.Option == nil || !o.Safe || o.Shortened:
		if m.row.Has("expression") {
			return "word " + snippet(w.text) + " is not on the list"
		}
		return "option " + snippet(w.text) + " is not on the list"
	case behind && m.row.Has("first"):
		return "option " + snippet(w.text) + " behind an operand"
	case o.Does&programs.Follows != 0:
		return "option " + snippet(w.text) + " follows links"
	case o.Impossible && o.At == len(m.args)-1 && isGit(m.row) &&
		isOneOf(o.Name, "--merged --no-merged --contains --no-contains"):
		return "" // git lists against HEAD then
	case o.Impossible && o.Value >= 0:
		return "option " + snippet(w.text) + " takes no value"
	case o.Impossible && o.From > 0 && o.From+1 < len(w.text):
		return "option " + snippet(w.text) + " is not on the list"
	case o.Impossible:
		return "option " + snippet(w.text) + " has no value"
	case o.Value < 0:
		return ""
	}
	if o.ValueFrom > 0 {
		return m.value(o, w.from(o.ValueFrom))
	}
	if o.Takes == programs.Two {
		if why := m.apart(o, m.args[o.Value-1]); why != "" {
			return why
		}
	}
	return m.apart(o, m.args[o.Value])
}

func isGit(row *programs.Program) bool { return strings.HasPrefix(row.Name, "git ") }

// apart looks at a value that is a word of its own.
func (m *matching) apart(o *programs.Found, v word) string {
	dash := len(v.text) > 1 && v.text[0] == '-' && !isDigits(v.text[1:])
	if m.row.Has("expression") {
		dash = dash && isAlpha(v.text[1]) && o.Name != "-perm"
	}
	switch {
	case dash:
		return "value " + snippet(v.text) + " of option " + snippet(m.args[o.At].text) + " looks like an option"
	case v.leads() && !m.row.Has("glob"), v.glob() && m.row.Has("expression") && strings.HasPrefix(v.text, "-"):
		return "glob " + snippet(v.text) + " may turn into an option"
	case v.glob() && (isGit(m.row) || m.row.Has("front") || !m.row.Proved.Several()):
		return "glob " + snippet(v.text) + " as a value"
	case v.glob(): // it may become several words, and all but the first are operands
		if why := m.p.path(v); why != "" {
			return why
		}
	}
	return m.value(o, v)
}

// value looks at the value of an option.
func (m *matching) value(o *programs.Found, v word) string {
	switch {
	case o.Kind == programs.Reads:
		return m.p.path(v)
	case o.Instead && m.row.Proved.First == "script":
		return sedFault(v)
	case m.row.Name == "date" && strings.Contains(v.text, "TZ="):
		return "value " + snippet(v.text) + " names a file of a time zone"
	case isGit(m.row) && o.Name == "--sort" && strings.Contains(strings.ToLower(v.text), "signature"):
		return "value " + snippet(v.text) + " starts gpg"
	}
	return ""
}

// operands is R5 (f).
func (m *matching) operands() string {
	rest, o := m.p.rest, m.row.Proved
	if o.First != "" && !given(m.Reading) {
		switch {
		case len(rest) > 0:
			if why := m.firstFault(o.First, rest[0]); why != "" {
				return why
			}
			rest = rest[1:]
		case o.First == "script":
			return "there is no script"
		}
	}
	switch {
	case m.row.Name == "ps":
		if why := m.psFault(); why != "" {
			return why
		}
	case o.Kind == "list" && len(rest) > 0 && !m.lists():
		return "operand " + snippet(rest[0].text) + " without --list before it"
	}
	switch {
	case len(rest) > 0 && o.Kind == "":
		return "operand " + snippet(rest[0].text) + " is not on the list"
	case len(rest) > o.Max:
		return "operand " + snippet(rest[o.Max].text) + " is one too many"
	case len(rest) < o.Min:
		return "it has " + strconv.Itoa(len(rest)) + " operands, at least " + strconv.Itoa(o.Min)
	}
	for _, w := range rest {
		switch {
		case !o.Several() && w.glob():
			return "glob " + snippet(w.text) + " may turn into several operands"
		case m.row.Has("old") && strings.HasPrefix(w.text, "+"),
			m.row.Has("front") && strings.HasPrefix(w.text, "-"):
			return "option " + snippet(w.text) + " is not on the list"
		}
		if why := m.operand(o.Kind, w); why != "" {
			return why
		}
	}
	return ""
}

// given says whether an option makes the first operand one like the others.
func given(r programs.Reading) bool {
	return slices.ContainsFunc(r.Options, func(o programs.Found) bool { return o.Option != nil && o.Instead })
}

// lists says whether -l or --list stands before any operand.
func (m *matching) lists() bool {
	for i := range m.Options {
		if o := &m.Options[i]; (o.Name == "-l" || o.Name == "--list") && o.At < m.Operands[0] {
			return true
		}
	}
	return false
}

// firstFault looks at an operand that is no path.
func (m *matching) firstFault(kind string, w word) string {
	switch {
	case kind == "filter":
		return filterFault(w)
	case kind == "script":
		return sedFault(w)
	case kind == "pattern" && w.glob(): // the shell makes paths of it, and all but the first are operands
		return m.p.path(w)
	}
	return ""
}

func (m *matching) operand(kind string, w word) string {
	ok := true
	switch kind {
	case "dir":
		if w.text != "-" {
			return m.p.path(w)
		}
		ok = false // where the shell was before
	case "path":
		if w.text == "-" {
			return ""
		}
		return m.p.path(w)
	case "rev":
		if strings.HasPrefix(w.text, ":") {
			return ""
		}
		return m.p.path(w)
	case "name": // with a slash it is looked for there, else in PATH
		if strings.Contains(w.text, "/") {
			return m.p.path(w)
		}
	case "number":
		ok = isNumber(w.text)
	case "seconds":
		seconds, err := strconv.ParseFloat(w.text, 64)
		ok = err == nil && isNumber(w.text) && seconds >= 0 && seconds <= maxSleep
	case "format":
		ok = strings.HasPrefix(w.text, "+")
	case "style":
		ok = isOneOf(w.text, "aux ax auxf axf")
	case "text", "list":
	default:
		ok = false
	}
	if !ok {
		return "operand " + snippet(w.text) + " is not on the list"
	}
	return ""
}

// maxSleep is how long a ReadOnly command sleeps, in seconds.
const maxSleep = 60

func isDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// isNumber knows words of digits, `-` and `.` only, with a digit.
func isNumber(s string) bool {
	digits := 0
	for i := range len(s) {
		switch {
		case isDigit(s[i]):
			digits++
		case s[i] != '-' && s[i] != '.':
			return false
		}
	}
	return digits > 0
}

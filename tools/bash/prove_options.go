package bash

import (
	"strconv"
	"strings"
)

// match is R5 for the words behind the name of a command that is on a list. It leaves the operands in p.rest and
// returns what is wrong; "": nothing.
func (p *prover) match(c *listed, args []word) string {
	m := matching{p: p, c: c}
	p.rest = p.rest[:0]
	for i := 0; i < len(args); {
		n, why := m.next(args[i:])
		if why != "" {
			return why
		}
		i += n
	}
	return m.operands()
}

// A matching goes through the words of one command.
type matching struct {
	p       *prover
	c       *listed
	ended   bool // `--` was seen
	pattern bool // an option gave the pattern or the script, or says that there is none
	lists   bool // -l or --list was seen before any operand
	user    bool // ps -u: see psValueFault
	every   bool // ps -e
	rest    bool // ps -x
}

// next takes an option with its value, or an operand. n is how many words that were.
func (m *matching) next(args []word) (n int, why string) {
	w := args[0]
	switch {
	case m.ended:
	case w.text == "--":
		m.ended = true
		return 1, ""
	case w.leads() && !m.c.glob:
		return 0, "glob " + snippet(w.text) + " may turn into an option"
	case len(w.text) < 2 || w.text[0] != '-' || m.c.operands.kind == "number" && isNumber(w.text):
	case m.c.first && len(m.p.rest) > 0:
		return 0, "option " + snippet(w.text) + " behind an operand"
	case m.c.alone:
		if len(w.text) != 2 || m.letter(w.text[1]) != noValue {
			return 0, m.unlisted(w)
		}
		return 1, ""
	case w.text[1] == '-':
		return m.long(w, args[1:])
	default:
		return m.short(w, args[1:])
	}
	if m.c.operands.kind == "list" && !m.lists {
		return 0, "operand " + snippet(w.text) + " without --list before it"
	}
	m.p.rest = append(m.p.rest, w)
	return 1, ""
}

func (m *matching) unlisted(w word) string {
	return "option " + snippet(w.text) + " is not on the list"
}

func (m *matching) letter(c byte) arity {
	if c >= 128 {
		return notListed
	}
	return m.c.letters[c]
}

// short reads a word of letters: the first that takes a value takes the rest of the word, else the next word.
func (m *matching) short(w word, rest []word) (n int, why string) {
	if m.c.number && isDigits(w.text[1:]) {
		return 1, ""
	}
	for i := 1; i < len(w.text); i++ {
		letter := w.text[i]
		takes, glued := m.letter(letter), w.from(i+1)
		switch {
		case takes == notListed:
			return 0, m.unlisted(w)
		case takes == noValue:
			m.saw(letter, "")
			continue
		case takes == maybeValue:
			return 1, m.value(letter, "", glued, takes)
		case glued.text == "":
			return m.apartValue(letter, "", w, rest, takes)
		case m.c.apart && !isDigits(glued.text):
			return 0, m.unlisted(w)
		}
		m.saw(letter, "")
		return 1, m.value(letter, "=", glued, takes)
	}
	return 1, ""
}

func (m *matching) long(w word, rest []word) (n int, why string) {
	name, value, has := strings.Cut(w.text, "=")
	takes := m.c.long[name]
	switch {
	case takes == notListed:
		return 0, m.unlisted(w)
	case takes == noValue && has, takes == twoValues && has:
		return 0, "option " + snippet(w.text) + " takes no value"
	case has:
		m.saw(0, name)
		return 1, m.value(0, name, w.from(len(w.text)-len(value)), takes)
	case takes == noValue, takes == maybeValue:
		m.saw(0, name)
		return 1, ""
	}
	return m.apartValue(0, name, w, rest, takes)
}

// apartValue takes the value of an option from the words behind it.
func (m *matching) apartValue(letter byte, name string, w word, rest []word, takes arity) (n int, why string) {
	m.saw(letter, name)
	n = 1
	if takes == twoValues {
		n = 2
	}
	if len(rest) < n {
		// git lists against HEAD then; other programs only complain, but what is not whole is not proved.
		if m.c.git && len(rest) == 0 && (name == "--merged" || name == "--no-merged" || name == "--contains" ||
			name == "--no-contains") {
			return 1, ""
		}
		return 0, "option " + snippet(w.text) + " has no value"
	}
	for _, v := range rest[:n] {
		switch {
		case len(v.text) > 1 && v.text[0] == '-' && !isDigits(v.text[1:]):
			return 0, "value " + snippet(v.text) + " of option " + snippet(w.text) + " looks like an option"
		case v.leads() && !m.c.glob:
			return 0, "glob " + snippet(v.text) + " may turn into an option"
		case v.glob() && (m.c.git || !m.c.several()): // it may become several words, and all but the first are operands
			return 0, "glob " + snippet(v.text) + " as a value"
		case v.glob():
			if why := m.p.path(v); why != "" {
				return 0, why
			}
		}
		if why := m.value(letter, name, v, takes); why != "" {
			return 0, why
		}
	}
	return 1 + n, ""
}

// saw keeps what options say about operands.
func (m *matching) saw(letter byte, name string) {
	switch m.c.operands.kind {
	case "pattern", "script":
		m.pattern = m.pattern || letter == 'e' && m.c.letters['e'] == oneValue || name == "--regexp" ||
			name == "--files" || name == "--expression"
	case "list":
		m.lists = m.lists || letter == 'l' || name == "--list"
	case "style":
		m.user = m.user || letter == 'u'
		m.every, m.rest = m.every || letter == 'e', m.rest || letter == 'x'
	}
}

// value looks at the value of an option, given by its letter or its name; name is "=" for what is glued to a letter.
func (m *matching) value(letter byte, name string, v word, takes arity) string {
	switch kind := m.c.operands.kind; {
	case takes == pathValue:
		return m.p.path(v)
	case kind == "script":
		return sedFault(v)
	case kind == "style":
		m.rest = m.rest || letter == 'u' && strings.Contains(v.text, "x") // -aux
		return psValueFault(letter, v, name == "=")
	case m.c.git && letter == 0 && name == "--sort" && strings.Contains(strings.ToLower(v.text), "signature"):
		return "value " + snippet(v.text) + " starts gpg"
	}
	return ""
}

// operands is R5 (f) for what match has put aside.
func (m *matching) operands() string {
	rest, o := m.p.rest, m.c.operands
	switch first := o.kind == "pattern" || o.kind == "filter" || o.kind == "script"; {
	case !first || m.pattern:
	case len(rest) > 0:
		why := firstFault(o.kind, rest[0])
		// the shell makes paths of it, and all but the first are operands
		if why == "" && o.kind == "pattern" && rest[0].glob() {
			why = m.p.path(rest[0])
		}
		if why != "" {
			return why
		}
		rest = rest[1:]
	case o.kind == "script":
		return "there is no script"
	}
	switch {
	case m.every && (m.rest || len(rest) > 0): // ps knows no -x, reads all of it as BSD, and then e shows environments
		return "option -e beside others of BSD is not on the list"
	case len(rest) > 0 && o.kind == "":
		return "operand " + snippet(rest[0].text) + " is not on the list"
	case len(rest) > 0 && len(rest) > o.max:
		return "operand " + snippet(rest[o.max].text) + " is one too many"
	case len(rest) < o.min:
		return "it has " + strconv.Itoa(len(rest)) + " operands, at least " + strconv.Itoa(o.min)
	}
	for _, w := range rest {
		if !m.c.several() && w.glob() {
			return "glob " + snippet(w.text) + " may turn into several operands"
		}
		if m.c.old && strings.HasPrefix(w.text, "+") || m.c.response && strings.HasPrefix(w.text, "@") {
			return "option " + snippet(w.text) + " is not on the list"
		}
		if why := m.operand(w); why != "" {
			return why
		}
	}
	return ""
}

// firstFault looks at an operand that is no path.
func firstFault(kind string, w word) string {
	switch kind {
	case "filter":
		return filterFault(w)
	case "script":
		return sedFault(w)
	}
	return ""
}

func (m *matching) operand(w word) string {
	ok := true
	switch m.c.operands.kind {
	case "dir":
		if w.text != "-" {
			return m.p.path(w)
		}
		ok = false // where the shell was before
	case "path", "pattern", "filter", "script":
		if w.text == "-" {
			return ""
		}
		return m.p.path(w)
	case "rev":
		if strings.HasPrefix(w.text, ":") {
			return ""
		}
		return m.p.path(w)
	case "number":
		ok = isNumber(w.text)
	case "seconds":
		seconds, err := strconv.ParseFloat(w.text, 64)
		ok = err == nil && isNumber(w.text) && seconds >= 0 && seconds <= maxSleep
	case "format":
		ok = strings.HasPrefix(w.text, "+")
	case "style":
		ok = (w.text == "aux" || w.text == "ax" || w.text == "auxf" || w.text == "axf") && !m.user
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

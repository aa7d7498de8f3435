package programs

import (
	"fmt"
	"strings"
)

// A run is what a program runs because of one option, in the column `runs`: `text:-c`, `code:-D~LAUNCHER`. Unlike the
// options of the other columns it is looked for at every word, since most of these programs were not looked at:
//
//	-x      the first letter of a word, with its value glued or in the next word
//	-name   with one dash or two          --name  also shortened
//	NAME=   the beginning of a word, as @ !word   a word without a value
//	~part   only if the value has this part
type run struct {
	kind RunKind
	name string
	part string
}

// A RunKind says how a program runs what an option gives it.
type RunKind string

// The kinds.
const (
	RunText RunKind = "text" // the value is a command line for a shell, or names a program
	RunCode RunKind = "code" // the value is code, or settings that name programs: rules cannot read it
	RunFrom RunKind = "from" // the program takes code from the file or directory, or puts a program there
)

// addRuns reads the column `runs`.
func (r *row) addRuns(line string) error {
	for token := range strings.FieldsSeq(line) {
		kind, name, ok := strings.Cut(token, ":")
		o := run{kind: RunKind(kind)}
		o.name, o.part, _ = strings.Cut(name, "~")
		if !ok || o.name == "" || o.kind != RunText && o.kind != RunCode && o.kind != RunFrom {
			return fmt.Errorf("token %q", token)
		}
		r.runs = append(r.runs, o)
	}
	return nil
}

// A RunFound is a run as it stands among words.
type RunFound struct {
	Kind      RunKind
	At        int // the word
	Value     int // the word of its value; -1: it has none
	ValueFrom int // where in that word the value begins
}

// RunsByOptions says whether an option may make the program run something.
func (p *Program) RunsByOptions() bool { return p != nil && len(p.runs) > 0 }

// Runs are what options among the words make the program run.
func (p *Program) Runs(words []string) []RunFound {
	var found []RunFound
	for i, w := range words {
		if w == "--" {
			return found
		}
		for n := range p.runs {
			at, from, ok := p.runs[n].value(w)
			if !ok {
				continue
			}
			f := RunFound{Kind: p.runs[n].kind, At: i, Value: i + at, ValueFrom: from}
			value := ""
			if f.Value < len(words) {
				value = words[f.Value][min(from, len(words[f.Value])):]
			} else {
				f.Value = -1
			}
			if strings.Contains(value, p.runs[n].part) {
				found = append(found, f)
			}
		}
	}
	return found
}

// value says where the value stands if the option is the word t: how many words on, and from which byte.
func (o *run) value(t string) (next, from int, ok bool) {
	switch {
	case o.name[0] == '!':
		return 0, 0, t == o.name[1:]
	case o.name[0] != '-': // NAME= and @
		return 0, len(o.name), strings.HasPrefix(t, o.name)
	case len(o.name) == 2:
		if len(t) == 2 {
			return 1, 0, t == o.name
		}
		return 0, 2, strings.HasPrefix(t, o.name)
	}
	name, _, glued := strings.Cut(t, "=")
	if i := strings.IndexByte(name, ':'); i > 0 && o.name[1] != '-' { // of java
		name, glued = name[:i], true
	}
	switch {
	case name == o.name, o.name[1] != '-' && name == "-"+o.name,
		o.name[1] == '-' && len(name) > 4 && strings.HasPrefix(o.name, name):
	case o.name == "-TT" && strings.HasPrefix(t, "-") && strings.HasSuffix(t, "TT"): // of zip
	default:
		return 0, 0, false
	}
	if glued {
		return 0, len(name) + 1, true
	}
	return 1, 0, true
}

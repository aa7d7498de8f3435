package programs

import (
	"slices"
	"strings"
)

// A Found is one option as it stands among words.
type Found struct {
	*Option        // nil: the row has none like it
	At, From   int // the word, and where in it the option begins: 1 or more for a letter in a cluster
	Value      int // the word of its value, of two the second; -1: it has none
	ValueFrom  int // where in that word the value begins
	Shortened  bool
	Impossible bool // it has no value where it needs one, or has one where it takes none
}

// A Reading is how a program takes its words.
type Reading struct {
	Options  []Found
	Operands []int // words
	Command  int   // the word at which the command begins that it runs; -1: none
	From     int   // behind the sub-command of a wrapper that has some, where its words begin; 0: it is not there
	Sure     bool  // all options are known, so that the operands are certain
}

// Read goes through the words behind the name of the program as it does. A word that the shell has not made yet, such
// as one with an expansion, is what it is without it.
func (p *Program) Read(words []string) Reading {
	takes := p.Takes()
	r := reader{p: p, words: words, Reading: Reading{Command: -1, Sure: true}, wordly: p.Has("words"),
		expression: p.Has("expression"), numbers: takes.Kind == "number"}
	commands, front, i := takes.Kind == "command", p.Has("front"), 0
	if p.subs != nil {
		i = r.behindSub()
		r.From, commands = i, i > 0
	}
	for i < len(words) {
		w := words[i]
		switch {
		case !r.isOption(w):
			if commands && (r.assigns(w) || w == "-" && r.clears()) {
				i++
				continue
			}
			if commands && len(r.Operands) == r.skip() {
				r.Command = i
				return r.Reading
			}
			if r.Operands == nil {
				r.Operands = make([]int, 0, min(room, len(words)-i))
			}
			r.Operands = append(r.Operands, i)
			r.ended = r.ended || front
			i++
		case w == "--" && !r.expression:
			r.ended = true
			i++
		default:
			i += r.option(i)
		}
	}
	return r.Reading
}

// isOption says whether a word is read as an option, or as the end of all options.
func (r *reader) isOption(w string) bool {
	switch {
	case r.expression:
		return r.begun || len(w) > 1 && w[0] == '-' || w == "!" || w == "(" || w == ")" || w == ","
	case r.ended || len(w) < 2 || w[0] != '-':
		return false
	}
	return !r.numbers || strings.Trim(w, "-.0123456789") != ""
}

// A reader goes through words.
type reader struct {
	Reading
	p          *Program
	words      []string
	expression bool
	wordly     bool // an option is a whole word
	numbers    bool // the operands are
	ended      bool // `--` was seen
	begun      bool // an expression has begun
}

// skip is how many operands stand before the command.
func (r *reader) skip() int {
	for _, o := range r.Options {
		if o.Option != nil && o.Instead {
			return 0
		}
	}
	return r.p.Takes().Skip
}

func (r *reader) assigns(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	return ok && r.p.Has("assigns") && isName(name)
}

// clears knows `env -`, which is `env -i`. What another program means by a dash alone is not certain.
func (r *reader) clears() bool {
	r.Sure = r.Sure && r.p.Has("assigns")
	return r.p.Has("assigns")
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// option reads the option at words[i] and returns how many words it takes.
func (r *reader) option(i int) int {
	w := r.words[i]
	switch {
	case r.wordly:
		return r.word(i)
	case w[1] == '-':
		return r.long(i)
	case w[1] <= '9' && strings.Trim(w[1:], "0123456789") == "" && r.p.Has("number"):
		return 1
	case len(w) > 2 && r.p.Has("alone"):
		r.unknown(i, 1)
		return 1
	}
	return r.letters(i)
}

// room is for how many options and operands a reading has room at once.
const room = 4

func (r *reader) add(f Found) {
	if r.Options == nil {
		r.Options = make([]Found, 0, min(room, max(2, len(r.words)-f.At)))
	}
	r.Options = append(r.Options, f)
}

func (r *reader) unknown(i, from int) {
	r.add(Found{At: i, From: from, Value: -1})
	r.Sure = r.Sure && (r.words[i] == "--version" || r.words[i] == "--help")
}

// letters reads a cluster.
func (r *reader) letters(i int) int {
	w := r.words[i]
	for n := 1; n < len(w); n++ {
		o := r.p.letter(w[n])
		if o == nil {
			r.unknown(i, n)
			continue
		}
		f := Found{Option: o, At: i, From: n, Value: -1}
		switch {
		case o.Takes == Nothing:
			r.add(f)
			continue
		case n+1 < len(w) && r.p.Has("apart") && strings.Trim(w[n+1:], "0123456789") != "":
			f.Impossible = true
			r.add(f)
			continue
		case n+1 < len(w):
			f.Value, f.ValueFrom = i, n+1
		case o.Takes == Maybe:
		default:
			return r.next(f)
		}
		r.add(f)
		return 1
	}
	return 1
}

// next gives an option the words behind it.
func (r *reader) next(f Found) int {
	n := 1
	if f.Takes == Two {
		n = 2
	}
	if f.At+n >= len(r.words) {
		f.Impossible = true
		r.add(f)
		return len(r.words) - f.At
	}
	f.Value = f.At + n
	r.add(f)
	return n + 1
}

// long reads `--name`, `--name=value`.
func (r *reader) long(i int) int {
	name, _, glued := strings.Cut(r.words[i], "=")
	f := Found{Option: r.p.long[name], At: i, Value: -1}
	if f.Option == nil && !r.p.Has("whole") {
		f.Option, f.Shortened = r.p.shortened(name), true
	}
	return r.named(f, name, glued)
}

// word reads an option that is a whole word: `-name`, `--name`, `-name=value`.
func (r *reader) word(i int) int {
	name, _, glued := strings.Cut(r.words[i], "=")
	r.begun = r.begun || name != "-H" && name != "-L" && name != "-P"
	f := Found{Option: r.p.long[r.words[i]], At: i, Value: -1}
	if f.Option != nil { // `-newer=x` may be a name
		glued, name = false, r.words[i]
	} else {
		f.Option = r.p.long[name]
	}
	if f.Option == nil && strings.HasPrefix(name, "--") {
		f.Option = r.p.long[name[1:]]
	}
	if head := strings.TrimRight(name, "0123456789"); f.Option == nil && !glued && r.p.Has("digits") {
		if o := r.p.long[head]; o != nil && o.Takes == Value {
			f.Option, f.Value, f.ValueFrom = o, i, len(head)
			r.add(f)
			return 1
		}
	}
	return r.named(f, name, glued)
}

func (r *reader) named(f Found, name string, glued bool) int {
	switch {
	case f.Option == nil:
		r.unknown(f.At, 0)
		return 1
	case glued:
		f.Value, f.ValueFrom = f.At, len(name)+1
		f.Impossible = f.Takes == Nothing || f.Takes == Two
	case f.Takes == Value || f.Takes == Two:
		return r.next(f)
	}
	r.add(f)
	return 1
}

// shortened is the option that a name may be the beginning of; of several the worst.
func (p *Program) shortened(name string) *Option {
	var found *Option
	if len(name) < 3 {
		return nil
	}
	for _, long := range p.order {
		if o := p.long[long]; strings.HasPrefix(long, name) && (found == nil || found.Safe && !o.Safe) {
			found = o
		}
	}
	return found
}

// behindSub returns where the words of a wrapper's sub-command begin; 0: there is none.
func (r *reader) behindSub() int {
	value := false // the word may be the value of an option that is not known
	for i := 0; i < len(r.words); i++ {
		w := r.words[i]
		if n := r.isSub(i); n > 0 {
			return i + n
		}
		switch {
		case r.isGroup(w):
			value = false
		case len(w) > 1 && w[0] == '-':
			name, _, glued := strings.Cut(w, "=")
			o := r.p.long[name]
			if o == nil && w[1] != '-' {
				o = r.p.letter(w[len(w)-1])
			}
			if o != nil && o.Takes == Value && !glued {
				i++
			}
			value = o == nil && !glued
		case !value && !(strings.HasPrefix(w, "+") && i+1 < len(r.words) && r.isSub(i+1) > 0):
			return 0
		default:
			value = false
		}
	}
	return 0
}

// isSub says how many words from words[i] on are a sub-command; 0: none.
func (r *reader) isSub(i int) int {
	w := r.words[i]
	for _, sub := range r.p.subs {
		if w == sub {
			return 1
		}
		if i+1 < len(r.words) && r.words[i+1] != "" && w+"-"+r.words[i+1] == sub {
			return 2
		}
	}
	return 0
}

func (r *reader) isGroup(w string) bool { return w != "" && slices.Contains(r.p.subs, w+"-") }

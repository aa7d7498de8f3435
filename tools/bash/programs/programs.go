// Package programs is the one table of what programs do with their words. A row is a program, or a sub-command such as
// `git log`, with the version that was looked at. Proofs, dangers, lists of files and rules read options here and
// nowhere else, so they cannot disagree.
//
// The rows are text (*.txt), in a notation that package row explains in table.go.
package programs

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A Program is one row. It does not change.
type Program struct {
	Name   string   // the first of Names
	Names  []string // as the table has them
	Looked string   // the package and the version whose source or manual was looked at

	Operands Operands // of the column known; see Takes
	Proved   Operands // of the columns proved and edits
	Danger   []Danger // whatever the words are, or with certain options
	Version  []string // words that alone make it print its version
	// environment variables and files that change what it does; `!` behind those that make it run or write something
	Obeys  []string
	Starts []string // programs that it starts by itself: `git`

	Reads bool // it has options and operands with which it only reads: column `proved`
	Edits bool // it has some with which it only changes what its operands name: column `edits`

	Always Effect // what it does whatever its options are

	traits []string
	options
	behind
}

// options are how a program reads its options.
type options struct {
	letters *[unicode.MaxASCII + 1]*Option // nil: there are none
	long    map[string]*Option
	order   []string // names of long options as listed, for shortened ones
}

// behind is what a program runs besides its operands.
type behind struct {
	runs []run    // by options
	subs []string // sub-commands behind which its command stands
}

// Operands are what stands besides options.
type Operands struct {
	First string // what the first is if that differs from the others: pattern filter script text; "": nothing
	Skip  int    // how many are First
	// path dir write put text rev list number seconds format command shell code, and words that package bash compares:
	// name setting printed condition asks; "": none
	Kind     string
	Min, Max int
}

// Several says whether any number of operands may stand there.
func (o Operands) Several() bool { return o.Max == many }

// many stands for no limit.
const many = 1 << 20

// Takes says what an option takes.
type Takes uint8

// What an option takes.
const (
	Nothing Takes = iota
	Value         // glued or behind `=`, or the next word
	Maybe         // glued or behind `=` only
	Two           // two words
)

// A Kind says what the value of an option is.
type Kind byte

// The kinds of values.
const (
	Text  Kind = 't'
	Reads Kind = 'p' // a file or a place that it reads
	Write Kind = 'w' // a file that it writes
	Runs  Kind = 'x' // a program, or a text for a shell
	Code  Kind = 'c' // a program in a language
	Into  Kind = 'd' // the directory in which all other paths begin
	List  Kind = 'l' // a file that names further files or options
)

// An Option is one option of a row.
type Option struct {
	Name    string // with its dashes
	Takes   Takes
	Kind    Kind
	Safe    bool   // it is in the column `proved` or `edits`
	Instead bool   // with it no operand is First
	Does    Effect // what the program does because of it
}

// An Effect is what a program does, always or because of an option: the columns with these names.
type Effect uint16

// The effects.
const (
	Deep    Effect = 1 << iota // it goes down into directories
	Follows                    // it follows links there
	Changes                    // it changes the files that its operands name
	Turns                      // it treats a link that an operand names the other way, see trait itself
	Lists                      // it reads files that its words do not name
	Unpacks                    // it changes files that its words do not name
	Shows                      // git shows contents of files that it tracks
	Hides                      // it shows none after all, unless an option does Shows
	Adds                       // git keeps files that it did not track
)

// A Danger is what makes a command dangerous: with one of Options, or with any words if there are none.
type Danger struct {
	Clause  string // of rule R7
	Why     string
	Options []string // as they are listed; nil: whatever they are
}

// Has says whether the row has a trait, see table.go.
func (p *Program) Has(trait string) bool { return p != nil && slices.Contains(p.traits, trait) }

// letter is the option of a letter; nil: there is none.
func (p *Program) letter(c byte) *Option {
	if p.letters == nil || c > unicode.MaxASCII {
		return nil
	}
	return p.letters[c]
}

func (p *Program) allLetters() (all []*Option) {
	for c := range byte(unicode.MaxASCII + 1) {
		if o := p.letter(c); o != nil {
			all = append(all, o)
		}
	}
	return all
}

// Options are all options of the row: letters first, each in their order.
func (p *Program) Options() []*Option {
	all := p.allLetters()
	for _, name := range slices.Sorted(maps.Keys(p.long)) {
		all = append(all, p.long[name])
	}
	return all
}

// Takes are the operands that it may have, whatever it does with them.
func (p *Program) Takes() Operands {
	if p.Operands.Kind == "" {
		return p.Proved
	}
	return p.Operands
}

// table is read once, when the first command needs it, since most processes never do.
var table = sync.OnceValue(func() map[string]*Program {
	all, err := parse(sources())
	if err != nil {
		panic(err) // the rows are part of the program, and a test reads them
	}
	return all
})

// A subCommand is a name of two or more words, as the table has them.
type subCommand struct{ program, sub string }

var subCommands = sync.OnceValue(func() map[subCommand]*Program {
	all := map[subCommand]*Program{}
	for name, p := range table() {
		if program, sub, ok := strings.Cut(name, " "); ok {
			all[subCommand{program, sub}] = p
		}
	}
	return all
})

// OfSub returns the row of a sub-command, such as `log` of git or `mod graph` of go; nil: there is none.
func OfSub(program, sub string) *Program { return subCommands()[subCommand{program, sub}] }

// Of returns the row of a program, by the last component of its path; nil: there is none. A version behind the name
// does not count: python3.11 is python3.
func Of(name string) *Program {
	p := table()[name]
	if p == nil {
		if isLoader(name) {
			return table()["ld.so"]
		}
		if short := strings.TrimRight(name, "0123456789.-"); short != name && short != "" {
			if p = table()[short]; !p.Has("numbered") {
				return nil
			}
		}
	}
	return p
}

// isLoader knows the programs that load another one: ld-linux-x86-64.so.2.
func isLoader(name string) bool {
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") ||
		strings.HasPrefix(name, "ld-2.") || strings.HasPrefix(name, "ld64.so")
}

// All are the rows in the order of their names, each once.
func All() []*Program {
	seen := map[*Program]bool{}
	var all []*Program
	for _, name := range slices.Sorted(maps.Keys(table())) {
		if p := table()[name]; !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	return all
}

// Obeyed are the variables by which some program, or every one, is made to run or to write something.
var Obeyed = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, p := range table() {
		for _, name := range p.Obeys {
			if name, hard := strings.CutSuffix(name, "!"); hard {
				names[name] = true
			}
		}
	}
	return names
})

package bash

import (
	"slices"
	"strings"
	"sync"

	"codehand/tools/bash/programs"
)

// A reading is how a program takes its words, by its row in the table.
type reading struct {
	programs.Reading
	row  *programs.Program // nil: the table does not have the program
	args []spelt

	git *gitCall // see gitCall; nil: not computed yet
}

// read reads the words behind the name of a program. The commands of a line are read once: see simple.reading.
func read(name string, args []spelt) reading { return readAs(programs.Of(name), args) }

func readAs(row *programs.Program, args []spelt) reading {
	if row == nil {
		return reading{args: args}
	}
	words := wordLists.Get().(*[]string)
	*words = (*words)[:0]
	for i := range args {
		*words = append(*words, args[i].bare)
	}
	r := reading{Reading: row.Read(*words), row: row, args: args}
	clear(*words)
	wordLists.Put(words)
	return r
}

// wordLists hold the words of a program while its row reads them.
var wordLists = sync.Pool{New: func() any { return new([]string) }}

// reading is how the program takes its words that begins at a head.
func (c *simple) reading(n int) *reading {
	h := &c.heads[n]
	if !h.read {
		h.read, h.reading = true, readAs(h.row, c.words[h.at+1:h.end])
	}
	return &h.reading
}

// gitCall is how git takes the words, if the program is git.
func (r *reading) gitCall() *gitCall {
	if r.git == nil {
		c := gitRead(r)
		r.git = &c
	}
	return r.git
}

// value is the value of an option; of one that has none the zero spelt, which is known and empty.
func (r *reading) value(o *programs.Found) spelt {
	if o.Value < 0 {
		return spelt{}
	}
	w := r.args[o.Value]
	if o.ValueFrom == 0 || o.ValueFrom > len(w.text) {
		return w
	}
	return spelt{text: w.text[o.ValueFrom:], bare: w.bare[min(o.ValueFrom, len(w.bare)):], shape: w.shape}
}

// has returns the first word that is one of the options, perhaps shortened; "": none is there. names are with dashes.
func (r *reading) has(names ...string) string {
	for i := range r.Options {
		if o := &r.Options[i]; o.Option != nil && isAny(o.Name, names) {
			return r.args[o.At].bare
		}
	}
	return ""
}

func isAny(s string, list []string) bool {
	for _, each := range list {
		if s == each {
			return true
		}
	}
	return false
}

// given returns the value of the last of the options that has one; nil: there is none.
func (r *reading) given(names ...string) *spelt {
	var last *spelt
	for i := range r.Options {
		if o := &r.Options[i]; o.Option != nil && o.Value >= 0 && isAny(o.Name, names) {
			w := r.value(o)
			last = &w
		}
	}
	return last
}

// operands are the words that are no options, values or a command that the program runs.
func (r *reading) operands() []spelt {
	words := make([]spelt, len(r.Operands))
	for i, at := range r.Operands {
		words[i] = r.args[at]
	}
	return words
}

// skipped is how many of the operands are no files, since they are a pattern, a script or a text.
func (r *reading) skipped() int {
	takes := r.row.Takes()
	if takes.First == "" || takes.First == "path" {
		return 0
	}
	if r.instead() {
		return 0
	}
	return min(takes.Skip, len(r.Operands))
}

// instead says whether an option gives what else the first operand is.
func (r *reading) instead() bool {
	return slices.ContainsFunc(r.Options, func(o programs.Found) bool { return o.Option != nil && o.Instead })
}

// does says whether the program has an effect, always or because of an option.
func (r *reading) does(e programs.Effect) bool {
	return r.row != nil && r.row.Always&e != 0 || r.told(e)
}

// told says whether an option makes the program have an effect.
func (r *reading) told(e programs.Effect) bool {
	for i := range r.Options {
		if o := r.Options[i].Option; o != nil && o.Does&e != 0 {
			return true
		}
	}
	return false
}

// oldLetters are the letters of options that stand before all other words without a dash: `tar xf x.tar`.
func (r *reading) oldLetters() string {
	if r.row.Has("dashless") && len(r.args) > 0 && !strings.HasPrefix(r.args[0].bare, "-") {
		return r.args[0].bare
	}
	return ""
}

// gitRow is the row of a sub-command of git.
func gitRow(sub string) *programs.Program {
	if row := programs.OfSub("git", sub); row != nil {
		return row
	}
	return programs.OfSub("git", "*")
}

// A gitCall is a command line of git.
type gitCall struct {
	own  *reading // git's own options
	sub  string
	args []spelt // behind the sub-command
	reading
}

// gitOf reads the words behind `git`.
func gitOf(args []spelt) gitCall {
	r := read("git", args)
	return gitRead(&r)
}

func gitRead(own *reading) gitCall {
	c := gitCall{own: own}
	if len(c.own.Operands) == 0 {
		return c
	}
	at := c.own.Operands[0]
	c.sub, c.args = own.args[at].bare, own.args[at+1:]
	c.reading = readAs(gitRow(c.sub), c.args)
	return c
}

// plain says that no option before the sub-command runs programs or sets keys.
func (c *gitCall) plain() bool { return c.own.has("-c", "--config-env") == "" }

// elsewhere says that git works in another place than the text tells.
func (c *gitCall) elsewhere() bool {
	return c.own.has("--git-dir", "--work-tree", "--super-prefix") != ""
}

// plainDashes are words that are no options by their look; for unknown programs.
func plainDashes(args []spelt) []spelt {
	var found []spelt
	for i := range args {
		if t := args[i].bare; t == "--" {
			return append(found, args[i+1:]...)
		} else if !strings.HasPrefix(t, "-") || t == "-" {
			found = append(found, args[i])
		}
	}
	return found
}

package bash

import (
	"codehand/tools/bash/programs"
)

// An Explanation says which row and which column of the table of programs decided about one simple command.
type Explanation struct {
	Text   string // as written
	Class  Class
	Why    string // see Analysis.Why
	Row    string // the name of the row; "": the table has none
	Looked string // the version that was looked at
	Words  []WordExplained
}

// A WordExplained says how a program takes one of its words.
type WordExplained struct {
	Text   string
	Column string // `proved`, `edits`, `known`, `danger D1`, `operand`, `command`; "": the row has nothing like it
	Means  string // what the value or the operand is: `path`, `text`; "": it has none
}

// Explain reads a command as Analyze does, and tells of each simple command in it what the table says.
func Explain(command string, inside func(path string) bool) []Explanation {
	a := Analyze(command, inside)
	s := newScript(command)
	var all []Explanation
	parts := a.Parts
	for i := range s.found().commands {
		c := &s.found().commands[i]
		if c.node == nil && c.stmt.Cmd != nil || len(parts) == 0 {
			continue
		}
		e := Explanation{Text: parts[0].Text, Class: parts[0].Class, Why: parts[0].Why}
		if len(parts) == 1 && len(a.Parts) == 1 && a.Class == Dangerous {
			e.Class, e.Why = a.Class, a.Why
		}
		parts = parts[1:]
		if len(c.words) > 0 {
			e.explain(c.words[0].name(), c.words[1:])
		}
		all = append(all, e)
	}
	return all
}

// explain fills in what the row of a program says about its words.
func (e *Explanation) explain(name string, args []spelt) {
	r := read(name, args)
	if name == "git" {
		if c := gitOf(args); c.sub != "" && c.row != nil {
			e.options(c.own)
			r = c.reading
			if len(c.args) > 0 {
				if longer := programs.OfSub("git", c.sub+" "+c.args[0].bare); longer != nil {
					r = readAs(longer, c.args[1:])
				}
			}
		}
	}
	if r.row == nil {
		return
	}
	e.Row, e.Looked = r.row.Name, r.row.Looked
	e.options(&r)
	takes := r.row.Takes()
	for i, at := range r.Operands {
		kind := takes.Kind
		if i < r.skipped() {
			kind = takes.First
		}
		e.Words = append(e.Words, WordExplained{Text: r.args[at].text, Column: "operand", Means: kind})
	}
	if r.Command >= 0 {
		e.Words = append(e.Words, WordExplained{Text: joined(r.args[r.Command:]), Column: "command"})
	}
}

// options tells how options are taken.
func (e *Explanation) options(r *reading) {
	for i := range r.Options {
		o := &r.Options[i]
		bare := r.args[o.At].bare
		w := WordExplained{Text: r.args[o.At].text, Column: columnOf(r.row, o.Option)}
		if o.From > 0 && o.From < len(bare) { // a letter in a cluster
			w.Text = "-" + bare[o.From:o.From+1]
		}
		if o.Value >= 0 {
			w.Means = kindNames[o.Kind]
		}
		e.Words = append(e.Words, w)
	}
}

var kindNames = map[programs.Kind]string{
	programs.Text: "text", programs.Reads: "path that it reads", programs.Write: "path that it writes",
	programs.Runs: "program that it runs", programs.Code: "code that it runs", programs.Into: "directory",
	programs.List: "file that names more",
}

// columnOf is where an option stands in its row.
func columnOf(row *programs.Program, o *programs.Option) string {
	if o == nil {
		return ""
	}
	for _, d := range row.Danger {
		if isAny(o.Name, d.Options) {
			return "danger " + d.Clause
		}
	}
	switch {
	case o.Safe && row.Reads:
		return "proved"
	case o.Safe:
		return "edits"
	}
	return "known"
}

package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxNested is how deep shells may start shells; what is deeper is not read.
	maxNested = 4
	// maxTexts bounds the texts for nested shells that one script is searched for, since each may hold many others.
	maxTexts = 100
	// maxMistakes is how often a text that does not parse is read on behind a mistake.
	maxMistakes = 10
	// maxUnfinished is how many lines before a mistake may belong to what it is in.
	maxUnfinished = 3
)

// roomPerCommand is for how many bytes of a text one command is expected.
const roomPerCommand = 32

// A finding is all that a script would run, as far as the text tells, in the order of the text.
type finding struct {
	commands []simple
	loose    []spelt  // words that are no words of a command: values, what a loop goes over
	broken   []string // nested texts that do not parse
	texts    int      // nested texts read so far
	tooDeep  bool     // a shell in more than maxNested shells, or more than maxTexts texts
	bomb     string   // a function that starts itself over and over
	loops    bool     // what a loop or a choice goes over is computed by a command
	data     evaluation
	searched bool // CDPATH may tell where a cd leads
	odd      bool // functions, coprocesses and what else makes names mean something new
	funcs    map[string]bool
	bag      []spelt // see guesses
}

// A simple is one simple command, or a test or arithmetic that stands as one.
type simple struct {
	in      *script
	stmt    *syntax.Stmt
	node    syntax.Node // what stands as one: *syntax.CallExpr, *syntax.DeclClause, … ; nil: only redirections
	words   []spelt     // of a call and of a declaration; empty: there is no command
	assigns []*syntax.Assign
	heads   []head
	uses    []runsUse // one for each head
	inner   bool      // in a substitution or a nested shell
	fed     bool      // its input comes from a pipe
	judged  bool      // fault is known, see onlyReads
	fault   string
	stand
}

// A scope is what surrounds a command. Commands of one shell share it: `cd` changes it for all that follow.
type scope struct {
	in    *script
	inner bool
	fed   bool
	depth int
	stand
}

// found returns what the script would run. It is worked out once.
func (s *script) found() *finding {
	if s.finding == nil {
		s.finding = &finding{commands: make([]simple, 0, 1+len(s.text)/roomPerCommand)}
		s.finding.data.f = s.finding
		s.finding.script(s, scope{in: s})
		if plain, ok := withoutJoins(s.text); ok {
			s.finding.text(plain, scope{inner: true})
		}
		if s.finding.data.wanted {
			s.finding.data.all()
		}
		s.finding.computed()
	}
	return s.finding
}

// withoutJoins makes newlines of backslash-newlines. The parser joins the lines, also at the end of a comment, where
// bash does not; so such a text is read both ways.
func withoutJoins(text string) (string, bool) {
	if !strings.Contains(text, "\\\n") && !strings.Contains(text, "\\\r\n") {
		return text, false
	}
	return strings.NewReplacer("\\\n", "\n", "\\\r\n", "\n").Replace(text), true
}

func (f *finding) script(s *script, sc scope) {
	if s.file != nil {
		f.stmts(s.file.Stmts, &sc)
		return
	}
	f.broken = append(f.broken, s.text)
	f.despite(s, sc)
}

// text reads what a nested shell would run. sc is the scope that the shell starts in.
func (f *finding) text(text string, sc scope) {
	s := newScript(text)
	sc.in = s
	f.script(s, sc)
}

// nested reads a text both ways, one level deeper.
func (f *finding) nested(text string, sc scope) {
	if strings.TrimSpace(text) == "" {
		return
	}
	sc.depth++
	f.texts++
	if sc.depth > maxNested || f.texts > maxTexts {
		f.tooDeep = true
		return
	}
	sc.inner = true
	f.text(text, sc)
	if plain, ok := withoutJoins(text); ok {
		f.text(plain, sc)
	}
}

// simple reads one simple command, and what its words run.
func (f *finding) simple(stmt *syntax.Stmt, sc *scope) {
	f.commands = append(f.commands, simple{in: sc.in, stmt: stmt, stand: sc.stand, inner: sc.inner, fed: sc.fed})
	c := &f.commands[len(f.commands)-1] // until commands grows: then a copy that is only read
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		c.node, c.assigns, c.words = cmd, cmd.Assigns, spell(sc.in.text, cmd.Args)
	case *syntax.DeclClause:
		c.node, c.assigns, c.words = cmd, cmd.Args, declared(sc.in.text, cmd)
	case nil:
	default:
		c.node = cmd
	}
	if len(c.words) > 0 {
		c.heads = headsOf(c.words)
		f.tooDeep = f.tooDeep || len(c.heads) > maxHeads
		c.heads = c.heads[:min(len(c.heads), maxHeads)]
		c.uses = make([]runsUse, len(c.heads))
		for i, h := range c.heads {
			c.uses[i] = runsOf(c, i)
			if w := puts(c.words[h.at:h.end], c.uses[i].texts); w != "" {
				c.uses[i].code, c.uses[i].open = w, true
			}
			if c.uses[i].code == "" && !h.quiet {
				c.uses[i].code = fedCode(c, h.name)
			}
		}
	}
	if c.node != nil {
		f.node(c.node, sc)
	}
	for _, a := range c.assigns {
		if a.Value != nil {
			f.loose = spellOne(f.loose, sc.in.text, a.Value)
		}
		if a.Value != nil && a.Name != nil && namesProgram(a.Name.Value) {
			f.nested(strings.TrimLeft(literalText(sc.in.text, a.Value), "|! "), *sc)
		}
	}
	f.fedTexts(c, sc)
	for n, h := range c.heads {
		if !h.quiet {
			f.data.by(c, n)
		}
		for _, text := range c.uses[n].texts {
			f.nested(text, *sc)
		}
	}
	if len(c.words) > 0 {
		f.searched = f.searched || strings.Contains(sc.in.text, "CDPATH")
		sc.follow(c.words, f.searched)
	}
}

// declared gives `export X=1` the words that rules match.
func declared(text string, d *syntax.DeclClause) []spelt {
	words := []spelt{{text: d.Variant.Value, bare: d.Variant.Value, from: int(d.Pos().Offset()),
		to: int(d.Variant.End().Offset())}}
	for _, a := range d.Args {
		if a.Naked && a.Value != nil {
			words = spellOne(words, text, a.Value)
			continue
		}
		t := cut(text, a)
		words = append(words, spelt{text: t, bare: t, from: int(a.Pos().Offset()), to: int(a.End().Offset())})
	}
	return words
}

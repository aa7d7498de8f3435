package bash

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// prove says whether the rules R0 to R6 hold for every part of the command: then it is ReadOnly, and why is empty. Else
// it is Unknown (R0, R1) or Writes, and why begins with the rule and names the word.
func (s *script) prove(inside func(string) bool) (Class, string) {
	if class, why := s.readable(); why != "" {
		return class, why
	}
	if len(s.file.Stmts) == 0 {
		return Unknown, "R1: there is no command"
	}
	if n := s.commands(); n > maxParts {
		return Unknown, "R1: " + strconv.Itoa(n) + " simple commands, at most " + strconv.Itoa(maxParts)
	}
	p := s.newProver(inside)
	for _, stmt := range s.file.Stmts {
		if why := p.list(stmt); why != "" {
			return Writes, why
		}
	}
	return p.proved()
}

// proved is what is left to say of a line or part in which nothing was wrong.
func (p *prover) proved() (Class, string) {
	return ReadOnly, ""
}

// provePart is prove for one simple command alone, with its redirections; what stands around it does not count. What is
// no simple command is never ReadOnly.
func (s *script) provePart(stmt *syntax.Stmt, inside func(string) bool) (Class, string) {
	if class, why := s.readable(); why != "" {
		return class, why
	}
	p := s.newProver(inside)
	why := p.simple(stmt)
	p.proofs = append(p.proofs, proof{stmt, why, p.dir})
	if why != "" {
		return Writes, why
	}
	return p.proved()
}

// newProver returns a prover that stands at the start of the line. There is one per script, since every part of a
// command asks for it.
func (s *script) newProver(inside func(string) bool) *prover {
	if s.prover == nil {
		s.prover = &prover{text: s.text}
	}
	s.prover.inside, s.prover.dir = inside, ""
	return s.prover
}

// readable is R0 and the first half of R1. The parser reads text against R0 otherwise than bash does, so no part of it
// can be trusted.
func (s *script) readable() (Class, string) {
	if s.fault == nil {
		fault := textFault(s.text)
		s.fault = &fault
	}
	if *s.fault != "" {
		return Unknown, "R0: " + *s.fault
	}
	if s.file == nil {
		return Unknown, "R1: it does not parse: " + snippet(s.err.Error())
	}
	return ReadOnly, ""
}

// commands counts simple commands, wherever they stand.
func (s *script) commands() int {
	if len(s.text) < 2*maxParts { // a letter and a separator each
		return 0
	}
	n := 0
	syntax.Walk(s.file, func(node syntax.Node) bool {
		if _, ok := node.(*syntax.CallExpr); ok {
			n++
		}
		return true
	})
	return n
}

// A prover looks at the parts of one command line in their order.
type prover struct {
	text   string
	inside func(string) bool
	dir    string   // where a `cd` with an absolute path led; "": relative paths start where the line starts, or below
	words  []word   // of the command at hand
	texts  []string // of its words behind the name
	rest   []word   // its operands
	paths  []word   // those of this command that passed as paths
	proofs []proof
}

// A proof is what simple found about a statement where no `cd` stands before it, and all that it leaves in the prover
// for what follows: where it leads itself.
type proof struct {
	stmt *syntax.Stmt
	why  string
	dir  string
}

// again is simple for a statement that was perhaps looked at alone already.
func (p *prover) again(stmt *syntax.Stmt) string {
	if p.dir == "" {
		for i := range p.proofs {
			if kept := &p.proofs[i]; kept.stmt == stmt {
				p.dir = kept.dir
				return kept.why
			}
		}
	}
	return p.simple(stmt)
}

// list is rule R2 for lists, pipes and negation. It returns what is wrong; "": nothing.
func (p *prover) list(stmt *syntax.Stmt) string {
	pair, ok := stmt.Cmd.(*syntax.BinaryCmd)
	if !ok {
		return p.again(stmt)
	}
	switch {
	case stmt.Background:
		return "R2: & starts it in the background"
	case pair.Op != syntax.AndStmt && pair.Op != syntax.OrStmt && pair.Op != syntax.Pipe:
		return "R2: operator " + pair.Op.String()
	case len(stmt.Redirs) > 0 || stmt.Coprocess || stmt.Disown:
		return "R2: " + p.source(stmt)
	}
	if why := p.list(pair.X); why != "" {
		return why
	}
	return p.list(pair.Y)
}

// simple is what R2 to R6 say about one simple command.
func (p *prover) simple(stmt *syntax.Stmt) string {
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		return "R2: & starts it in the background"
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	switch {
	case stmt.Cmd == nil:
		return "R3: redirection without a command"
	case !ok:
		return "R2: " + nodeName(stmt.Cmd) + ": " + p.source(stmt.Cmd)
	case len(call.Assigns) > 0:
		return "R2: assignment: " + p.source(call.Assigns[0])
	}
	p.words, p.paths = p.words[:0], p.paths[:0]
	for _, arg := range call.Args {
		w, why := p.word(arg)
		if why != "" {
			return "R2: " + why
		}
		p.words = append(p.words, w)
	}
	for _, r := range stmt.Redirs {
		if why := p.redirection(r); why != "" {
			return "R3: " + why
		}
	}
	if call.Args[0].Lit() != p.words[0].text { // also `l''s`, in which nothing is left of the quotes
		return "R4: the name of the command is not one plain word: " + snippet(p.words[0].text)
	}
	return p.command(p.words[0].text, p.words[1:])
}

// command is the rest of R4, and then what the row of the program says about its words.
func (p *prover) command(name string, args []word) string {
	row := programs.Of(name)
	if row != nil && len(args) == 1 && isAny(args[0].text, row.Version) {
		return ""
	}
	why := ""
	switch name {
	case "git":
		if why = p.git(args); why != "" {
			return "R6: git" + why
		}
		return ""
	case "echo":
	case "printf":
		why = printfFault(args)
	case "test", "[":
		why = testFault(name, args)
	case "command":
		why = p.commandFault(args)
	default:
		if row == nil || !row.Reads {
			return "R4: " + snippet(name) + " is not on the list"
		}
		why = p.match(row, args)
		if why == "" && name == "cd" {
			p.enter(p.rest[0].text)
		}
	}
	if why != "" {
		return "R5: " + name + ": " + why
	}
	return ""
}

// source returns what stands in the text for node, as part of a message.
func (p *prover) source(node syntax.Node) string {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	if from > to || to > len(p.text) {
		return ""
	}
	return snippet(p.text[from:to])
}

// maxSnippet is how many bytes of a word a message shows.
const maxSnippet = 80

// snippet makes a word fit for one line of a message.
func snippet(s string) string {
	if len(s) > maxSnippet {
		s = strings.ToValidUTF8(s[:maxSnippet], "") + "…"
	}
	if strings.ContainsAny(s, "\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return s
}

func nodeName(node syntax.Node) string {
	switch node.(type) {
	case *syntax.CmdSubst:
		return "substitution"
	case *syntax.ParamExp:
		return "expansion"
	case *syntax.ArithmExp:
		return "arithmetic"
	case *syntax.ProcSubst:
		return "process substitution"
	case *syntax.ExtGlob:
		return "extended glob"
	case *syntax.Subshell:
		return "subshell"
	case *syntax.Block:
		return "block"
	case *syntax.FuncDecl:
		return "function"
	case *syntax.WhileClause, *syntax.ForClause:
		return "loop"
	case *syntax.IfClause:
		return "if"
	case *syntax.CaseClause:
		return "case"
	case *syntax.TestClause:
		return "[[ ]]"
	case *syntax.ArithmCmd:
		return "(( ))"
	case *syntax.DeclClause:
		return "declaration"
	case *syntax.TimeClause:
		return "time"
	case *syntax.CoprocClause:
		return "coproc"
	case *syntax.LetClause:
		return "let"
	case *syntax.BinaryCmd:
		return "list"
	}
	return "not a simple command"
}

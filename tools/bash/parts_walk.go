package bash

import (
	"mvdan.cc/sh/v3/syntax"
)

func (f *finding) stmts(stmts []*syntax.Stmt, sc *scope) {
	outer := sc.failed
	sc.failed = nil
	for i, stmt := range stmts {
		if i > 0 {
			sc.settle()
		}
		f.stmt(stmt, sc)
	}
	sc.failed = union(outer, sc.failed)
}

// apart reads statements that run in a shell of their own.
func (f *finding) apart(stmts []*syntax.Stmt, sc *scope, change func(*scope)) {
	own := *sc
	change(&own)
	f.stmts(stmts, &own)
}

func same(*scope) {}

func substituted(sc *scope) { sc.inner, sc.fed = true, false }

func (f *finding) stmt(stmt *syntax.Stmt, sc *scope) {
	if stmt.Cmd == nil || isSimple(stmt.Cmd) {
		f.simple(stmt, sc)
	} else {
		if len(stmt.Redirs) > 0 {
			f.commands = append(f.commands,
				simple{in: sc.in, stmt: stmt, stand: sc.stand, inner: sc.inner, fed: sc.fed})
		}
		f.compound(stmt.Cmd, sc)
	}
	for _, r := range stmt.Redirs {
		f.word(r.Word, sc)
		if r.Hdoc != nil {
			f.word(r.Hdoc, sc)
		}
	}
}

func isSimple(c syntax.Command) bool {
	switch c.(type) {
	case *syntax.CallExpr, *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		return true
	}
	return false
}

func (f *finding) compound(cmd syntax.Command, sc *scope) {
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		f.binary(c, sc)
	case *syntax.Subshell:
		f.apart(c.Stmts, sc, same)
	case *syntax.Block:
		f.stmts(c.Stmts, sc)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			f.stmts(c.Cond, sc)
			f.stmts(c.Then, sc)
			sc.settle()
		}
	case *syntax.WhileClause:
		f.stmts(c.Cond, sc)
		f.stmts(c.Do, sc)
	case *syntax.ForClause:
		f.loop(c, sc)
	case *syntax.CaseClause:
		f.loops = f.loops || !literalWord(c.Word)
		f.word(c.Word, sc)
		for _, item := range c.Items {
			sc.settle()
			for _, p := range item.Patterns {
				f.loops = f.loops || !literalWord(p)
				f.word(p, sc)
			}
			f.stmts(item.Stmts, sc)
		}
	case *syntax.FuncDecl:
		f.odd = true
		if c.Name != nil && forks(c) { // the parser takes `() x` for a function without a name
			f.bomb = c.Name.Value
		}
		if c.Name != nil {
			f.function(c.Name.Value)
		}
		f.stmt(c.Body, sc)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			f.stmt(c.Stmt, sc)
		}
	case *syntax.CoprocClause:
		f.odd = true
		f.stmt(c.Stmt, sc)
	default:
		f.odd = true
		f.node(c, sc)
	}
}

func (f *finding) binary(c *syntax.BinaryCmd, sc *scope) {
	if c.Op != syntax.Pipe && c.Op != syntax.PipeAll {
		f.either(c, sc)
		return
	}
	own := [2]scope{*sc, *sc}
	own[1].fed = true
	f.stmt(c.X, &own[0])
	f.stmt(c.Y, &own[1])
	f.piped(c, sc)
}

// either reads `a && b` and `a || b`.
func (f *finding) either(c *syntax.BinaryCmd, sc *scope) {
	outer := sc.failed
	left, ok := c.X.Cmd.(*syntax.BinaryCmd)
	if ok && c.Op == syntax.AndStmt && left.Op == syntax.AndStmt && len(c.X.Redirs) == 0 && !c.X.Negated {
		f.either(left, sc)
	} else {
		f.stmt(c.X, sc)
	}
	if before := sc.stand; c.Op == syntax.OrStmt {
		sc.settle()
		defer func() {
			if leaves(c.Y) { // so that a has not failed
				sc.stand = stand{ground: before.ground, others: before.others, failed: outer}
			}
		}()
	} else if c.X.Negated {
		sc.settle()
	}
	f.stmt(c.Y, sc)
}

// leaves says whether a shell goes no further behind a statement.
func leaves(stmt *syntax.Stmt) bool {
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return len(c.Args) > 0 && isOneOf(c.Args[0].Lit(), "exit return")
	case *syntax.Block:
		return len(c.Stmts) > 0 && leaves(c.Stmts[len(c.Stmts)-1])
	}
	return false
}

func (f *finding) loop(c *syntax.ForClause, sc *scope) {
	if items, ok := c.Loop.(*syntax.WordIter); ok {
		words := spell(sc.in.text, items.Items)
		f.loose = append(f.loose, words...)
		before := len(f.commands)
		for _, w := range items.Items {
			f.word(w, sc)
		}
		f.loops = f.loops || len(f.commands) > before
	} else {
		f.loops = true // arithmetic may run commands
		f.node(c.Loop, sc)
	}
	f.stmts(c.Do, sc)
}

// word reads what a word runs before the command does.
func (f *finding) word(w *syntax.Word, sc *scope) {
	for _, p := range w.Parts {
		f.wordPart(p, sc)
	}
}

func (f *finding) wordPart(p syntax.WordPart, sc *scope) {
	switch p := p.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
	case *syntax.DblQuoted:
		for _, p := range p.Parts {
			f.wordPart(p, sc)
		}
	case *syntax.CmdSubst:
		f.apart(p.Stmts, sc, substituted)
	case *syntax.ProcSubst:
		f.apart(p.Stmts, sc, func(own *scope) {
			substituted(own)
			own.fed = p.Op == syntax.CmdOut
		})
	default:
		f.node(p, sc)
	}
}

// node reads what substitutions below any node run.
func (f *finding) node(n syntax.Node, sc *scope) {
	if call, ok := n.(*syntax.CallExpr); ok {
		for _, a := range call.Assigns {
			f.assign(a, sc)
		}
		for _, w := range call.Args {
			f.word(w, sc)
		}
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		f.data.in(n, sc.in.text)
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			f.wordPart(n.(syntax.WordPart), sc)
			return false
		case *syntax.ParamExp:
			if n.Exp != nil && n.Exp.Word != nil { // ${x:-word}
				f.loose = spellOne(f.loose, sc.in.text, n.Exp.Word)
			}
		case *syntax.ArrayElem:
			if n.Value != nil {
				f.loose = spellOne(f.loose, sc.in.text, n.Value)
			}
		}
		return true
	})
}

// assign reads what a value runs. The usual assignments cost no walk.
func (f *finding) assign(a *syntax.Assign, sc *scope) {
	f.data.in(a, sc.in.text)
	if a.Array != nil || a.Index != nil {
		f.node(a, sc)
	} else if a.Value != nil {
		f.word(a.Value, sc)
	}
}

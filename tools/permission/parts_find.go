package permission

import (
	"errors"
	"path"
	"slices"
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

// A finding is all that a script would run, as far as the text tells, in the order of the text.
type finding struct {
	commands []simple
	loose    []spelt  // words that are no words of a command: values, what a loop goes over
	broken   []string // nested texts that do not parse
	texts    int      // nested texts read so far
	tooDeep  bool     // a shell in more than maxNested shells, or more than maxTexts texts
	bomb     string   // a function that starts itself over and over
	loops    bool     // what a loop or a choice goes over is computed by a command
	odd      bool     // functions, coprocesses and what else makes names mean something new
}

// A simple is one simple command, or a test or arithmetic that stands as one.
type simple struct {
	in      *script
	stmt    *syntax.Stmt
	node    syntax.Node // what stands as one: *syntax.CallExpr, *syntax.DeclClause, … ; nil: only redirections
	words   []spelt     // of a call and of a declaration; empty: there is no command
	assigns []*syntax.Assign
	heads   []head
	dir     string // where `cd DIR` before it leads, seen from where the line starts
	lost    bool   // a cd before it leads nobody knows where
	inner   bool   // in a substitution or a nested shell
	fed     bool   // its input comes from a pipe
}

// A scope is what surrounds a command. Commands of one shell share it: `cd` changes it for all that follow.
type scope struct {
	in    *script
	dir   string
	lost  bool
	inner bool
	fed   bool
	depth int
}

// found returns what the script would run. It is worked out once.
func (s *script) found() *finding {
	if s.finding == nil {
		s.finding = &finding{}
		s.finding.script(s, scope{in: s})
		if plain, ok := withoutJoins(s.text); ok {
			s.finding.text(plain, scope{inner: true})
		}
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

// despite reads a text with mistakes: bash runs the lines before the first, ends a here-document where the text does, and
// may see no mistake where our parser does. Trees with a mistake in them have holes, so only whole ones are looked at.
func (f *finding) despite(s *script, sc scope) {
	rest, err := s.text, s.err
	for range maxMistakes {
		mistake, ok := errors.AsType[syntax.ParseError](err)
		if !ok {
			e, ok := errors.AsType[syntax.LangError](err)
			if !ok {
				return
			}
			mistake.Pos = e.Pos
		}
		if _, word, ok := strings.Cut(mistake.Text, "unclosed here-document `"); ok {
			rest += "\n" + strings.TrimSuffix(word, "`") + "\n"
		} else {
			at := min(int(mistake.Pos.Offset()), len(rest))
			f.before(rest[:at], sc)
			_, rest, _ = strings.Cut(rest[at:], "\n")
		}
		part := newScript(rest)
		if part.file != nil {
			sc.in = part
			f.stmts(part.file.Stmts, &sc)
			return
		}
		err = part.err
	}
}

// before reads the lines before a mistake. The last of them may belong to what the mistake is in.
func (f *finding) before(text string, sc scope) {
	for range maxUnfinished {
		text = text[:strings.LastIndexByte(text, '\n')+1]
		if text == "" {
			return
		}
		if part := newScript(text); part.file != nil {
			sc.in = part
			f.stmts(part.file.Stmts, &sc)
			return
		}
		text = text[:len(text)-1]
	}
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

func (f *finding) stmts(stmts []*syntax.Stmt, sc *scope) {
	for _, stmt := range stmts {
		f.stmt(stmt, sc)
	}
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
			f.add(simple{in: sc.in, stmt: stmt, dir: sc.dir, lost: sc.lost, inner: sc.inner, fed: sc.fed})
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
			for _, p := range item.Patterns {
				f.word(p, sc)
			}
			f.stmts(item.Stmts, sc)
		}
	case *syntax.FuncDecl:
		f.odd = true
		if c.Name != nil && forks(c) { // the parser takes `() x` for a function without a name
			f.bomb = c.Name.Value
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
		f.stmt(c.X, sc)
		f.stmt(c.Y, sc)
		return
	}
	before, after := *sc, *sc
	after.fed = true
	f.stmt(c.X, &before)
	f.stmt(c.Y, &after)
	f.piped(c, sc)
}

// piped reads what `echo TEXT |` and here-documents give to a shell.
func (f *finding) piped(c *syntax.BinaryCmd, sc *scope) {
	to, ok := c.Y.Cmd.(*syntax.CallExpr)
	if !ok || len(to.Args) == 0 {
		return
	}
	words := spell(sc.in.text, to.Args)
	shell := slices.ContainsFunc(headsOf(words), func(h head) bool { return isShell(words[h.at].name()) })
	from, ok := c.X.Cmd.(*syntax.CallExpr)
	if !shell || !ok || len(from.Args) == 0 {
		return
	}
	if words := spell(sc.in.text, from.Args); words[0].name() == "echo" || words[0].name() == "printf" {
		f.nested(joined(words[1:]), *sc)
	}
	for _, r := range c.X.Redirs {
		if text, ok := hereText(sc.in.text, r); ok {
			f.nested(text, *sc)
		}
	}
}

// hereText is the text of a here-document or here-string; not ok: r is none.
func hereText(text string, r *syntax.Redirect) (string, bool) {
	switch {
	case r.Hdoc != nil:
		return literalText(text, r.Hdoc), true
	case r.Op == syntax.WordHdoc:
		return literalText(text, r.Word), true
	}
	return "", false
}

func (f *finding) loop(c *syntax.ForClause, sc *scope) {
	if items, ok := c.Loop.(*syntax.WordIter); ok {
		words := spell(sc.in.text, items.Items)
		f.loose = append(f.loose, words...)
		for i := range words {
			f.loops = f.loops || words[i].shape&runs != 0
		}
		for _, w := range items.Items {
			f.word(w, sc)
		}
	} else {
		f.loops = true // arithmetic may run commands
		f.node(c.Loop, sc)
	}
	f.stmts(c.Do, sc)
}

// simple reads one simple command, and what its words run.
func (f *finding) simple(stmt *syntax.Stmt, sc *scope) {
	c := simple{in: sc.in, stmt: stmt, dir: sc.dir, lost: sc.lost, inner: sc.inner, fed: sc.fed}
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
	}
	f.add(c)
	if c.node != nil {
		f.node(c.node, sc)
	}
	for _, a := range c.assigns {
		if a.Value != nil {
			f.loose = spellOne(f.loose, sc.in.text, a.Value)
		}
	}
	f.fedTexts(&c, sc)
	for _, h := range c.heads {
		words := c.words[h.at:h.end]
		for _, text := range textsOf(words) {
			f.nested(text, *sc)
		}
	}
	if len(c.words) > 0 {
		sc.enter(c.words)
	}
}

func (f *finding) add(c simple) { f.commands = append(f.commands, c) }

// declared gives `export X=1` the words that rules match.
func declared(text string, d *syntax.DeclClause) []spelt {
	words := []spelt{{text: d.Variant.Value, bare: d.Variant.Value, from: int(d.Pos().Offset()), to: int(d.Variant.End().Offset())}}
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

// fedTexts reads here-documents and here-strings that feed a shell.
func (f *finding) fedTexts(c *simple, sc *scope) {
	shell := false
	for _, h := range c.heads {
		name := c.words[h.at].name()
		shell = shell || isShell(name) || name == "ssh"
	}
	if !shell {
		return
	}
	for _, r := range c.stmt.Redirs {
		if text, ok := hereText(sc.in.text, r); ok {
			f.nested(text, *sc)
		}
	}
}

// literalText is the text of a here-document or here-string.
func literalText(text string, w *syntax.Word) string {
	sp := speller{source: text}
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			sp.write(lit.Value)
			continue
		}
		sp.parts([]syntax.WordPart{p}, false)
	}
	return string(sp.text)
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
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			f.wordPart(n.(syntax.WordPart), sc)
			return false
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
	if a.Array != nil || a.Index != nil {
		f.node(a, sc)
	} else if a.Value != nil {
		f.word(a.Value, sc)
	}
}

// enter follows a `cd DIR` with a literal directory.
func (sc *scope) enter(words []spelt) {
	i := 1
	switch words[0].bare {
	case "cd", "pushd":
	case "popd":
		sc.lost = true
		return
	default:
		return
	}
	for i < len(words) && (words[i].bare == "-P" || words[i].bare == "-L" || words[i].bare == "--") {
		i++
	}
	if i+1 != len(words) || words[i].shape&^homely != 0 || words[i].text == "" || words[i].text == "-" {
		sc.dir, sc.lost = "", i != len(words) // `cd` alone goes home
		if i == len(words) {
			sc.dir = "~"
		}
		return
	}
	sc.dir, sc.lost = under(sc.dir, words[i].text), sc.lost && !rooted(words[i].text)
}

// rooted says whether a path means the same wherever one stands.
func rooted(p string) bool { return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") }

// under returns p as seen from where the line starts, if one stands in dir.
func under(dir, p string) string {
	if dir == "" || rooted(p) {
		return p
	}
	if p == "" || p == "." {
		return dir
	}
	if dir[0] == '~' { // where that is, nobody knows here
		user, rest, _ := strings.Cut(dir, "/")
		return user + "/" + path.Join(rest, p)
	}
	return path.Join(dir, p)
}

package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Nowhere is put before a path that names nothing when a command is bound, so that it still names nothing when the
// command runs: nothing can be made there. A caller that shows the output strips it.
const Nowhere = "/proc/-/"

// A Word is a word of a command by which bash, or the program, looks at the disk.
type Word struct {
	Text string // as the program is given it
	Glob string // Text as a pattern in which `\` quotes; "": there is no glob in it
	Look Look
}

// A Look says what is done with a word.
type Look uint8

// What may be done with a word.
const (
	Contents Look = 1 << iota // what is in the file is shown; else its name, or what kind of file it is
	Itself                    // if it is a link, the link is looked at
	Enters                    // the shell or the program goes there
	Down                      // the program goes down from there, through links too
	Near                      // Down: to the entries and no further
	Maybe                     // it need not be a path; what is not there stays as it is written
	Unopened                  // only bash looks, for what a glob matches
	// alone: go reads the module there, and More are the directories of its files; with Down: only sources count
	Module
)

// Found is what a word leads to.
type Found struct {
	Words []string // what stands for it, without quotes; nil: it stays as written, which Bind refuses of a glob
	Dir   string   // absolute, if it is one directory
	More  []string // Down: where the links below it lead, in the form of Words
}

// An UnboundError says why a command cannot be bound, in half a sentence.
type UnboundError struct{ Why string }

func (e *UnboundError) Error() string { return e.Why }

// A Bound is a command as it is to run.
type Bound struct {
	Text string
	// where its programs go down and read what they find, absolute: a text alone does not tell whether a `cd` fails
	Spreads []Spread
}

// Bind returns a command that is ReadOnly or Analysis.IfBound, with every glob replaced by what it matches and its
// paths by what they lead to. So neither bash nor a program follows a link or finds another file than look did, and no
// name of a file becomes an option, if look returns none that begins like one. Nothing else is changed.
//
// cwd is where the command starts, absolute and without links. look is told from which directory a word is looked at;
// it runs at least once for each word and place in which the shell may stand, in this goroutine. An error is look's, or
// an *UnboundError: the command does not parse or is not proved, a place is not certain, or nothing stands for a glob.
// After an error nothing is proved of a command that is IfBound.
func Bind(command, cwd string, look func(dir string, w Word) (Found, error)) (Bound, error) {
	s := newScript(command)
	if s.file == nil {
		return Bound{}, &UnboundError{"it does not parse"}
	}
	b := binder{p: s.newProver(func(string) bool { return true }), look: look} // look says what is inside
	at := []string{cwd}
	for _, stmt := range s.file.Stmts {
		yes, no, err := b.list(stmt, at)
		if err != nil {
			return Bound{}, err
		}
		if at = union(yes, no); len(at) > maxGitPlaces {
			return Bound{}, &UnboundError{"the directory in which it runs is not certain"}
		}
	}
	if err := b.globLeft(s.file); err != nil {
		return Bound{}, err
	}
	return Bound{b.edited(command), b.spreads}, nil
}

// A binder goes through a command as bash would. A place is a directory in which the shell may stand.
type binder struct {
	p     *prover
	look  func(string, Word) (Found, error)
	edits []edit

	spreads []Spread
}

// globLeft refuses a glob that nothing replaces. Bash would match it when the command runs, and what it finds then may
// be an option, which the proof does not know. Every glob must have an edit, whichever way the words were gone through.
func (b *binder) globLeft(file *syntax.File) error {
	replaced := map[int]bool{}
	for _, e := range b.edits {
		if e.to > e.from {
			replaced[e.from] = true
		}
	}
	var left error
	look := func(in *syntax.Word) {
		w, why := b.p.word(in)
		if left == nil && (why != "" || w.glob() && !replaced[int(in.Pos().Offset())]) {
			left = &UnboundError{"nothing certain stands for glob " + snippet(w.text)}
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, in := range n.Args[1:] { // the name is one plain word, perhaps `[`
				look(in)
			}
		case *syntax.Redirect:
			if n.Op == syntax.RdrIn { // behind no other that is proved is a glob matched
				look(n.Word)
			}
		}
		return true
	})
	return left
}

// An edit replaces a part of the text.
type edit struct {
	from, to int
	text     string
}

func (b *binder) edited(text string) string {
	slices.SortStableFunc(b.edits, func(x, y edit) int { return x.from - y.from })
	var out strings.Builder
	done := 0
	for _, e := range b.edits {
		out.WriteString(text[done:e.from])
		out.WriteString(e.text)
		done = e.to
	}
	out.WriteString(text[done:])
	return out.String()
}

// list binds a list, pipe or command that runs in one of the places at. It returns where the shell may stand after a
// success, and after a failure.
func (b *binder) list(stmt *syntax.Stmt, at []string) (yes, no []string, err error) {
	pair, ok := stmt.Cmd.(*syntax.BinaryCmd)
	if !ok {
		yes, no, err = b.bindCommand(stmt, at)
	} else {
		yes, no, err = b.pair(pair, at)
	}
	if stmt.Negated {
		yes, no = no, yes
	}
	return yes, no, err
}

func (b *binder) pair(pair *syntax.BinaryCmd, at []string) (yes, no []string, err error) {
	left, right, err := b.list(pair.X, at)
	if err != nil {
		return nil, nil, err
	}
	switch pair.Op {
	case syntax.AndStmt:
		yes, no, err = b.list(pair.Y, left)
		return yes, union(right, no), err
	case syntax.OrStmt:
		yes, no, err = b.list(pair.Y, right)
		return union(left, yes), no, err
	}
	_, _, err = b.list(pair.Y, at) // each side of a pipe is a shell of its own
	return at, at, err
}

// bindCommand binds one command.
func (b *binder) bindCommand(stmt *syntax.Stmt, at []string) (yes, no []string, err error) {
	if why := b.p.simple(stmt); why != "" {
		return nil, nil, &UnboundError{why}
	}
	paths := slices.Clone(b.p.paths)
	for _, r := range stmt.Redirs {
		i := slices.IndexFunc(paths, func(w word) bool { return w.in == r.Word })
		if i < 0 {
			continue
		}
		if err := b.input(paths[i], at); err != nil {
			return nil, nil, err
		}
		paths = slices.Delete(paths, i, i+1)
	}
	c := &opening{b: b, name: b.p.words[0], args: slices.Clone(b.p.words[1:]), at: at}
	if c.name.text != "cd" || len(paths) == 0 || paths[0].text == "" { // by no name, bash stays
		return at, at, c.bind(paths)
	}
	there, err := c.enter(&paths[0], at)
	if len(there) == 0 {
		return nil, at, err
	}
	b.holdFast(stmt)
	return there, nil, err
}

// input binds what `<` reads.
func (b *binder) input(w word, at []string) error {
	if w.text == "" {
		return nil
	}
	f, err := b.found(at, w.toWord(Contents))
	if err == nil && len(f.Words) > 1 {
		return &UnboundError{"redirection < " + snippet(w.text) + " matches several files"}
	}
	if err == nil {
		b.replace(w, f.Words)
	}
	return err
}

// holdFast ends the shell if a `cd` fails that must not, because what follows was bound to where it leads.
func (b *binder) holdFast(stmt *syntax.Stmt) {
	from, to := stmt.Cmd.Pos().Offset(), stmt.Cmd.End().Offset()
	for _, r := range stmt.Redirs {
		from, to = min(from, r.Pos().Offset()), max(to, r.Word.End().Offset())
	}
	b.edits = append(b.edits, edit{int(from), int(from), "{ "}, edit{int(to), int(to), " || exit; }"})
}

// found is what a word leads to, whichever of the places the shell stands in.
func (b *binder) found(at []string, w Word) (f Found, err error) {
	for i, dir := range at {
		next, err := b.look(dir, w)
		if err != nil {
			return f, err
		}
		if i > 0 && (!slices.Equal(f.Words, next.Words) || !slices.Equal(f.More, next.More)) {
			return f, &UnboundError{"the directory from which it reads " + snippet(w.Text) + " is not certain"}
		}
		f = next
	}
	return f, nil
}

// replace puts others in place of a word; none: it stays.
func (b *binder) replace(w word, with []string) {
	if with == nil {
		return
	}
	before := ""
	if w.skip > 0 { // a value that is glued to its option
		whole, _ := b.p.plain(w.in)
		before = whole.text[:w.skip]
	}
	var quoted strings.Builder
	for i, text := range with {
		if i > 0 {
			quoted.WriteByte(' ')
		}
		quoted.WriteString(quoteWord(before + text))
	}
	b.edits = append(b.edits, edit{int(w.in.Pos().Offset()), int(w.in.End().Offset()), quoted.String()})
}

// toWord is what look is asked about.
func (w word) toWord(l Look) Word {
	q := Word{Text: w.text, Look: l}
	if !w.glob() {
		return q
	}
	var glob strings.Builder
	for i := 0; i < len(w.text); i++ {
		if w.shape[i] != w.text[i] && strings.IndexByte(`*?[]!^-\`, w.text[i]) >= 0 {
			glob.WriteByte('\\')
		}
		glob.WriteByte(w.text[i])
	}
	q.Glob = glob.String()
	return q
}

// quoteWord makes one word of text for bash.
func quoteWord(text string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (isAlpha(byte(r)) || isDigit(byte(r)) || strings.ContainsRune("_./-", r))
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

package bash

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
	"codehand/tools/guarded"
)

// prove says whether the line has nothing but forms that only read, by the rows of the table: rules R0 to R6. Below
// sandbox level 3 run_readonly runs these and no others. Else the line is Unknown (R0, R1) or Writes, and why begins
// with the rule and names the word.
func (s *script) prove(inside func(string) bool) (Class, string) {
	if class, why := s.readable(); why != "" {
		return class, why
	}
	if len(s.file.Stmts) == 0 {
		return Unknown, "R1: there is no command"
	}
	if n := len(s.found().commands); n > maxParts {
		return Unknown, "R1: " + strconv.Itoa(n) + " simple commands, at most " + strconv.Itoa(maxParts)
	}
	for _, stmt := range s.file.Stmts {
		if why := s.list(stmt, inside); why != "" {
			return Writes, why
		}
	}
	return ReadOnly, ""
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

// list is rule R2 for lists, pipes and negation. It returns what is wrong; "": nothing.
func (s *script) list(stmt *syntax.Stmt, inside func(string) bool) string {
	pair, ok := stmt.Cmd.(*syntax.BinaryCmd)
	if !ok {
		for i := range s.found().commands {
			if c := &s.finding.commands[i]; c.stmt == stmt {
				return c.onlyReads(inside)
			}
		}
		return "R2: " + nodeName(stmt.Cmd) + ": " + snippet(cut(s.text, stmt.Cmd))
	}
	switch {
	case stmt.Background:
		return "R2: & starts it in the background"
	case pair.Op != syntax.AndStmt && pair.Op != syntax.OrStmt && pair.Op != syntax.Pipe:
		return "R2: operator " + pair.Op.String()
	case len(stmt.Redirs) > 0 || stmt.Coprocess || stmt.Disown:
		return "R2: " + snippet(cut(s.text, stmt))
	}
	return cmp.Or(s.list(pair.X, inside), s.list(pair.Y, inside))
}

// class is the class of a simple command alone; what stands around it counts only as far as it says where it starts.
func (c *simple) class(inside func(string) bool) (Class, string) {
	if class, why := c.in.readable(); why != "" {
		return class, why
	}
	if why := c.onlyReads(inside); why != "" {
		return Writes, why
	}
	return ReadOnly, ""
}

// onlyReads is what R2 to R6 say about one simple command; "": it is a form that only reads. It is worked out once.
func (c *simple) onlyReads(inside func(string) bool) string {
	if !c.judged {
		f := closedCall{c: c, inside: inside}
		c.judged, c.fault = true, f.simple()
	}
	return c.fault
}

// A closedCall is one simple command that is compared with the closed list.
type closedCall struct {
	c      *simple
	inside func(string) bool
	base   string // where git starts, seen from where the command does
}

func (f *closedCall) simple() string {
	c, stmt := f.c, f.c.stmt
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	switch {
	case stmt.Background || stmt.Coprocess || stmt.Disown:
		return "R2: & starts it in the background"
	case stmt.Cmd == nil:
		return "R3: redirection without a command"
	case !ok:
		return "R2: " + nodeName(stmt.Cmd) + ": " + snippet(cut(c.in.text, stmt.Cmd))
	case len(call.Assigns) > 0:
		return "R2: assignment: " + snippet(cut(c.in.text, call.Assigns[0]))
	}
	for i := range c.words {
		if why := c.unplain(&c.words[i]); why != "" {
			return "R2: " + why
		}
	}
	for _, r := range stmt.Redirs {
		if why := f.redirection(r); why != "" {
			return "R3: " + why
		}
	}
	name, args := c.words[0].text, c.words[1:]
	if call.Args[0].Lit() != name { // also `l''s`, in which nothing is left of the quotes
		return "R4: the name of the command is not one plain word: " + snippet(name)
	}
	row, why := c.heads[0].row, ""
	switch {
	case row == nil || name != c.heads[0].name: // a path may lead to another program of that name
	case len(args) == 1 && isAny(args[0].text, row.Version):
		return ""
	case name == "git":
		if why = f.git(c.reading(0).gitCall(), args); why != "" {
			return "R6: git" + why
		}
		return ""
	case row.Reads:
		if why = f.match(c.reading(0)); why != "" {
			return "R5: " + name + ": " + why
		}
		return ""
	}
	return "R4: " + snippet(name) + " is not on the list"
}

// unplain is rule R2 for one word: what only the shell knows of it, or what shells read differently; "": nothing.
func (c *simple) unplain(w *spelt) string {
	source := between(c.in.text, w.from, w.to)
	var kind string
	switch s := w.shape &^ globbed; {
	case strings.HasPrefix(source, "=") && strings.Trim(source, "=") != "":
		kind = "leading ="
	case s == 0:
		return ""
	case s&runs != 0:
		kind = "substitution"
	case s&computed != 0:
		kind = "expansion"
	case s&escaped != 0:
		kind = "$'…'"
	case s&(braced|lavish) != 0:
		kind = "braces"
	case s&homely != 0:
		kind = "tilde"
	case source == `\(` || source == `\)` || source == `\!` || source == "[":
		return ""
	default:
		kind = "backslash, bracket, braces or tilde"
	}
	return kind + ": " + snippet(source)
}

// glob says whether the word may become other words, or several.
func (w *spelt) glob() bool { return w.shape&globbed != 0 }

// leads says whether it may become any word, such as an option.
func (w *spelt) leads() bool { return w.glob() && strings.IndexAny(w.text, globs) == 0 }

// globs are what makes an unquoted word match names of files.
const globs = "*?["

// redirection is rule R3. It returns what is wrong; "": nothing.
func (f *closedCall) redirection(r *syntax.Redirect) string {
	n, source := "", f.c.in.text
	if r.N != nil {
		n = r.N.Value
	}
	words := spellOne(nil, source, r.Word)
	w, fault := words[0], ""
	for i := range words {
		fault = cmp.Or(fault, f.c.unplain(&words[i]))
	}
	null := fault == "" && w.text == NullDevice && !w.glob()
	in := n == "" || n == "0"
	ok := false
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut:
		ok = null && (n == "" || n == "1" || n == "2")
	case syntax.RdrAll:
		ok = null && n == ""
	case syntax.DplOut: // also of `>&file`
		to := r.Word.Lit()
		ok = (n == "" || n == "1") && to == "2" || n == "2" && to == "1"
	case syntax.RdrIn:
		switch {
		case !in || w.leads() || !null && strings.HasPrefix(w.text, "/dev/"): // bash connects for /dev/tcp
		case fault != "" || null:
			return fault
		default:
			if fault = f.path(&w); fault == "" {
				return ""
			}
			fault = ": " + fault
		}
		return "redirection " + snippet(cut(source, r)) + fault
	case syntax.Hdoc:
		ok = in && quotedDelimiter(r.Word)
	case syntax.WordHdoc:
		if in {
			return fault
		}
	}
	if !ok {
		return "redirection " + snippet(cut(source, r))
	}
	return ""
}

// quotedDelimiter says whether nothing in a here-document is expanded. Only delimiters of letters and digits in one
// pair of quotes are taken, because all shells agree on where those end.
func quotedDelimiter(in *syntax.Word) bool {
	if len(in.Parts) != 1 {
		return false
	}
	name := ""
	switch part := in.Parts[0].(type) {
	case *syntax.SglQuoted:
		if !part.Dollar {
			name = part.Value
		}
	case *syntax.DblQuoted:
		if len(part.Parts) == 0 {
			return false
		}
		if lit, ok := part.Parts[0].(*syntax.Lit); ok && !part.Dollar && len(part.Parts) == 1 {
			name = lit.Value
		}
	}
	return name != "" && strings.Trim(name, alphanumerics+"_-") == ""
}

const alphanumerics = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// path is R5 (g): what is wrong with a word as a path that a command reads; "": nothing. Paths are relative without
// `..`, or absolute and inside.
func (f *closedCall) path(w *spelt) string {
	if why := components(w); why != "" {
		return why
	}
	out := f.leadsOut(&f.c.ground, w)
	for i := range f.c.others { // a cd before may have failed
		out = out || f.leadsOut(&f.c.others[i], w)
	}
	if out {
		return "path " + snippet(w.text) + " is outside"
	}
	return ""
}

func (f *closedCall) leadsOut(from *ground, w *spelt) bool {
	full := under(f.base, w.text)
	if from.lost && !rooted(full) {
		return true
	}
	full = under(from.dir, full)
	return rooted(full) && !f.inside(path.Clean(full))
}

// components looks at what stands between slashes. A name also counts behind a colon, as in `HEAD:.env`.
func components(w *spelt) string {
	for name := range strings.SplitSeq(w.text, "/") {
		globbed := w.glob() && strings.ContainsAny(name, globs)
		switch {
		case name == "..":
			return "path " + snippet(w.text) + " goes up"
		case isGitDir(name):
			return "path " + snippet(w.text) + " goes into .git"
		case name != "" && isSecretWord(name):
			return "path " + snippet(w.text) + " has a secret name"
		case globbed && strings.HasPrefix(name, "."):
			return "glob " + snippet(w.text) + " matches hidden names"
		case globbed && globsSecret(name, false):
			return "glob " + snippet(w.text) + " matches a secret name"
		}
	}
	return ""
}

func isSecretWord(name string) bool {
	for {
		if name != "" && guarded.Secret(name) {
			return true
		}
		i := strings.IndexByte(name, ':')
		if i < 0 {
			return false
		}
		name = name[i+1:]
	}
}

// isGitDir knows .git in every spelling that some file system takes for it.
func isGitDir(name string) bool {
	if len(name) < 4 || name[0] != '.' && name[0]|0x20 != 'g' {
		return false
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// git is rule R6 for the words behind `git`. What is wrong begins with the blank or colon that goes behind the name.
func (f *closedCall) git(call *gitCall, args []spelt) string {
	for own := args[:len(args)-len(call.args)]; len(own) > 0 && strings.HasPrefix(own[0].text, "-"); own = own[1:] {
		switch t := own[0].text; {
		case isOneOf(t, "--no-pager -P --no-optional-locks"):
			continue
		case t == "-C" && len(own) > 1 && !own[1].glob() && own[1].text != "-" && f.path(&own[1]) == "":
			own = own[1:]
			f.base = under(f.base, own[0].text)
			continue
		}
		return ": option " + snippet(own[0].text) + " before the sub-command is not on the list"
	}
	if call.sub == "" {
		return ": there is no sub-command"
	}
	for i := range args {
		if startsGPG(args[i].text) {
			return ": word " + snippet(args[i].text) + " starts gpg"
		}
	}
	name, r := call.sub, &call.reading
	if len(call.args) > 0 {
		if longer := programs.OfSub("git", name+" "+call.args[0].text); longer != nil {
			name += " " + call.args[0].text
			long := readAs(longer, call.args[1:])
			r = &long
		}
	}
	if r.row == nil || !r.row.Reads || name == "*" {
		return " " + snippet(name) + " is not on the list"
	}
	if why := f.match(r); why != "" {
		return " " + name + ": " + why
	}
	if strings.HasPrefix(name, "reflog") {
		for _, at := range r.Operands {
			if t := r.args[at].text; isOneOf(t, "expire delete drop exists write") {
				return " reflog " + t + " is not on the list"
			}
		}
	}
	return ""
}

// startsGPG says whether a format would have signatures checked, for which git starts the configured gpg program.
// Between the % and the name, git takes `+`, `-` and a blank in formats of log, and `*` in those of for-each-ref.
func startsGPG(s string) bool {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return false
		}
		s = s[i+1:]
		if strings.HasPrefix(strings.TrimLeft(s, "+- "), "G") {
			return true
		}
		if field, ok := strings.CutPrefix(s, "("); ok && strings.HasPrefix(strings.TrimLeft(field, "* "), "signature") {
			return true
		}
	}
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

// nodeName is what a command is that is no simple one.
func nodeName(node syntax.Command) string {
	switch node.(type) {
	case *syntax.Subshell:
		return "subshell"
	case *syntax.WhileClause, *syntax.ForClause:
		return "loop"
	case *syntax.FuncDecl:
		return "function"
	case *syntax.DeclClause:
		return "declaration"
	}
	return "not a simple command"
}

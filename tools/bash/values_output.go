//go:build ignore

package bash

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A feed is what a command reads from its standard input.
type feed struct {
	in   *script
	from *syntax.Stmt // what writes into the pipe
	doc  *syntax.Word // or a here-document or here-string; neither: unknown
	raw  bool         // it is a document: quotes are text
	fed  *feed        // what from reads itself
}

// maxLines is how many lines of an output are looked at.
const maxLines = maxValues

// feedOf is what the redirections of a statement make of its input.
func feedOf(in *script, stmt *syntax.Stmt, outer *feed) *feed {
	for _, r := range stmt.Redirs {
		if r.N != nil && r.N.Value != "0" {
			continue
		}
		switch {
		case r.Hdoc != nil:
			outer = &feed{in: in, doc: r.Hdoc, raw: true}
		case r.Op == syntax.WordHdoc:
			outer = &feed{in: in, doc: r.Word}
		case r.Op == syntax.RdrIn, r.Op == syntax.DplIn, r.Op == syntax.RdrInOut:
			outer = &feed{in: in}
		}
	}
	return outer
}

// lines are those of an input; not known: they come from elsewhere. A line with a glob stands for names of files.
func (x *expander) lines(fd *feed) (lines []spelt, known bool) {
	switch {
	case fd == nil || len(x.within) > maxWithin:
		return nil, false
	case fd.doc != nil:
		sp := speller{source: fd.in.text, values: x, flat: true, raw: fd.raw}
		sp.parts(fd.doc.Parts, false)
		v := spelt{text: string(sp.text), shape: sp.shape &^ globbed}
		if v.bare = v.text; sp.shape&computed != 0 {
			return nil, false
		}
		v.shape |= sp.held & globbed
		return linesOf(v)
	case fd.from != nil:
		x.within = append(x.within, enclosing{})
		defer func() { x.within = x.within[:len(x.within)-1] }()
		return x.outputOf(fd.from, fd.in.text, fd.fed)
	}
	return nil, false
}

// linesOf are the lines of a text.
func linesOf(v spelt) (lines []spelt, known bool) {
	if v.shape&computed != 0 {
		return nil, false
	}
	for line := range strings.SplitSeq(strings.TrimRight(v.text, "\n"), "\n") {
		if len(lines) == maxLines {
			return nil, false
		}
		lines = append(lines, spelt{text: line, bare: line, shape: v.shape})
	}
	return lines, true
}

// fieldsOf are the words in lines.
func fieldsOf(lines []spelt) (fields []spelt) {
	for _, line := range lines {
		for word := range strings.FieldsSeq(line.text) {
			w := line
			w.text, w.bare = word, word
			if !strings.ContainsAny(word, globs) {
				w.shape &^= globbed
			}
			fields = append(fields, w)
		}
	}
	return fields
}

// output is what statements print.
func (x *expander) output(stmts []*syntax.Stmt, text string, fd *feed) (lines []spelt, known bool) {
	for _, stmt := range stmts {
		more, ok := x.outputOf(stmt, text, fd)
		if lines = append(lines, more...); !ok || len(lines) > maxLines {
			return nil, false
		}
	}
	return lines, true
}

// outputOf is what one statement prints, where its words tell: names that are echoed, listed or found.
func (x *expander) outputOf(stmt *syntax.Stmt, text string, fd *feed) (lines []spelt, known bool) {
	if x.values.expanded++; x.values.expanded > maxExpanded {
		x.over = true
		return nil, false
	}
	fd = feedOf(&script{text: text}, stmt, fd)
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		var words []spelt
		for _, w := range c.Args {
			words = x.words(words, text, w)
		}
		if len(words) == 0 {
			return nil, true
		}
		return x.printedBy(words, fd)
	case *syntax.Block:
		return x.output(c.Stmts, text, fd)
	case *syntax.Subshell:
		return x.output(c.Stmts, text, fd)
	case *syntax.ForClause:
		return x.output(c.Do, text, fd) // of each item: its value is chosen there
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe {
			return x.outputOf(c.Y, text, &feed{in: &script{text: text}, from: c.X, fed: fd})
		}
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			return x.output([]*syntax.Stmt{c.X, c.Y}, text, fd)
		}
	case *syntax.DeclClause:
		return nil, true
	}
	return nil, false
}

// printedBy is what a simple command prints.
func (x *expander) printedBy(words []spelt, fd *feed) (lines []spelt, known bool) {
	name, args := words[0].name(), words[1:]
	switch name {
	case "true", ":", "cd", "test", "[", "shopt", "set":
		return nil, true
	case "echo":
		return echoed(args)
	case "printf":
		made, ok := printed(args)
		return made, ok
	case "pwd":
		return []spelt{hereSpelt()}, true
	case "ls":
		return namesListed(args)
	case "find":
		return foundBy(args)
	case "realpath", "readlink", "basename", "dirname":
		return pathPrinted(name, args)
	case "cat":
		if len(args) == 0 || len(args) == 1 && args[0].text == "-" {
			return x.lines(fd)
		}
	case "sort", "uniq", "head", "tail", "tac", "shuf", "grep", "egrep", "fgrep":
		if passesLines(name, args) {
			return x.lines(fd)
		}
	}
	return nil, false
}

// passesLines says whether a filter prints lines of its input as they are: it reads no file, and adds nothing.
func passesLines(name string, args []spelt) bool {
	operands := 0
	if strings.HasSuffix(name, "grep") {
		operands = 1
		if mayHave(args, "cnobHlLZTABCrRef", "--count", "--line-number", "--only-matching", "--byte-offset",
			"--recursive", "--files-with-matches", "--regexp", "--file") {
			return false
		}
	} else if mayHave(args, "covz", "--count", "--bytes", "--output", "--verbose") {
		return false
	}
	r := read(name, args)
	return r.row != nil && r.Sure && len(r.Operands) <= operands
}

// echoed is what echo prints.
func echoed(args []spelt) (lines []spelt, known bool) {
	escapes := false
	for len(args) > 0 && len(args[0].text) > 1 && strings.Trim(args[0].text[1:], "neE") == "" &&
		args[0].text[0] == '-' {
		escapes = escapes || strings.Contains(args[0].text, "e")
		args = args[1:]
	}
	var v spelt
	for i := range args {
		if i > 0 {
			v.text += " "
		}
		v.text, v.shape = v.text+args[i].text, v.shape|args[i].shape&^homely
		if args[i].shape&homely != 0 && i > 0 {
			return nil, false
		}
	}
	if len(args) > 0 {
		v.shape |= args[0].shape & homely
	}
	if escapes {
		v.text = unescape(v.text)
	}
	return linesOf(v)
}

// printed is what printf prints, for formats of texts alone.
func printed(args []spelt) (lines []spelt, known bool) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].shape&computed != 0 {
		return nil, false
	}
	format := args[0].text
	args = args[1:]
	var v spelt
	for first := true; first || len(args) > 0; first = false {
		taken := 0
		for i := 0; i < len(format); i++ {
			switch {
			case format[i] == '\\':
				n := escapeLength(format[i:])
				if text := unescape(format[i : i+n]); strings.Trim(text, "\x00") == "" {
					v.text += "\n" // \0, as xargs -0 wants it
				} else {
					v.text += text
				}
				i += n - 1
			case format[i] != '%':
				v.text += format[i : i+1]
			case i+1 < len(format) && format[i+1] == '%':
				v.text += "%"
				i++
			case i+1 < len(format) && strings.IndexByte("sbqd", format[i+1]) >= 0:
				if i++; taken < len(args) {
					text := args[taken].text
					if format[i] == 'b' {
						text = unescape(text)
					}
					v.text, v.shape = v.text+text, v.shape|args[taken].shape
				}
				taken++
			default:
				return nil, false
			}
		}
		if taken == 0 || len(v.text) > maxCommand {
			break
		}
		args = args[min(taken, len(args)):]
	}
	return linesOf(v)
}

// escapeLength is how long the escape at the begin of a format is.
func escapeLength(s string) int {
	n := 2
	for n < len(s) && n < 4 && '0' <= s[1] && s[1] <= '7' && '0' <= s[n] && s[n] <= '7' {
		n++
	}
	if len(s) > 1 && s[1] == 'x' {
		for n < len(s) && n < 4 && strings.IndexByte("0123456789abcdefABCDEF", s[n]) >= 0 {
			n++
		}
	}
	return min(n, len(s))
}

// namesListed is what ls prints: names, not where they are.
func namesListed(args []spelt) (lines []spelt, known bool) {
	if mayHave(args, "lRgonsipFQZITw", "--recursive", "--inode", "--size", "--classify",
		"--quote-name", "--format", "--indicator-style", "--quoting-style") {
		return nil, false
	}
	lines = plainDashes(args)
	if slices.ContainsFunc(lines, func(w spelt) bool { return w.shape&computed != 0 }) {
		return nil, false
	}
	if mayHave(args, "d", "--directory") && len(lines) > 0 {
		return lines, true
	}
	w := spelt{text: "*", bare: "*", shape: globbed} // of a directory, too
	if mayHave(args, "aAf", "--all", "--almost-all") {
		w.shape |= dotted
	}
	return append(lines, w), true
}

// foundBy is what find prints: its starting points and what is below.
func foundBy(args []spelt) (lines []spelt, known bool) {
	for i := range args {
		if isOneOf(args[i].bare, "-printf -fprintf -ls -fls -exec -execdir -ok -okdir -fprint -fprint0") ||
			args[i].shape&computed != 0 {
			return nil, false
		}
	}
	return foundWords(args), true
}

// findStarts are the operands of find before its expression.
func findStarts(args []spelt) []spelt {
	r := read("find", args)
	return r.operands()
}

// foundWords are globs for what find finds.
func foundWords(args []spelt) (found []spelt) {
	names := foundNames(args)
	for _, from := range orHere(findStarts(args)) {
		if from.text == "" {
			continue
		}
		from.shape |= dotted // it stands for what is found
		below := from
		below.shape |= globbed
		at := strings.TrimSuffix(from.text, "/") + "/**"
		if names == nil {
			found = append(found, from)
			below.text, below.bare = at, at
			found = append(found, below)
		}
		for _, name := range names {
			if ok, err := path.Match(name, path.Base(from.text)); ok || err != nil {
				found = append(found, from)
			}
			below.text = at + "/" + name
			below.bare = below.text
			found = append(found, below)
		}
	}
	return found
}

// pathPrinted is what programs print that make another path of one.
func pathPrinted(name string, args []spelt) (lines []spelt, known bool) {
	words := plainDashes(args)
	if len(words) == 0 || slices.ContainsFunc(words, func(w spelt) bool { return w.shape&(computed|globbed) != 0 }) {
		return nil, false
	}
	for _, w := range words {
		if w.shape&homely != 0 && strings.HasSuffix(name, "name") && !strings.Contains(w.text, "/") {
			return nil, false // the text does not tell where that is
		}
		switch name {
		case "basename":
			w.text, w.shape = path.Base(w.text), w.shape&^homely
		case "dirname":
			w.text = path.Dir(w.text)
		}
		w.bare = w.text
		lines = append(lines, w)
	}
	if name == "basename" && len(words) > 1 { // basename NAME SUFFIX
		w := lines[0]
		w.text = strings.TrimSuffix(w.text, words[1].text)
		w.bare = w.text
		lines = append(lines, w)
	}
	return lines, true
}

// feedWords gives the commands behind xargs and find the words that they take from an input, or for what is found.
func (c *simple) feedWords() {
	if len(c.words) == 0 {
		return
	}
	c.heads = headsOf(c.words)
	for _, h := range c.heads[:min(len(c.heads), maxHeads)] {
		if h.quiet {
			continue
		}
		words := c.words[h.at:h.end]
		switch words[0].name() {
		case "xargs", "gxargs", "parallel":
			c.words = append(slices.Clip(c.words[:h.at]), c.x.givenByXargs(words, c.feed)...)
		case "find", "gfind":
			c.words = append(slices.Clip(c.words[:h.at]), c.x.givenByFind(words)...)
		default:
			continue
		}
		break
	}
	c.heads = headsOf(c.words)
	c.heads = c.heads[:min(len(c.heads), maxHeads)]
}

// givenByXargs is the command of xargs with what it takes from its input.
func (x *expander) givenByXargs(words []spelt, fd *feed) []spelt {
	args := words[1:]
	r := read("xargs", args)
	lines, known := x.lines(fd)
	if r.given("-a", "--arg-file") != nil {
		known = false
	}
	whole := r.has("-0", "--null") != ""
	if w := r.given("-d", "--delimiter"); w != nil {
		whole = true
		known = known && isOneOf(w.text, "\\n \\0")
	}
	if !known || len(lines) > maxLines {
		lines = []spelt{unknownSpelt()}
	}
	place := ""
	if w := r.given("-I", "-i", "--replace"); w != nil && w.text != "" {
		place = w.text
	} else if r.has("-i", "--replace") != "" {
		place = "{}"
	}
	if place != "" {
		if len(lines) == 0 {
			return words
		}
		return filled(words, place, lines[x.choose(len(lines))])
	}
	if known && !whole {
		lines = quotedFields(lines)
	}
	if words[0].name() == "parallel" && len(lines) > 0 &&
		slices.ContainsFunc(words, func(w spelt) bool { return strings.Contains(w.text, "{}") }) {
		return filled(words, "{}", lines[x.choose(len(lines))])
	}
	if r.has("-n", "-L", "--max-args", "--max-lines") != "" && len(lines) > 1 {
		if i := x.choose(len(lines) + 1); i < len(lines) { // one at a time, or all
			lines = lines[i : i+1]
		}
	}
	return append(slices.Clone(words), lines...)
}

// quotedFields are the words in lines as xargs reads them, which has quotes of its own.
func quotedFields(lines []spelt) (fields []spelt) {
	for _, line := range lines {
		var word []byte
		quote, started := byte(0), false
		end := func() {
			if started {
				w := line
				w.text = string(word)
				if w.bare = w.text; !strings.ContainsAny(w.text, globs) {
					w.shape &^= globbed
				}
				fields = append(fields, w)
			}
			word, started = nil, false
		}
		for i := 0; i < len(line.text); i++ {
			switch c := line.text[i]; {
			case quote != 0 && c == quote:
				quote = 0
			case quote == 0 && (c == '"' || c == '\''):
				quote, started = c, true
			case quote == 0 && c == '\\' && i+1 < len(line.text):
				i++
				word, started = append(word, line.text[i]), true
			case quote == 0 && (c == ' ' || c == '\t'):
				end()
			default:
				word, started = append(word, c), true
			}
		}
		end()
	}
	return fields
}

// givenByFind is find with what it finds in place of {}.
func (x *expander) givenByFind(words []spelt) []spelt {
	if !slices.ContainsFunc(words, func(w spelt) bool { return strings.Contains(w.text, "{}") }) {
		return words
	}
	found := foundWords(words[1:])
	if len(found) == 0 {
		return words
	}
	given := filled(words, "{}", found[x.choose(len(found))])
	for i := range given[1:] {
		if given[i+1].bare == "+" && words[i].bare == "{}" {
			given[i+1] = literalSpelt(";")
		}
	}
	return given
}

// filled are words with another in place of a text.
func filled(words []spelt, place string, with spelt) []spelt {
	words = slices.Clone(words)
	for i := range words {
		w := &words[i]
		// not the word that says what the place is, nor the `{}` before the `+` that ends the command
		if i == 0 || place == "" || !strings.Contains(w.text, place) || words[i-1].bare == "-I" {
			continue
		}
		if strings.HasPrefix(w.text, place) {
			w.shape |= with.shape & homely
		}
		w.text = strings.ReplaceAll(w.text, place, with.text)
		w.bare = strings.ReplaceAll(w.bare, place, with.bare)
		w.shape |= with.shape &^ homely
	}
	return words
}

// foundNames are the names that find looks for, if its expression is a plain list of tests; nil: any.
func foundNames(args []spelt) (names []string) {
	for i := range args {
		switch args[i].bare {
		case "!", "-not", "-o", "-or", ",":
			return nil
		case "-name":
			if i+1 < len(args) && names == nil {
				names = []string{args[i+1].text}
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			return names
		}
	}
	return names
}

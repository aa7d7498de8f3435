package bash

import (
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// wordSplit stands in a word that is being read where the shell makes two words of it. A text that contains it is
// never proved, and at worst looks like more words than it is.
const wordSplit = '\x04'

// An expander reads the words of one command with what its variables hold: one way to read it after the other. Where
// there are several values it chooses one, and notes that there are others.
type expander struct {
	values *values
	spot   // of what is read: a command, or the binding whose value is needed
	trail  []choice
	at     int              // how many choices of the trail are made
	chosen map[string]holds // a variable has one value in one command
	within []enclosing      // bindings that are being read
	over   bool             // there was more than is looked at
}

// A choice is which of several ways was taken.
type choice struct{ taken, of int }

// holds is what a variable holds; not known: what is there comes from elsewhere.
type holds struct {
	list  []spelt
	known bool
}

type enclosing struct {
	name  string
	clock int
}

func (x *expander) choose(of int) int {
	if of > maxValues {
		x.over, of = true, maxValues
	}
	if of < 2 {
		return 0
	}
	if x.at == len(x.trail) {
		x.trail = append(x.trail, choice{of: of})
	}
	x.at++
	return x.trail[x.at-1].taken
}

// next goes on to another way to read the words; false: there is none.
func (x *expander) next() bool {
	x.at, x.chosen = 0, nil
	for n := len(x.trail); n > 0; n = len(x.trail) {
		if last := &x.trail[n-1]; last.taken+1 < last.of {
			last.taken++
			return true
		}
		x.trail = x.trail[:n-1]
	}
	return false
}

// each calls visit with each way to read a command. visit may read its redirections, too (simple.respell). whole: there
// are no others.
func (vs *values) each(c *simple, visit func(v *simple)) (whole bool) {
	x := &expander{values: vs, spot: c.spot}
	for range maxVariants {
		if vs.expanded++; vs.expanded > maxExpanded {
			return false
		}
		v := *c
		v.x = x
		if call, ok := c.node.(*syntax.CallExpr); ok {
			v.words, v.heads = nil, nil
			for _, w := range call.Args {
				v.words = v.respell(v.words, w)
			}
			v.feedWords()
		}
		visit(&v)
		if !x.next() {
			return !x.over
		}
	}
	return false
}

// respell reads a word as spellOne does, in a way to read the command with what variables hold.
func (c *simple) respell(read []spelt, w *syntax.Word) []spelt {
	if c.x == nil {
		return spellOne(read, c.in.text, w)
	}
	return c.x.words(read, c.in.text, w)
}

// words appends what a word of a command stands for: perhaps nothing, perhaps several.
func (x *expander) words(read []spelt, text string, w *syntax.Word) []spelt {
	one := spelt{from: int(w.Pos().Offset()), to: int(w.End().Offset())}
	sp := speller{source: text, braces: hasBraces(w), values: x}
	sp.parts(w.Parts, false)
	one.text, one.shape = string(sp.text), sp.shape
	if one.bare = one.text; sp.shape&computed != 0 {
		one.bare = string(sp.bare)
	}
	if one.text == "" && !sp.keeps {
		return read
	}
	texts, bares := splitWords(one.text), splitWords(one.bare)
	for i := range texts {
		piece := one
		piece.text, piece.bare = texts[i], ""
		if len(bares) > 0 {
			piece.bare = bares[min(i, len(bares)-1)]
		}
		if len(texts) > 1 && piece.shape&computed == 0 && !strings.ContainsAny(piece.text, globs) {
			piece.shape &^= globbed
		}
		if len(texts) > 1 && i > 0 {
			piece.shape &^= homely
		}
		read = sp.finish(read, piece)
	}
	return read
}

// splitWords are the words in a text with marks.
func splitWords(text string) []string {
	if strings.IndexByte(text, wordSplit) < 0 {
		return []string{text}
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == wordSplit })
}

// flat reads a word as the value of an assignment: it is not split, and its globs are text until it is used.
func (x *expander) flat(text string, w *syntax.Word) spelt {
	sp := speller{source: text, values: x, flat: true}
	sp.parts(w.Parts, false)
	v := spelt{text: string(sp.text), shape: sp.shape &^ globbed}
	if v.bare = v.text; sp.shape&computed != 0 {
		v.bare = string(sp.bare)
	}
	v.shape |= sp.held & globbed
	if len(v.text) > maxValue {
		return unknownSpelt()
	}
	return v
}

func unknownSpelt() spelt { return spelt{text: "$(…)", shape: computed} }

// put writes a value into the word.
func (sp *speller) put(v spelt, quoted bool) {
	if v.shape&homely != 0 && len(sp.text) == 0 {
		sp.shape |= homely
	} else if v.shape&homely != 0 {
		v = unknownSpelt() // what is behind other text is an absolute path that is not known here
	}
	quoted = quoted || sp.flat
	if !quoted {
		if strings.ContainsAny(v.text, globs) {
			sp.shape |= globbed
		}
		if v.shape&computed == 0 {
			v.text = strings.Map(splitMark, v.text)
			v.bare = v.text
		}
	}
	sp.shape |= v.shape &^ (homely | computed | braced)
	sp.held |= v.shape
	if v.shape&computed != 0 && sp.shape&computed == 0 {
		sp.shape |= computed
		sp.bare = append(sp.bare, sp.text...)
	}
	sp.text = append(sp.text, v.text...)
	if sp.shape&computed != 0 {
		sp.bare = append(sp.bare, v.bare...)
	}
}

func splitMark(r rune) rune {
	if r == ' ' || r == '\t' || r == '\n' {
		return wordSplit
	}
	return r
}

// putList writes several values, each a word of its own.
func (sp *speller) putList(list []spelt, quoted bool) {
	for i := range list {
		if i > 0 {
			blank := byte(wordSplit)
			if sp.flat {
				blank = ' '
			}
			sp.text = append(sp.text, blank)
			if sp.shape&computed != 0 {
				sp.bare = append(sp.bare, blank)
			}
		}
		sp.put(list[i], quoted)
	}
	sp.keeps = sp.keeps && len(list) > 0
}

// expand writes what an expansion stands for; false: it is unknown.
func (x *expander) expand(sp *speller, p syntax.WordPart, quoted bool) bool {
	switch p := p.(type) {
	case *syntax.ParamExp:
		return x.param(sp, p, quoted)
	case *syntax.CmdSubst:
		if len(x.within) > maxWithin {
			return false
		}
		x.within = append(x.within, enclosing{})
		lines, known := x.output(p.Stmts, sp.source, nil)
		x.within = x.within[:len(x.within)-1]
		if !known {
			return false
		}
		if quoted {
			sp.put(joinedLines(lines), true)
		} else {
			sp.putList(lines, false)
		}
		return true
	case *syntax.ProcSubst:
		sp.put(literalSpelt(NullDevice), true) // what runs in it is a command of its own
		return true
	case *syntax.ExtGlob:
		sp.put(spelt{text: "*", bare: "*", shape: globbed | dotted}, true)
		return true
	}
	return false
}

// joinedLines makes one text of lines.
func joinedLines(lines []spelt) (v spelt) {
	for i := range lines {
		if i > 0 {
			v.text, v.bare = v.text+"\n", v.bare+"\n"
		}
		v.text, v.bare, v.shape = v.text+lines[i].text, v.bare+lines[i].bare, v.shape|lines[i].shape
	}
	return v
}

// param writes what `$x` and its kin stand for; false: it is unknown.
func (x *expander) param(sp *speller, p *syntax.ParamExp, quoted bool) bool {
	if p.Param == nil || p.Flags != nil || p.NestedParam != nil || p.Length || p.Width || p.IsSet || p.Names != 0 ||
		p.Modifiers != nil || p.Split != 0 || p.GlobSubst != 0 || p.RcExpand != 0 {
		return false
	}
	if !quoted && !sp.flat && x.values.bound["IFS"] != nil && !x.onlyRead("IFS") {
		return false // where it is split is unknown
	}
	h := x.variable(p.Param.Value)
	if p.Excl {
		if len(h.list) == 0 || !h.known || h.list[0].shape&computed != 0 {
			return false
		}
		h = x.variable(h.list[0].text)
	}
	all := p.Param.Value == "@" || p.Param.Value == "*"
	switch index, ok := p.Index.(*syntax.Word); {
	case p.Index == nil:
		if !all && len(h.list) > 0 {
			h.list = h.list[:1]
		}
	case ok && (index.Lit() == "@" || index.Lit() == "*"):
		all = true
	case h.known && len(h.list) > 0: // any of them
		h.list = h.list[x.choose(len(h.list)):][:1]
	}
	if all && p.Slice != nil {
		if h, all = partOf(h, p); !all {
			return false
		}
		p = &syntax.ParamExp{Param: p.Param}
	}
	h, ok := x.changed(sp, p, h)
	switch {
	case !ok || !h.known:
		return false
	case all && (p.Param.Value == "*" && quoted):
		v := spelt{}
		for i := range h.list {
			v.text, v.bare, v.shape = v.text+" "+h.list[i].text, v.bare+" "+h.list[i].bare, v.shape|h.list[i].shape
		}
		v.text, v.bare = strings.TrimPrefix(v.text, " "), strings.TrimPrefix(v.bare, " ")
		sp.put(v, true)
	default:
		sp.putList(h.list, quoted)
	}
	return true
}

// onlyRead says whether a variable is only set for the command behind the assignment, as in `IFS= read`.
func (x *expander) onlyRead(name string) bool {
	for i := range x.values.bound[name] {
		if !x.values.bound[name][i].passed {
			return false
		}
	}
	return true
}

// variable is what a variable holds.
func (x *expander) variable(name string) holds {
	if len(x.within) > 0 {
		return x.read(name)
	}
	if h, ok := x.chosen[name]; ok {
		return h
	}
	h := x.read(name)
	if x.chosen == nil {
		x.chosen = map[string]holds{}
	}
	x.chosen[name] = h
	return h
}

// read chooses one of the values of a variable. A value that needs the variable's own needs an earlier one.
func (x *expander) read(name string) holds {
	if n := name[0]; '1' <= n && n <= '9' {
		h := x.read("@")
		i := int(n - '1')
		switch {
		case !h.known:
		case x.values.shifted && len(h.list) > 0:
			h.list = h.list[x.choose(len(h.list)):][:1]
		case several(h.list) <= i: // one of the words before it is perhaps several
			rest := h.list[several(h.list):]
			h.list = rest[x.choose(len(rest)):][:1]
		case len(name) == 1 && i < len(h.list):
			h.list = h.list[i : i+1]
		default:
			h = holds{known: len(name) == 1}
		}
		return h
	}
	if x.values.expanded++; x.values.expanded > maxExpanded {
		x.over = true
		return holds{}
	}
	bs := x.values.bound[name]
	for _, e := range x.within {
		if e.name == name {
			n := 0
			for n < len(bs) && bs[n].clock < e.clock {
				n++
			}
			bs = bs[:n]
		}
	}
	if len(bs) == 0 {
		return ofShell(name)
	}
	ways := len(bs)
	if name != "@" && !x.values.sure(bs, x.spot) {
		ways++
	}
	i := x.choose(ways)
	if i >= len(bs) || len(x.within) > maxWithin {
		return ofShell(name)
	}
	b := &bs[i]
	before := x.spot
	x.within = append(x.within, enclosing{name, b.clock})
	x.spot = b.spot
	h := x.bound(b, name)
	x.spot, x.within = before, x.within[:len(x.within)-1]
	if len(h.list) > maxValues {
		x.over = true
		return holds{}
	}
	return h
}

// several is where in a list the first word stands that may become several; len(list) + 9: nowhere.
func several(list []spelt) int {
	for i := range list {
		if list[i].shape&(computed|globbed) != 0 {
			return i
		}
	}
	return len(list) + 9
}

// ofShell is what the shell itself gives a variable.
func ofShell(name string) holds {
	switch name {
	case "HOME":
		return holds{[]spelt{{text: "~", bare: "~", shape: homely}}, true}
	case "PWD":
		return holds{[]spelt{hereSpelt()}, true}
	}
	return holds{}
}

// hereSpelt is where the shell stands. It is not known by name, like a home.
func hereSpelt() spelt { return spelt{text: ".", bare: ".", shape: homely} }

// bound is the value of one binding.
func (x *expander) bound(b *binding, name string) holds {
	h := holds{known: true}
	switch b.kind {
	case boundScalar:
		if b.made != nil {
			h.list = b.made
			break
		}
		h.list = []spelt{x.flat(b.in.text, b.words[0])}
	case boundList, boundEach:
		h.list = b.made
		for _, w := range b.words {
			h.list = x.words(h.list, b.in.text, w)
		}
	case boundLine, boundLines:
		h.list, h.known = x.lines(b.feed)
	default:
		return holds{}
	}
	if b.append {
		h = x.added(b, name, h)
	}
	if !h.known || b.kind != boundEach && b.kind != boundLine {
		return h
	}
	if len(h.list) == 0 {
		return holds{}
	}
	h.list = h.list[x.choose(len(h.list)):][:1]
	if b.field > 0 && h.list[0].shape&computed == 0 {
		fields := fieldsOf(h.list)
		if len(fields) == 0 {
			return holds{[]spelt{{}}, true}
		}
		h.list = fields[x.choose(len(fields)):][:1]
	}
	return h
}

// added is `x+=value`.
func (x *expander) added(b *binding, name string, h holds) holds {
	before := x.read(name)
	switch {
	case !before.known:
		before.list = []spelt{unknownSpelt()}
	case len(before.list) == 0:
		return h
	}
	if b.kind == boundList {
		return holds{append(append([]spelt(nil), before.list...), h.list...), true}
	}
	v := before.list[0]
	if len(h.list) == 0 || len(v.text)+len(h.list[0].text) > maxValue {
		return holds{[]spelt{unknownSpelt()}, true}
	}
	v.text, v.bare, v.shape = v.text+h.list[0].text, v.bare+h.list[0].bare, v.shape|h.list[0].shape
	return holds{[]spelt{v}, true}
}

// changed is what `${x:-word}`, `${x%.txt}` and so on make of a value; not ok: it is not worked out here.
func (x *expander) changed(sp *speller, p *syntax.ParamExp, h holds) (holds, bool) {
	switch {
	case p.Exp != nil:
	case p.Slice != nil:
		return mapped(h, func(v string) (string, bool) { return sliced(v, p.Slice) })
	case p.Repl != nil:
		return mapped(h, func(v string) (string, bool) { return x.replaced(sp, v, p.Repl) })
	default:
		return h, true
	}
	other := func() holds {
		if p.Exp.Word == nil {
			return holds{[]spelt{{}}, true}
		}
		return holds{[]spelt{x.flat(sp.source, p.Exp.Word)}, true}
	}
	empty := len(h.list) == 0 || h.list[0].text == ""
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !h.known && x.choose(2) == 0 || h.known && empty {
			return other(), true
		}
		return h, true
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !h.known && x.choose(2) == 0 || h.known && !empty {
			return other(), true
		}
		return holds{[]spelt{{}}, true}, true
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return h, true
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if p.Exp.Word == nil {
			return h, true
		}
		glob := x.pattern(sp, p.Exp.Word)
		return mapped(h, func(v string) (string, bool) { return trimmed(v, glob, p.Exp.Op) })
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		if p.Exp.Word != nil {
			return h, false
		}
		return mapped(h, func(v string) (string, bool) { return cased(v, p.Exp.Op), true })
	}
	return h, false
}

// pattern is a pattern of `${x#…}`; "[": it is not worked out here.
func (x *expander) pattern(sp *speller, w *syntax.Word) string {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && !strings.Contains(lit.Value, `\`) {
			continue
		}
		v := x.flat(sp.source, w)
		if v.shape&computed != 0 || strings.ContainsAny(v.text, globs) {
			return "["
		}
		return v.text
	}
	return x.flat(sp.source, w).text
}

// mapped changes each value that is known.
func mapped(h holds, change func(string) (string, bool)) (holds, bool) {
	if !h.known {
		return h, false
	}
	list := make([]spelt, len(h.list))
	for i, v := range h.list {
		text, ok := change(v.text)
		if !ok || v.shape&(computed|globbed|homely) != 0 {
			return h, false
		}
		v.text, v.bare = text, text
		list[i] = v
	}
	return holds{list, true}, true
}

// partOf is `${x[@]:offset:length}` with plain numbers; not ok: the elements are unknown.
func partOf(h holds, p *syntax.ParamExp) (part holds, ok bool) {
	from, ok := plainNumber(p.Slice.Offset)
	if !ok || !h.known || several(h.list) < len(h.list) {
		return h, false
	}
	if p.Index == nil { // of $@, the first of which has the number 1
		if from--; from < 0 {
			return h, false
		}
	}
	h.list = h.list[min(from, len(h.list)):]
	if p.Slice.Length == nil {
		return h, true
	}
	n, ok := plainNumber(p.Slice.Length)
	h.list = h.list[:min(n, len(h.list))]
	return h, ok
}

// sliced is `${x:offset:length}` with plain numbers.
func sliced(v string, s *syntax.Slice) (string, bool) {
	from, ok := plainNumber(s.Offset)
	if !ok || !isASCII(v) {
		return "", false
	}
	v = v[min(from, len(v)):]
	if s.Length == nil {
		return v, true
	}
	n, ok := plainNumber(s.Length)
	return v[:min(n, len(v))], ok
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

func plainNumber(n syntax.ArithmExpr) (number int, ok bool) {
	w, ok := n.(*syntax.Word)
	if !ok || w.Lit() == "" || len(w.Lit()) > 4 || strings.Trim(w.Lit(), "0123456789") != "" {
		return 0, false
	}
	for _, c := range w.Lit() {
		number = 10*number + int(c-'0')
	}
	return number, w.Lit()[0] != '0' || number == 0 // else it is octal
}

// replaced is `${x/orig/with}` for a plain orig.
func (x *expander) replaced(sp *speller, v string, r *syntax.Replace) (string, bool) {
	if r.Orig == nil {
		return v, true
	}
	orig := x.flat(sp.source, r.Orig)
	if orig.shape&computed != 0 || orig.text == "" || strings.ContainsAny(orig.text, `*?[\#%&`) {
		return "", false
	}
	with := spelt{}
	if r.With != nil {
		with = x.flat(sp.source, r.With)
	}
	if with.shape&computed != 0 || strings.ContainsAny(with.text, `\&`) {
		return "", false
	}
	n := 1
	if r.All {
		n = -1
	}
	return strings.Replace(v, orig.text, with.text, n), true
}

// trimmed is `${v#glob}` and its kin.
func trimmed(v, glob string, op syntax.ParExpOperator) (string, bool) {
	if strings.Contains(glob, "[") || len(v) > maxValue {
		return "", false
	}
	large := op == syntax.RemLargePrefix || op == syntax.RemLargeSuffix
	for n := range len(v) + 1 {
		if large {
			n = len(v) - n
		}
		if op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix {
			if starMatch(glob, v[:n]) {
				return v[n:], true
			}
		} else if starMatch(glob, v[len(v)-n:]) {
			return v[:len(v)-n], true
		}
	}
	return v, true
}

// starMatch holds a text against a pattern with * and ?, in which * also stands for slashes.
func starMatch(glob, text string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(text) {
		switch {
		case i < len(glob) && glob[i] == '*':
			star, mark = i, j
			i++
		case i < len(glob) && (glob[i] == '?' || glob[i] == text[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(glob[i:], "*") == ""
}

// cased is `${v^^}` and its kin.
func cased(v string, op syntax.ParExpOperator) string {
	n := len(v)
	if op == syntax.UpperFirst || op == syntax.LowerFirst {
		n = min(1, n)
	}
	if op == syntax.UpperFirst || op == syntax.UpperAll {
		return strings.ToUpper(v[:n]) + v[n:]
	}
	return strings.ToLower(v[:n]) + v[n:]
}

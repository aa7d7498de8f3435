package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What variables hold, as far as the text of the command tells. Rules that deny or ask see `f=x; cat $f` as `cat x`.
//
// All values count that the text gives a variable anywhere, in whatever order, branch or nested shell: a rule must hold
// on each way through the command. A value that comes from elsewhere (the environment, a file, a program) is unknown,
// and unknown also counts unless an assignment that is known to run comes first.

const (
	// maxVariants is how many ways to read one command are looked at, and maxValues how many values of one variable.
	// Beyond these the command is unknown.
	maxVariants = 64
	maxValues   = 64
	// maxExpanded is how many ways to read its commands, and values on the way, are looked at for a whole script.
	maxExpanded = 10_000
	// maxValue is how long a value is, in bytes, that is put together of several.
	maxValue = maxPath
	// maxWithin is how deep values are made of other values.
	maxWithin = 16
)

// values are the values that a script gives to variables.
type values struct {
	bound    map[string][]binding
	parents  []int // of each region: the one around it
	clock    int   // counts commands and bindings in the order of the text
	funcs    map[string]bool
	renamed  bool // `declare -n` and the like: any variable may hold what another is given, or in another case
	shifted  bool // `shift` makes `$1` any of the parameters
	loose    bool // shopt and the like: globs also match names that begin with a dot, and ignore letter case
	computed bool // a word has an expansion, or takes names from a pipe
	expanded int  // ways and values read so far
	unread   bool // there are more texts of nested shells than are read
	early    bool // more may become known: what is not known yet is no value
}

// A spot is where a command or a binding stands.
type spot struct {
	// region is what runs together. Region 0 is the script; each branch, loop, pipe and function has its own, which
	// runs perhaps, and perhaps often.
	region int
	clock  int
	depth  int // of shells
}

// A bindingKind says what the words of a binding are.
type bindingKind int

// The kinds of bindings.
const (
	boundUnknown bindingKind = iota // comes from elsewhere
	boundScalar                     // the value
	boundList                       // the elements of an array
	boundEach                       // one of them at a time
	boundLine                       // a line of an input
	boundLines                      // all lines of an input
)

// A binding is one place in which a variable is given a value.
type binding struct {
	spot
	kind   bindingKind
	in     *script
	words  []*syntax.Word
	made   []spelt // instead of words: what they are, read already
	feed   *feed   // of lines
	field  int     // of a line: the word that counts, from 1; 0: all
	append bool    // += adds it to what was there
	passed bool    // it holds for the command behind it only
}

// child begins a region.
func (vs *values) child(of int) int {
	if len(vs.parents) == 0 {
		vs.parents = append(vs.parents, -1)
	}
	vs.parents = append(vs.parents, of)
	return len(vs.parents) - 1
}

// function notes the name of a function.
func (vs *values) function(name string) {
	if vs.funcs == nil {
		vs.funcs = map[string]bool{}
	}
	vs.funcs[name] = true
	vs.computed = true
}

// expands says whether a command must be read with what variables hold, or with names that it takes from elsewhere.
func (c *simple) expands() bool {
	isComputed := func(w spelt) bool { return w.shape&computed != 0 }
	if slices.ContainsFunc(c.words, isComputed) {
		return true
	}
	for _, h := range c.heads {
		switch c.words[h.at].name() {
		case "xargs", "gxargs", "parallel":
			return true
		case "find", "gfind":
			if runsEach(c.words) {
				return true
			}
		}
	}
	for _, r := range c.stmt.Redirs {
		if r.Hdoc != nil && !literalWord(r.Hdoc) ||
			r.Hdoc == nil && slices.ContainsFunc(spellOne(nil, c.in.text, r.Word), isComputed) {
			return true
		}
	}
	return false
}

func isCallExpr(n syntax.Node) bool {
	_, ok := n.(*syntax.CallExpr)
	return ok
}

// entered are the words of a cd, with what variables hold if there is one way to read them.
func (vs *values) entered(c *simple) []spelt {
	if !isOneOf(c.words[0].bare, "cd pushd") || !c.expands() {
		return c.words
	}
	ways := 0
	words := c.words
	vs.each(c, func(v *simple) {
		if ways++; len(v.words) > 0 {
			words = v.words
		}
	})
	last := words[len(words)-1]
	if ways > 1 || last.shape&homely != 0 && last.text[0] == '~' { // $HOME may be another than ~
		return c.words
	}
	return words
}

// within reads something that runs perhaps.
func (f *finding) within(sc *scope, read func()) {
	before := sc.region
	sc.region = f.values.child(before)
	read()
	sc.region = before
}

// bind notes a value, unless it is known already.
func (vs *values) bind(name string, b binding) {
	if vs.bound == nil {
		vs.bound = map[string][]binding{}
	}
	if b.clock == 0 {
		vs.clock++
		b.clock = vs.clock
	}
	for i := range vs.bound[name] {
		o := &vs.bound[name][i]
		if o.clock == b.clock && o.field == b.field && o.kind == b.kind && slices.Equal(o.made, b.made) {
			return
		}
	}
	if len(vs.bound[name]) <= maxValues { // one more tells that there are too many
		vs.bound[name] = append(vs.bound[name], b)
	}
}

// assigns notes the assignments of a command. passed: they hold for that command only.
func (vs *values) assigns(c *simple, passed bool) {
	altered := vs.altered(c)
	for _, a := range c.assigns {
		if a.Name == nil || a.Naked {
			continue
		}
		b := binding{spot: c.spot, in: c.in, append: a.Append, passed: passed}
		b.clock = 0
		switch {
		case altered:
		case a.Array != nil:
			b.kind = boundList
			for _, e := range a.Array.Elems {
				if e.Value != nil {
					b.words = append(b.words, e.Value)
				}
			}
		case a.Value != nil:
			b.kind, b.words = boundScalar, []*syntax.Word{a.Value}
		default:
			b.kind, b.made = boundScalar, []spelt{{}}
		}
		vs.bind(a.Name.Value, b)
	}
}

// altered says whether a declaration makes more of its values than they are: references, upper case, numbers.
func (vs *values) altered(c *simple) bool {
	d, ok := c.node.(*syntax.DeclClause)
	if !ok {
		return false
	}
	for _, a := range d.Args {
		if a.Naked && a.Value != nil && (d.Variant.Value == "declare" || d.Variant.Value == "typeset" ||
			d.Variant.Value == "local") {
			for _, w := range spellOne(nil, c.in.text, a.Value) {
				if strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "nluci") {
					vs.renamed = true
					return true
				}
			}
		}
	}
	return false
}

// bindLoop notes what a loop goes over.
func (vs *values) bindLoop(items *syntax.WordIter, sc *scope, read []spelt) {
	b := binding{spot: spot{region: sc.region}, in: sc.in, kind: boundEach, words: items.Items}
	sure := slices.ContainsFunc(read, func(w spelt) bool { return w.shape&computed == 0 })
	if !items.InPos.IsValid() {
		b.words = []*syntax.Word{{Parts: []syntax.WordPart{&syntax.ParamExp{Param: &syntax.Lit{Value: "@"}}}}}
		vs.computed = true
	}
	if !sure {
		b.region = vs.child(sc.region)
	}
	vs.bind(items.Name.Value, b)
	if !sure { // in the loop there is a value
		sc.region = b.region
	}
}

// bindDefault notes `${x:=word}`.
func (vs *values) bindDefault(p *syntax.ParamExp, sc *scope) {
	if p.Exp == nil || p.Param == nil || p.Exp.Word == nil {
		return
	}
	if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
		vs.bind(p.Param.Value, binding{spot: spot{region: sc.region}, in: sc.in, kind: boundScalar, passed: true,
			words: []*syntax.Word{p.Exp.Word}})
	}
}

// settle works out what commands give to variables as arguments, and what texts nested shells are given.
func (f *finding) settle() {
	if !f.values.computed {
		return
	}
	for pass := range 3 { // functions may call others with what they are given
		f.values.early = pass < 2
		for i := 0; i < len(f.commands); i++ {
			c := f.commands[i] // a copy: texts add commands
			if f.values.setsValues(&c) {
				f.values.each(&c, func(v *simple) { f.values.bindArguments(v) })
			}
		}
	}
	for i := 0; i < len(f.commands); i++ {
		c := f.commands[i]
		if (c.expands() || c.feed != nil) && slices.ContainsFunc(c.heads, func(h head) bool {
			return !h.quiet && (isShell(c.words[h.at].name()) || textsOf(c.words[h.at:h.end]) != nil)
		}) {
			f.nestedVariants(&c)
		}
	}
}

// maxNestedVariants is how many readings of a nested text are read.
const maxNestedVariants = 8

// nestedVariants reads the texts of nested shells with what variables hold.
func (f *finding) nestedVariants(c *simple) {
	var texts []string
	f.values.each(c, func(v *simple) {
		for _, h := range v.heads {
			if h.quiet {
				continue
			}
			given := textsOf(v.words[h.at:h.end])
			if isShell(v.words[h.at].name()) && given == nil {
				if lines, known := v.x.lines(v.feed); known {
					given = []string{joinedLines(lines).text}
				}
			}
			for _, text := range given {
				if !slices.Contains(texts, text) && len(texts) < maxNestedVariants && len(text) <= maxCommand {
					texts = append(texts, text)
				}
			}
		}
	})
	for _, h := range c.heads {
		for _, text := range textsOf(c.words[h.at:h.end]) {
			texts = slices.DeleteFunc(texts, func(t string) bool { return t == text }) // is read already
		}
	}
	for _, text := range texts {
		if f.values.unread = f.values.unread || f.texts >= maxTexts/2 || c.depth >= maxNested; !f.values.unread {
			sc := scope{in: c.in, stand: c.stand, depth: c.depth, region: c.region}
			f.nested(text, sc)
		}
	}
}

// loosens says whether a command may change what globs match.
func (c *simple) loosens() bool {
	for _, h := range c.heads {
		name := c.words[h.at].name()
		if name == "shopt" || isShell(name) &&
			slices.ContainsFunc(c.words[h.at+1:h.end], func(w spelt) bool { return strings.HasSuffix(w.bare, "O") }) {
			return true
		}
	}
	for _, a := range c.assigns {
		if a.Name != nil && isOneOf(a.Name.Value, "GLOBIGNORE BASHOPTS") {
			return true
		}
	}
	return slices.ContainsFunc(c.words,
		func(w spelt) bool { return isOneOf(assigned(w.text), "GLOBIGNORE BASHOPTS") })
}

// setsValues says whether a command may give variables values by its words.
func (vs *values) setsValues(c *simple) bool {
	for _, h := range c.heads {
		if h.quiet {
			continue
		}
		name := c.words[h.at].name()
		if isShell(name) || vs.funcs[name] || isOneOf(name, "set env sudo doas export declare typeset local readonly "+
			"read mapfile readarray printf shift getopts") {
			return true
		}
	}
	return false
}

// bindArguments notes the values that a command gives to variables by its words.
func (vs *values) bindArguments(c *simple) {
	for _, h := range c.heads {
		if h.quiet {
			continue
		}
		words := c.words[h.at:h.end]
		name, args := words[0].name(), words[1:]
		switch {
		case isShell(name):
			if use := shellOf(args); use.text != nil {
				vs.bindOperands(c, wordsBehind(args, use.text))
			}
		case vs.funcs[name]:
			vs.bindMade("@", c, boundList, args)
		case name == "set":
			vs.bindSet(c, args)
		case name == "shift", name == "getopts":
			vs.shifted = true
		case isOneOf(name, "env sudo doas export declare typeset local readonly"):
			vs.bindWords(c, args)
		case isOneOf(name, "read mapfile readarray"):
			vs.bindRead(c, name, args)
		case name == "printf" && len(args) > 1 && args[0].bare == "-v":
			made, known := printed(args[2:])
			if !known {
				made = nil
			}
			vs.renamed = vs.renamed || args[1].shape&computed != 0
			vs.bindMade(args[1].bare, c, boundScalar, made)
		}
	}
}

// bindMade notes words as a value; nil: it is unknown.
func (vs *values) bindMade(name string, c *simple, kind bindingKind, made []spelt) {
	if vs.early && slices.ContainsFunc(made, func(w spelt) bool { return w.shape&computed != 0 }) {
		return
	}
	b := binding{spot: c.spot, kind: kind, made: slices.Clone(made)}
	if made == nil {
		if b.kind = boundUnknown; kind == boundList {
			return // no arguments
		}
	}
	for i := range b.made {
		b.made[i].from, b.made[i].to = 0, 0
	}
	vs.bind(name, b)
}

// wordsBehind are the words behind one of them.
func wordsBehind(args []spelt, w *spelt) []spelt {
	for i := range args {
		if &args[i] == w {
			return args[i+1:]
		}
	}
	return nil
}

// bindOperands notes the operands of a nested shell: the first is `$0`.
func (vs *values) bindOperands(c *simple, operands []spelt) {
	if len(operands) > 0 {
		vs.bindMade("0", c, boundScalar, operands[:1])
		vs.bindMade("@", c, boundList, operands[1:])
	}
}

// bindSet notes `set -- a b`.
func (vs *values) bindSet(c *simple, args []spelt) {
	for i := range args {
		if t := args[i].bare; t == "--" || t == "-" {
			vs.bindMade("@", c, boundList, args[i+1:])
			return
		} else if t == "" || t[0] != '-' && t[0] != '+' {
			vs.bindMade("@", c, boundList, args[i:])
			return
		}
	}
}

// bindWords notes the words NAME=value.
func (vs *values) bindWords(c *simple, args []spelt) {
	if d, ok := c.node.(*syntax.DeclClause); ok {
		args = nil
		for _, a := range d.Args {
			if a.Naked && a.Value != nil { // NAME=value is an assignment already, if it is not quoted
				args = c.respell(args, a.Value)
			}
		}
	}
	for _, v := range args {
		if v.shape&computed != 0 && assigned(v.text) == "" {
			vs.renamed = true
		}
		if name := assigned(v.text); name != "" && len(v.bare) > len(name) {
			v.text, v.bare = v.text[len(name)+1:], v.bare[len(name)+1:]
			vs.bindMade(name, c, boundScalar, []spelt{v})
		}
	}
}

// bindRead notes what `read` and `mapfile` take from their input.
func (vs *values) bindRead(c *simple, name string, args []spelt) {
	valued := "adinNptu"
	if name != "read" {
		valued = "dnOsuCc"
	}
	names, given := readOptions(args, valued)
	vs.renamed = vs.renamed || slices.ContainsFunc(names, func(w spelt) bool { return w.shape&computed != 0 })
	b := binding{spot: c.spot, kind: boundLine, feed: c.feed}
	if given['u'] != nil || c.feed == nil || len(names) > 1 && vs.bound["IFS"] != nil {
		b.kind = boundUnknown
	}
	array := given['a']
	switch {
	case name != "read":
		array = &spelt{bare: "MAPFILE"}
		if len(names) > 0 {
			array = &names[0]
		}
		if b.kind == boundLine {
			b.kind = boundLines
		}
		vs.bind(array.bare, b)
	case array != nil:
		vs.bind(array.bare, b)
	case len(names) == 0:
		vs.bind("REPLY", b)
	case len(names) == 1:
		vs.bind(names[0].bare, b)
	default:
		for i := range names {
			b.field = i + 1
			vs.bind(names[i].bare, b)
		}
	}
}

// readOptions are the operands of `read` and `mapfile`, and the values of their options by letter.
func readOptions(args []spelt, valued string) (names []spelt, given map[byte]*spelt) {
	given = map[byte]*spelt{}
	for i := 0; i < len(args); i++ {
		t := args[i].bare
		if len(t) < 2 || t[0] != '-' {
			return args[i:], given
		}
		if t == "--" {
			return args[i+1:], given
		}
		n := strings.IndexAny(t[1:], valued) + 1
		switch {
		case n == 0:
		case n < len(t)-1:
			given[t[n]] = &spelt{text: t[n+1:], bare: t[n+1:]}
		case i+1 < len(args):
			i++
			given[t[n]] = &args[i]
		}
	}
	return nil, given
}

// sure says whether a variable surely has one of its values at a spot, and none that comes from elsewhere.
func (vs *values) sure(bs []binding, at spot) bool {
	if vs.renamed {
		return false
	}
	for i := range bs {
		if b := &bs[i]; !b.passed && !b.append && b.clock < at.clock && vs.around(b.region, at.region) {
			return true
		}
	}
	return false
}

// around says whether a region is another one, or has it in it.
func (vs *values) around(outer, inner int) bool {
	for inner > outer && inner < len(vs.parents) {
		inner = vs.parents[inner]
	}
	return inner == outer
}

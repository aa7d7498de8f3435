package bash

import (
	"slices"
	"strings"
)

// What variables hold and what pipes carry is not worked out. A rule about commands is compared with forms in which
// such words may be anything (Part.Open), and a rule about paths asks, since the file is unsure. What is protected
// whatever the rules say is compared with all that the text gives to any variable (guesses).

// Any stands in Part.Open for what only the shell knows: any text, also none, also several words.
const Any = '\x00'

// taken is a word that a program takes from its input.
var taken = spelt{text: "$(…)", shape: computed}

func (w spelt) isComputed() bool { return w.shape&computed != 0 }

// open is the word with Any in place of its first expansion and all that follows. What bash takes for the beginning of
// an expansion may be quoted; then the word only becomes less certain than it is.
func (w spelt) open() spelt {
	if w.shape&computed != 0 {
		w.text = w.text[:max(0, strings.IndexAny(w.text, "$`<>@?*+!"))] + string(Any)
		w.bare = w.text
	}
	return w
}

// openForms are the forms of a command that has words which only the shell knows.
func (c *simple) openForms() []string {
	v := c.withTaken()
	if !slices.ContainsFunc(v.words, spelt.isComputed) {
		return nil
	}
	words := make([]spelt, len(v.words))
	for i := range v.words {
		words[i] = v.words[i].open()
	}
	v = &simple{in: c.in, words: words}
	v.heads = headsOf(words)
	v.heads = v.heads[:min(len(v.heads), maxHeads)]
	forms, _ := v.appendForms(nil)
	return slices.DeleteFunc(forms, func(form string) bool { return strings.IndexByte(form, Any) < 0 })
}

// withTaken is the command with the words that xargs, parallel or find give to the one behind them; c itself: there is
// none.
func (c *simple) withTaken() *simple {
	for _, h := range c.heads {
		words := c.words[h.at:h.end]
		switch {
		case h.quiet || h.row == nil:
			continue
		case h.row.Has("feeds"):
			words = fedByInput(h.name, words)
		case h.row.Name == "find" && runsEach(words):
			words = fedByFind(words)
		default:
			continue
		}
		v := *c
		v.words = append(slices.Clip(c.words[:h.at]), words...)
		v.heads = headsOf(v.words)
		v.heads = v.heads[:min(len(v.heads), maxHeads)]
		return &v
	}
	return c
}

// fedByInput is a command of xargs or parallel with a word that it takes from its input.
func fedByInput(name string, words []spelt) []spelt {
	r, place := read("xargs", words[1:]), ""
	if w := r.given("-I", "-i", "--replace"); w != nil {
		place = w.text
	} else if name == "parallel" || r.has("-i", "--replace") != "" {
		place = "{}"
	}
	fed := words[:1:1]
	is := func(w spelt) bool { return place != "" && strings.Contains(w.text, place) }
	for _, w := range words[1:] {
		if strings.HasPrefix(w.text, ":::") {
			break // what follows is the input
		}
		own := fed[len(fed)-1].bare == "-I" || strings.HasPrefix(w.text, "-I") || abbreviates(w.text, "--replace")
		if is(w) && !own {
			w = taken
		}
		fed = append(fed, w)
	}
	if place == "" || name == "parallel" && !slices.ContainsFunc(words, is) {
		fed = append(fed, taken)
	}
	return fed
}

// fedByFind is find with what it finds in place of {}.
func fedByFind(words []spelt) []spelt {
	var fed []spelt
	for i, w := range words {
		switch {
		case w.bare == "{}":
			fed = append(fed, foundWords(words[1:])...)
		case strings.Contains(w.text, "{}"):
			fed = append(fed, taken)
		case w.bare == "+" && words[i-1].bare == "{}":
			fed = append(fed, literalSpelt(";"))
		default:
			fed = append(fed, w)
		}
	}
	return fed
}

// foundWords are what find finds: where it starts, if it looks for no names, and all below.
func foundWords(args []spelt) (found []spelt) {
	r := read("find", args)
	named := slices.ContainsFunc(args, func(w spelt) bool { return strings.HasSuffix(w.bare, "name") })
	for _, w := range orHere(r.operands()) {
		w.shape |= dotted
		if !named {
			found = append(found, w)
		}
		w.shape |= globbed
		w.text = strings.TrimSuffix(w.text, "/") + "/**"
		w.bare = w.text
		found = append(found, w)
	}
	return found
}

// function notes the name of a function.
func (f *finding) function(name string) {
	if f.funcs == nil {
		f.funcs = map[string]bool{}
	}
	f.funcs[name] = true
}

// computed reads the values of a line as command lines, if it runs a command whose name only the shell knows.
func (f *finding) computed() {
	isComputed := func(c simple) bool {
		return slices.ContainsFunc(c.heads, func(h head) bool { return h.sure && c.words[h.at].shape&computed != 0 })
	}
	if !slices.ContainsFunc(f.commands, isComputed) {
		return
	}
	for _, w := range slices.Clone(f.loose) {
		if f.texts < maxTexts/2 && w.shape&computed == 0 && strings.ContainsAny(w.text, wordBreaks) &&
			newScript(w.text).file != nil {
			f.nested(w.text, scope{})
		}
	}
}

// guesses are what the variables of a line may hold as far as its text gives them anything, and what its pipes may
// carry: no path that is not among them need be known.
func (f *finding) guesses() []spelt {
	if f.bag != nil {
		return f.bag
	}
	f.bag = []spelt{}
	add := func(words ...spelt) {
		for _, w := range words {
			if w.shape&computed != 0 || len(w.text) > maxPath || len(f.bag) > maxPerhaps {
				continue
			}
			fields := append(strings.Fields(w.text), w.text)
			for _, field := range fields {
				if name := assigned(field); name != "" {
					field = field[len(name)+1:]
				}
				one := spelt{text: field, bare: field, shape: w.shape & (homely | globbed)}
				if field != "" && field[0] != '-' && !slices.Contains(f.bag, one) {
					f.bag = append(f.bag, one)
				}
			}
		}
	}
	add(f.loose...)
	for i := range f.commands {
		c := &f.commands[i]
		for _, h := range c.heads {
			if !h.quiet && (h.row.Has("gives") || isShell(h.name) || f.funcs[h.name]) {
				add(c.words[h.at+1 : h.end]...)
			}
		}
		for _, r := range c.stmt.Redirs {
			if text, ok := hereText(c.in.text, r); ok {
				add(literalSpelt(text))
			}
		}
	}
	if single := f.bag; len(single) <= maxPaired {
		for i := range single {
			for j := range single { // d=.gi; echo > ${d}t/config
				both := single[i]
				both.text += single[j].text
				both.bare = both.text
				f.bag = append(f.bag, both)
			}
		}
	}
	return f.bag
}

// maxPaired is of how many values two are put together.
const maxPaired = 10

// guess notes that a command may touch any of the guesses, since the text does not tell what it touches.
func (t *toucher) guess(write bool) {
	done := &t.reads
	if write {
		done = &t.writes
	}
	if *done {
		return
	}
	*done = true
	words := t.f.guesses()
	for i := range words {
		if words[i].shape&globbed != 0 {
			t.globs(words[i:i+1], write)
		}
		t.guessOne(words[i], write)
	}
}

func (t *toucher) guessOne(w spelt, write bool) {
	if p, ok := t.c.place(&w); ok && p != "" && p != NullDevice {
		t.a.Files = append(t.a.Files, FileUse{Path: plainPath(p), Write: write, Guess: true})
	}
}

// removesGuesses adds the guesses to what rm removes, if that is not in the text.
func (t *toucher) removesGuesses() {
	removes := func(h head) bool { return !h.quiet && h.row != nil && isOneOf(h.row.Name, "rm rmdir") }
	for _, h := range t.c.heads {
		if removes(h) && slices.ContainsFunc(t.c.words[h.at:h.end], spelt.isComputed) {
			for _, w := range t.f.guesses() {
				if w.shape&homely == 0 && w.text[0] == '~' {
					w.text = "./" + w.text
				}
				t.a.Removes = append(t.a.Removes, w.text)
			}
			return
		}
	}
}

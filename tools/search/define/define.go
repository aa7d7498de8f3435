// Package define guesses which name a line of source code defines, from that line alone. It knows words and shapes of
// common languages, parses nothing, and reads no files: good enough to order lines, and for nothing else.
package define

import (
	"bytes"
	"strings"
)

// A grammar is what Name knows of some languages. Words are parted by blanks.
type grammar struct {
	exts    string // of its files
	kinds   string // words that a defined name follows, anywhere in a file
	top     string // the same, but only in a line without indentation, or behind "export"
	before  string // words that may stand before them
	shape   shape
	folds   bool // its words are written in capitals, too
	assigns bool // NAME = at the start of a line
}

// A shape is how functions look that no word introduces.
type shape int

const (
	noShape shape = iota
	// a line without indentation: at least a type, then NAME(
	inC
	// a word of before, or a type, then NAME(
	inJava
	// NAME(…) {
	inScript
)

const visible = "public private protected internal static final abstract sealed override virtual async open readonly "

var grammars = []grammar{
	{exts: ".go", kinds: "func type", top: "var const"},
	{exts: ".py .pyi", kinds: "def class", before: "async", assigns: true},
	{exts: ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte", kinds: "function class interface enum namespace",
		top: "const let var type", before: visible + "export default declare abstract get set", shape: inScript},
	{exts: ".rs", kinds: "fn struct enum trait union mod type macro_rules", top: "const static",
		before: "pub async unsafe extern default const"},
	{exts: ".c .h .cc .cpp .cxx .hpp .hh .hxx .m .mm .cu", kinds: "#define struct class enum union namespace concept",
		before: "typedef static inline extern constexpr template", shape: inC},
	{exts: ".java .cs .kt .kts .scala .swift .groovy .dart",
		kinds: "class interface enum record struct fun func def object trait protocol typealias @interface",
		before: visible + "data case inline suspend partial fileprivate lateinit value annotation inner companion " +
			"implicit lazy native synchronized default strictfp unsafe extern mutating final indirect",
		shape: inJava},
	{exts: ".rb .rake", kinds: "def class module", assigns: true},
	{exts: ".php", kinds: "function class interface trait enum const", before: visible},
	{exts: ".sh .bash .zsh", kinds: "function", shape: inScript},
	{exts: ".lua", kinds: "function", before: "local"},
	{exts: ".pl .pm", kinds: "sub package"},
	{exts: ".ex .exs", kinds: "def defp defmodule defmacro defstruct"},
	{exts: ".proto", kinds: "message enum service rpc"},
	{exts: ".sql", kinds: "table view function procedure index trigger type",
		before: "create or replace temporary temp unique materialized if not exists", folds: true},
}

var grammarOf = func() map[string]*grammar {
	of := map[string]*grammar{}
	for i := range grammars {
		for ext := range strings.FieldsSeq(grammars[i].exts) {
			of[ext] = &grammars[i]
		}
	}
	return of
}()

// statements look like functions of a shape, or stand where a type would.
const statements = "if for while switch catch return else do case new throw await yield with foreach using lock " +
	"delete typeof sizeof goto function"

// A span is where a name is, in bytes of its line. to is 0: there is none.
type span struct{ from, to int }

// Name says where a line has the name that it defines, in bytes; to is 0 if it defines none. ext is the extension of
// the line's file, with its dot; of one that is not known no line defines anything. It is safe for concurrent use.
func Name(ext string, line []byte) (from, to int) {
	if g := grammarOf[ext]; g != nil {
		s := g.find(line)
		return s.from, s.to
	}
	return 0, 0
}

func (g *grammar) find(line []byte) span {
	at := len(line) - len(bytes.TrimLeft(line, " \t"))
	top := at == 0
	if g.assigns && top {
		if end := wordEnd(line, 0); end > 0 && assigned(line[end:]) {
			return span{0, end}
		}
	}
	introduced := false // a word of kinds came before, and one of before follows: CREATE TABLE IF NOT EXISTS x
	for start := at; at < len(line); {
		end := wordEnd(line, at)
		if end == at {
			break
		}
		word := g.word(line[at:end])
		next := skipBlanks(line, end)
		switch {
		case next > end && has(g.kinds, word), next > end && top && has(g.top, word):
			name := nameAt(line, next, word)
			if g.shape == inC && word != "#define" && !opens(line) {
				return g.shape.name(line, start, g.before) // struct x *p is a use, struct x *get(void) is none
			}
			if name.to > 0 && !g.knows(line[name.from:name.to]) {
				return name
			}
			introduced = true
		case word == "export":
			top = true
		case introduced && !has(g.before, word):
			return span{at, end}
		case !has(g.before, word):
			return g.shape.name(line, start, g.before)
		case next < len(line) && line[next] == '(' && word == "pub":
			next = skipBlanks(line, next+bytes.IndexByte(line[next:], ')')+1)
		}
		at = next
	}
	return span{}
}

func (g *grammar) word(text []byte) string {
	if g.folds {
		text = bytes.ToLower(text)
	}
	return string(text)
}

// knows says that a text is no name.
func (g *grammar) knows(text []byte) bool {
	word := g.word(text)
	return has(g.before, word) || has(g.kinds, word)
}

// nameAt is the name behind a word. A receiver of Go is passed over.
func nameAt(line []byte, at int, word string) span {
	if word == "func" && at < len(line) && line[at] == '(' {
		end := bytes.IndexByte(line[at:], ')')
		if end < 0 {
			return span{}
		}
		at = skipBlanks(line, at+end+1)
	}
	for at < len(line) && (line[at] == '*' || line[at] == '!') {
		at = skipBlanks(line, at+1)
	}
	if end := wordEnd(line, at); end > at {
		return span{at, end}
	}
	return span{}
}

// name is that of a function which no word introduces.
func (s shape) name(line []byte, start int, before string) span {
	open := bytes.IndexByte(line, '(')
	if s == noShape || open <= start || s == inC && start > 0 {
		return span{}
	}
	end := len(bytes.TrimRight(line[:open], " \t"))
	from := end
	for from > start && isWord(line[from-1]) {
		from--
	}
	head := bytes.Fields(line[start:from])
	first := line[start:wordEnd(line, start)]
	never := "=;\"'"
	if s != inC {
		never += ".," // there they stand between arguments, and before a member
	}
	if from == end || len(first) == 0 || has(statements, string(first)) || has(statements, string(line[from:end])) ||
		bytes.ContainsAny(line[start:from], never) {
		return span{}
	}
	switch s {
	case inC:
		if len(head) == 0 || ends(line, ';') || ends(line, ',') {
			return span{}
		}
	case inJava:
		if len(head) == 0 || !has(before, string(first)) && !opens(line) {
			return span{}
		}
	case inScript:
		for _, word := range head {
			if !has(before, string(word)) {
				return span{}
			}
		}
		if !opens(line) || bytes.Contains(line, []byte("=>")) || bytes.Contains(line, []byte("function")) {
			return span{}
		}
	}
	return span{from, end}
}

func has(words, word string) bool {
	for w := range strings.FieldsSeq(words) {
		if w == word {
			return true
		}
	}
	return false
}

// assigned says that what follows a name gives it a value, or a type.
func assigned(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t")
	if len(rest) < 2 {
		return false
	}
	return rest[0] == '=' && rest[1] != '=' && rest[1] != '~' || rest[0] == ':' && bytes.Contains(rest, []byte(" = "))
}

func opens(line []byte) bool { return ends(line, '{') }

func ends(line []byte, with byte) bool {
	line = bytes.TrimRight(line, " \t")
	return len(line) > 0 && line[len(line)-1] == with
}

func skipBlanks(line []byte, at int) int {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
		at++
	}
	return at
}

func wordEnd(line []byte, at int) int {
	if at < len(line) && (line[at] == '#' || line[at] == '@') {
		at++
	}
	for at < len(line) && isWord(line[at]) {
		at++
	}
	return at
}

func isWord(b byte) bool {
	return b == '_' || b == '$' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= 0x80
}

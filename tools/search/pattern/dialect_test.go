package pattern

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"codehand/tools/search/pattern/patterntest"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, kind string
		offset        int
	}{
		{"(", "syntax", 0}, {"a)", "syntax", 1}, {"a(b", "syntax", 1}, {"[a", "syntax", 0}, {"x[b-a]", "syntax", 3}, {"*a", "syntax", 0}, {"a|*", "syntax", 2}, {`a\`, "syntax", 1},
		{`\y`, "syntax", 0}, {`\x{110000}`, "syntax", 0}, {`\xZ1`, "syntax", 0}, {`\u12`, "syntax", 0}, {"(?P<a", "syntax", 0}, {"(?z)", "syntax", 0}, {"a{3,2}", "syntax", 1}, {"\xff", "syntax", 0},
		{"(?=a)", "look-around", 0}, {"a(?!b)", "look-around", 1}, {"(?<=a)b", "look-around", 0}, {"(?<!a)b", "look-around", 0},
		{`(a)\1`, "back-reference", 3}, {`(?P<n>a)\k<n>`, "back-reference", 8},
		{"a{1001}", "count", 1}, {"(a{100}){11}", "count", 2}, {"a{1,99999999999999999999}", "count", 1},
		{`\p{Klingon}`, "class", 0}, {"[[:nothing:]]", "class", 1}, {`[\pX]`, "class", 1},
		{`\<a`, "word-edge", 0}, {`a\>`, "word-edge", 1}, {`\b{start}`, "word-edge", 0},
		{`a\nb`, "newline", 1}, {"a\nb", "newline", 1}, {`\x0A`, "newline", 0},
		{strings.Repeat("a", maxPattern+1), "too large", maxPattern}, {strings.Repeat("(", 300), "too large", 250}, {`((abcdefghijklmnopqrstu){30}){33}`, "too large", 0}, {"(?:" + strings.Repeat("a|", 3000) + "b){9}", "too large", 0},
	} {
		_, err := New(c.pattern, false, false, false)
		bad, ok := err.(*Error)
		if !ok || bad.Kind != c.kind || bad.Offset != c.offset || bad.Text == "" {
			t.Errorf("%s: got %#v, want %s at %d", c.pattern[:min(len(c.pattern), 80)], err, c.kind, c.offset)
		}
	}
}

func TestDialect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, yes, no string }{
		{"interface{}", "interface{}", "interface"}, {"map[string]struct{}", "mapsstruct{}", "map"}, {"a{,3}", "a{,3}", "aaa"}, {"{a", "{a", "a"}, {"a{2", "a{2", "aa"}, {"x{2}", "xx", "x{2}"},
		{`\x41\u00e9\U0001F600\x{42}`, "Aé😀B", "A"}, {`[a-z&&[^aeiou]]+$`, "b", "e"}, {`^[\w--\d]+$`, "ab", "1"}, {"^[a-c~~b-d]$", "d", "b"}, {"^[a[bc]]$", "c", "d"}, {"[]a]", "]", "b"},
		{"^[^]a]$", "b", "]"}, {"^[a-]$", "-", "b"}, {"^[-a]$", "-", "b"}, {`^[\]]$`, "]", "a"}, {`^[\[[:digit:]]$`, "[", "a"}, {`\101`, "A", "1"},
		{`\p{Greek}`, "α", "a"}, {`\p{sc=Greek}`, "α", "a"}, {`\p{gc=Lu}`, "A", "a"}, {`\p{Uppercase_Letter}`, "A", "a"}, {`\p{^Lu}`, "a", "A"}, {`\P{^Lu}`, "A", "a"}, {`\pL`, "a", "1"},
		{`\p{Alphabetic}`, "ⅷ", "1"}, {`\p{White_Space}`, "\u00a0", "a"}, {`\P{ASCII}`, "é", "e"}, {`(?x) a b # not this` + "\n c", "abc", "a b"}, {`(?i)É`, "é", "e"}, {`(?i)k`, "\u212a", "q"}, {`(?-i:a)`, "a", "A"},
		{`(?U)a+`, "a", "b"}, {`\Qa.b\E+$`, "a.bb", "a.b.b"}, {`\Q`, "", ""}, {`a\Q*\E`, "a*", "a"}, {"foo$", "foo\r", "foo\r\r"}, {`\r$`, "foo\r", "foo"}, {`foo\z`, "foo\r", "foox"}, {`\w`, "é", "-"}, {`(?-u)^\w$`, "e", "é"},
		{`(?-u:\w)é`, "aé", "éé"}, {`\d`, "٣", "a"}, {`(?-u)\d`, "3", "٣"}, {`\bé\b`, "é", "éa"}, {`(?-u)a\b`, "aé", "ab"}, {`a\b`, "a", "aé"}, {"a|b|", "", ""}, {"(?:)", "", ""}, {`\/\-\ `, "/- ", "/-"}, {"a**", "", ""},
		{`(?P<name>a)(?<other>b)`, "ab", "a"}, {"(?i)ß", "ẞ", "ss"}, {`[\x{1F600}-\x{1F64F}]`, "😀", "a"}, {`[a\n]b`, "ab", "b"}, {`(?R)a$`, "a", "b"}, {"^*a", "a", "b"},
	} {
		p, err := New(c.pattern, false, false, false)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		m := NewMatcher(p, func() bool { return false })
		if !m.Match([]byte(c.yes)) {
			t.Errorf("%s does not match %q, want a match", c.pattern, c.yes)
		}
		if c.no != "" && m.Match([]byte(c.no)) {
			t.Errorf("%s matches %q, want no match", c.pattern, c.no)
		}
	}
}

func TestLiteralPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		fold    bool
		yes, no string
	}{{"a.b[0]", false, "xa.b[0]", "aab0"}, {"*(", false, "*(", "("}, {`\n`, false, `\n`, "n"}, {"Straße", true, "STRAẞE", "strasse"}, {"", false, "", "\x00"}} {
		p, err := New(c.text, c.fold, true, false)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		m := NewMatcher(p, func() bool { return false })
		if !m.Match([]byte(c.yes)) || c.text != "" && m.Match([]byte(c.no)) {
			t.Errorf("%q: want a match in %q and none in %q", c.text, c.yes, c.no)
		}
	}
}

// The literals that a pattern needs are in every text that it matches: a search with them finds what a search without finds.
func TestNeedlesLoseNothing(t *testing.T) {
	t.Parallel()
	buf := []byte(patterntest.Awkward())
	for _, pattern := range append([]string{`(?i)task`, `(?i)maske|class`, `(?i)größe|x`, `foo|(?i)class`, `f(o|x)o`, `(foo|todo)+`, `t(od)?o`, `(?i)ıng|ing`, `(?i)İ`, `日本|内核`, `a?class`}, patterntest.Patterns...) {
		with, err := New(pattern, false, false, false)
		if err != nil {
			t.Fatal(err)
		}
		without := *with
		without.need = needles{}
		if got, want := countLines(with, buf), countLines(&without, buf); got != want {
			t.Errorf("%s: %d lines with %d literals, %d without", pattern, got, len(with.need.list), want)
		}
	}
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

func countLines(p *Program, buf []byte) (n int) {
	m := NewMatcher(p, func() bool { return false })
	m.Begin(buf)
	for from := 0; ; n++ {
		_, end, ok := m.Next(buf, from)
		if !ok {
			return n
		}
		from = end + 1
	}
}

// In valid text, with classes of ASCII, the threads find what Go's regexp finds.
func FuzzThreads(f *testing.F) {
	for _, p := range patterntest.Patterns {
		f.Add(p, "return foo(x), nil")
	}
	f.Add(`(a|ab)(c|bcd)(d*)`, "abcd")
	f.Add(`(a*)*b?|c`, "aac")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 2000 || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n") {
			return
		}
		tree, _, perr := parseDialect("(?-u)"+pattern, false, false)
		if perr != nil || size(tree) > 2000 {
			return
		}
		p, err := New("(?-u)"+pattern, false, false, false)
		if err != nil {
			return
		}
		if p.word != nil && !isASCII(text) {
			return
		}
		// The tree as text is what Go's own parser makes of it.
		re, err := regexp.Compile(tree.Simplify().String())
		if err != nil {
			return
		}
		m := NewMatcher(p, func() bool { return false })
		got, ok := m.slow().find([]byte(text), 0, false)
		want := re.FindStringIndex(text)
		if ok != (want != nil) || ok && (got.From != want[0] || got.To != want[1]) {
			t.Errorf("%q on %q: threads %v %v, regexp %v", pattern, text, got, ok, want)
		}
		m.Begin([]byte(text))
		if _, _, found := m.Next([]byte(text), 0); text != "" && found != ok {
			t.Errorf("%q on %q: with literals %v, threads %v", pattern, text, found, ok)
		}
	})
}

// Any pattern gives a program or an Error, and a program ends.
func FuzzDialect(f *testing.F) {
	for _, p := range patterntest.Patterns {
		f.Add(p, false)
	}
	f.Fuzz(func(t *testing.T, pattern string, multiline bool) {
		p, err := New(pattern, true, false, multiline)
		if err != nil {
			if bad, ok := err.(*Error); !ok || bad.Offset < 0 || bad.Offset > len(pattern) || bad.Kind == "" {
				t.Fatalf("%q: got %#v, want an Error with a place in the pattern", pattern, err)
			}
			return
		}
		if len(p.code.insts) > 4*maxProgram {
			t.Fatalf("%q: %d instructions, want about %d at most", pattern, len(p.code.insts), maxProgram)
		}
		NewMatcher(p, func() bool { return false }).Match([]byte("return é \xff x"))
	})
}

// A query ends in the middle of a text when it is told to, however long the text and however large the pattern.
func TestThreadsStop(t *testing.T) {
	t.Parallel()
	p, err := New(`(?:\w{100}-){9}é`, false, false, false)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	v := NewMatcher(p, func() bool { asked++; return asked == 3 }).slow()
	if _, ok := v.find([]byte(strings.Repeat("a", 1<<20)), 0, false); ok || asked != 3 {
		t.Errorf("asked %d times whether to stop, match %v; want to stop at the third", asked, ok)
	}
}

// BenchmarkCompile has what a query costs before its first file: patterns of at most 200 bytes, which must take less than
// a millisecond each, and the worst that a longer one can do.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct{ name, pattern string }{
		{"literal", "ErrUnexpectedEOF"}, {"words", `\w{5}\s+\w{5}\s+\w{5}\s+\w{5}\s+\w{5}`}, {"count", `\w{1000}`}, {"counts", strings.Repeat(`\w{1,1000}`, 9)}, {"manycounts", strings.Repeat(`\w{990}`, 10)},
		{"nested", `(((\w{10}){10}){10}\s){1}`}, {"properties", strings.Repeat(`\pL\PN\p{Greek}`, 13)}, {"sets200", strings.Repeat(`[\w--\d]`, 25)}, {"operators200", "[" + strings.Repeat(`\pL&&`, 39) + "a]"},
		{"negated200", strings.Repeat(`[^\W]`, 33)}, {"unicode200", strings.Repeat("[日-語]", 22)}, {"alternatives200", strings.Repeat("é|日|ß|", 20)}, {"classes10000", strings.Repeat(`\PL`, 3333)}, {"operators10000", "[" + strings.Repeat(`\pL&&`, 1900) + "a]"},
	} {
		for _, fold := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/fold=%v", c.name, fold), func(b *testing.B) {
				for b.Loop() {
					if _, err := New(c.pattern, fold, false, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package search

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"codehand/tools/search/pattern/patterntest"
)

func encode16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestMarksAndUTF16(t *testing.T) {
	t.Parallel()
	text := "erste\r\nzweite größe 日本 😀\nletzte ohne Ende"
	long := strings.Repeat("日本 😀 x\n", 40000) + text
	d := newDir(t, map[string]string{
		"bom": utf8Mark + text, "le": encode16(binary.LittleEndian, text), "be": encode16(binary.BigEndian, text),
		"long": encode16(binary.LittleEndian, long), "odd": encode16(binary.LittleEndian, text) + "x",
	})
	for _, c := range []struct {
		pattern, name string
		line          int
		text          string
	}{
		{"^erste$", "bom", 1, "erste"}, {"^erste$", "le", 1, "erste"}, {"^erste$", "be", 1, "erste"},
		{"GRÖSSE|größe", "le", 2, "zweite größe 日本 😀"}, {"😀$", "be", 2, "zweite größe 日本 😀"},
		{"ohne Ende$", "long", 40003, "letzte ohne Ende"}, {"ohne", "odd", 3, "letzte ohne Ende\ufffd"},
	} {
		a := d.grep(t, GrepQuery{Pattern: c.pattern, Mode: Lines, Scope: Scope{Place: d.at(c.name)}})
		if len(a.Files) != 1 {
			t.Errorf("%s in %s: nothing, want line %d", c.pattern, c.name, c.line)
			continue
		}
		lines := a.Files[0].Lines
		if last := lines[len(lines)-1]; last.N != c.line || last.Text != c.text {
			t.Errorf("%s in %s: got %d:%q, want %d:%q", c.pattern, c.name, last.N, last.Text, c.line, c.text)
		}
	}
}

// The decoder is given one byte at a time, and half surrogate pairs.
func TestUTF16ReaderPieces(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\x00\x3d\xd8\x00\xde" + "b\x00": "a😀b", "\x3d\xd8": "\ufffd", "\x3d\xd8a\x00": "\ufffda", "\x00\xde\x3d\xd8\x3d\xd8\x00\xde": "\ufffd\ufffd😀", "a": "\ufffd", "": "",
	} {
		u := &utf16Reader{r: iotest.OneByteReader(strings.NewReader(in)), order: binary.LittleEndian}
		var got strings.Builder
		buf := make([]byte, 3)
		for {
			n, err := u.Read(buf)
			got.Write(buf[:n])
			if err != nil {
				break
			}
		}
		if got.String() != want {
			t.Errorf("%q: got %q, want %q", in, got.String(), want)
		}
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	text := "x\ny\n"
	late := strings.Repeat("y\n", binaryHead) // longer than the head that is looked at
	d := newDir(t, map[string]string{
		"text": text, "early": "x\n\x00\nx\n", "silent": "y\x00\n", "late": "x\n" + late + "x\nx\x00x\nx\n", "big": "\x00" + strings.Repeat(late, 3),
	})
	a := d.grep(t, GrepQuery{Pattern: "x", Mode: Count})
	if got := d.names(a.Files); !slices.Equal(got, []string{"late", "text"}) || a.Files[0].NLines != 2 {
		t.Errorf("got %v with %d lines, want late with the lines before the NUL, and text", got, a.Files[0].NLines)
	}
	c := a.Coverage
	if !slices.Equal(c.Binary.Paths, []string{d.path + "/big", d.path + "/early"}) || !slices.Equal(c.Partial.Paths, []string{d.path + "/late"}) || !c.Complete {
		t.Errorf("binary %v, partial %v; want the large one and the one with a match, and late", c.Binary.Paths, c.Partial.Paths)
	}
	for name, want := range map[string]FileHits{"early": {NLines: 2, Binary: true}, "late": {NLines: 4}} {
		a := d.grep(t, GrepQuery{Pattern: "x", Mode: Lines, Scope: Scope{Place: d.at(name)}})
		if len(a.Files) != 1 || a.Files[0].NLines != want.NLines || a.Files[0].Binary != want.Binary || want.Binary && len(a.Files[0].Lines) > 0 {
			t.Errorf("%s as place: got %s, want %+v", name, show(a), want)
		}
	}
	if a := d.grep(t, GrepQuery{Pattern: "x", Mode: Lines, Scope: Scope{Place: d.at("silent")}}); len(a.Files) != 0 {
		t.Errorf("a binary file without a match: got %s, want nothing", show(a))
	}
}

func TestMultiline(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": "one\ntwo three\r\nfour\n\nfive six\nfive"})
	for _, c := range []struct {
		pattern string
		want    string // number, text and spans of each line
		count   int
	}{
		{`one\ntwo`, "1 one [{0 3}]; 2 two three [{0 3}]; ", 1},
		{`three\s+four`, "2 two three [{4 9}]; 3 four [{0 4}]; ", 1},
		{`^$`, "4  []; ", 1},
		{`three$`, "2 two three [{4 9}]; ", 1},
		{`five`, "5 five six [{0 4}]; 6 five [{0 4}]; ", 2},
		{`f\w`, "3 four [{0 2}]; 5 five six [{0 2}]; 6 five [{0 2}]; ", 3},
		{`(?s)\Aone.*six`, "1 one [{0 3}]; 2 two three [{0 9}]; 3 four [{0 4}]; 4  []; 5 five six [{0 8}]; ", 1},
		{`six\nfive\z`, "5 five six [{5 8}]; 6 five [{0 4}]; ", 1},
		{`e|s`, "1 one [{2 3}]; 2 two three [{7 8} {8 9}]; 5 five six [{3 4} {5 6}]; 6 five [{3 4}]; ", 6},
		{`\n`, "1 one []; 2 two three []; 3 four []; 4  []; 5 five six []; ", 5},
		{`nothing\n`, "", 0},
	} {
		q := GrepQuery{Pattern: c.pattern, Multiline: true, Spans: true, Mode: Lines}
		var got strings.Builder
		for _, f := range d.grep(t, q).Files {
			for _, l := range f.Lines {
				fmt.Fprintf(&got, "%d %s %v; ", l.N, l.Text, l.Spans)
			}
		}
		if got.String() != c.want {
			t.Errorf("%s: got %s, want %s", c.pattern, &got, c.want)
		}
		q.Mode = Count
		if a := d.grep(t, q); a.NLines != c.count {
			t.Errorf("%s: %d matches, want %d", c.pattern, a.NLines, c.count)
		}
		q.Mode = FilesOnly
		if a := d.grep(t, q); (a.NFiles == 1) != (c.count > 0) {
			t.Errorf("%s: %d files, want one if there is a match", c.pattern, a.NFiles)
		}
	}
	a := d.grep(t, GrepQuery{Pattern: `three\s+four`, Multiline: true, Mode: Lines, Before: 1, After: 1})
	if got := len(a.Files[0].Lines); got != 4 || !a.Files[0].Lines[0].Context || !a.Files[0].Lines[3].Context {
		t.Errorf("with context: got %s, want lines 1 to 4, the outer ones as context", show(a))
	}
}

func TestMultilineEqualsRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	d := newDir(t, map[string]string{"awkward": patterntest.Awkward()})
	sources(t, d, "bufio", "unicode/utf8")
	for _, p := range []string{
		`\{\n\s+return`, `(?s)func \w+\(.{0,200}?\n\}`, `foo\n`, `\n\n`, `é\r?\n\w`, `(?i)k\s+s`, `\w+\n\W+\n`, `[^a]{300}`, `\bif\b[^{]*\{\s*return\b`, `^x`, `class\n^.`, `\p{L}+\n\p{L}+`,
	} {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			want := rgLines(rg.run(d.path, "-U", "--multiline-dotall", "-n", "--no-heading", "-a", "--color=never", "-e", p, "."))
			got := ourLines(d, d.grep(t, GrepQuery{Pattern: p, Multiline: true, Mode: Lines, MaxLine: 1 << 30, MaxText: 1 << 30}))
			diffLines(t, p, got, want)
		})
	}
}

// What matches in a line is what ripgrep -o prints.
func TestSpansEqualRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	d := newDir(t, map[string]string{"awkward": patterntest.Awkward()})
	sources(t, d, "bufio")
	for _, p := range []string{
		`(?i)task|class`, `\w+`, `\bif\b`, `a|ab|abc`, `(a|ab)(c|bcd)?`, `x*`, `[^a]+`, `\p{L}{2,3}?`, `é.`, `\S+`, `k|s`, `(?i)k|s`, `\b\w`, `\W+`, `".*?"`, `\d+`, `(foo)+`, `\Bo`,
	} {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			if (strings.Contains(p, `\B`) || strings.HasPrefix(p, `\b`)) && rg.version < 15 {
				t.Skip("older ripgreps lose the context of word edges between matches; install ripgrep 15")
			}
			a := d.grep(t, GrepQuery{Pattern: p, Mode: Lines, MaxLine: 1 << 30, MaxText: 1 << 30, Spans: true})
			var got []string
			for _, f := range a.Files {
				for _, l := range f.Lines {
					for _, s := range l.Spans {
						got = append(got, fmt.Sprintf("%s:%d:%s", d.rel(f.Path), l.N, l.Text[s.From:s.To]))
					}
				}
			}
			slices.Sort(got)
			want := slices.DeleteFunc(rgLines(rg.run(d.path, "-o", "-n", "--no-heading", "-a", "--color=never", "-e", p, ".")), func(l string) bool {
				return strings.HasSuffix(l, ":") && strings.Count(l, ":") == 2 // a CR alone, of which nothing is shown
			})
			diffLines(t, p, got, want)
		})
	}
}

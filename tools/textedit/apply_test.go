package textedit

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A change of one edit, as most tables here have it.
type applyCase struct {
	name    string
	content string
	edit    Edit
	want    string
	done    Done // Lines are compared only if given
}

func runApply(t *testing.T, cases []applyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := []byte(c.content)
			got, report, err := Apply(before, []Edit{c.edit})
			if err != nil {
				t.Fatalf("Apply: %v, want it to work", err)
			}
			if string(got) != c.want {
				t.Errorf("content\n got %q\nwant %q", got, c.want)
			}
			if string(before) != c.content {
				t.Errorf("Apply changed its argument in place: %q", before)
			}
			done := report.Edits[0]
			if want := max(1, c.done.Replacements); done.Replacements != want {
				t.Errorf("Replacements %d, want %d", done.Replacements, want)
			}
			if done.Level != c.done.Level {
				t.Errorf("Level %d, want %d", done.Level, c.done.Level)
			}
			if c.done.Changed != 0 && done.Changed != c.done.Changed {
				t.Errorf("Changed %d, want %d", done.Changed, c.done.Changed)
			}
			if c.done.Lines != nil && !slices.Equal(done.Lines, c.done.Lines) {
				t.Errorf("Lines %v, want %v", done.Lines, c.done.Lines)
			}
		})
	}
}

func TestApplyExact(t *testing.T) {
	runApply(t, []applyCase{
		{"middle", "one two three", Edit{Old: "two", New: "2"}, "one 2 three", Done{Changed: 3, Lines: []int{1}}},
		{"whole", "x", Edit{Old: "x", New: "y"}, "y", Done{Changed: 1}},
		{"at the start", "ab", Edit{Old: "a", New: "c"}, "cb", Done{}},
		{"at the end", "ab", Edit{Old: "b", New: "c"}, "ac", Done{}},
		{"to nothing", "a b", Edit{Old: " b", New: ""}, "a", Done{}},
		{"to everything", "x", Edit{Old: "x", New: ""}, "", Done{}},
		{"equal strings", "x", Edit{Old: "x", New: "x"}, "x", Done{}},
		{"patterns of other languages are text", "a.b a+b", Edit{Old: "a+b", New: `$& \1 %s $1 ${x} \n`}, `a.b $& \1 %s $1 ${x} \n`, Done{}},
		{"a dot is a dot", "axb a.b", Edit{Old: "a.b", New: "_"}, "axb _", Done{}},
		{"no trimming", " a\na", Edit{Old: " a", New: "b"}, "b\na", Done{}},
		{"all", "a b a b a", Edit{Old: "a", New: "aa", All: true}, "aa b aa b aa", Done{Replacements: 3, Changed: 3}},
		{"all once", "a b", Edit{Old: "a", New: "c", All: true}, "c b", Done{}},
		{"all left to right", "aaaaa", Edit{Old: "aa", New: "b", All: true}, "bba", Done{Replacements: 2, Changed: 4}},
		{"all does not look at what it wrote", "ab", Edit{Old: "a", New: "aba", All: true}, "abab", Done{}},
		{"expected one", "a b", Edit{Old: "a", New: "c", Expect: 1}, "c b", Done{}},
		{"expected many implies all", "a b a", Edit{Old: "a", New: "c", Expect: 2}, "c b c", Done{Replacements: 2}},
		{"expected and all", "a b a", Edit{Old: "a", New: "c", Expect: 2, All: true}, "c b c", Done{Replacements: 2}},
		{"lines of the new content", "x\na\na\n", Edit{Old: "a\n", New: "1\n2\n", All: true}, "x\n1\n2\n1\n2\n",
			Done{Replacements: 2, Lines: []int{2, 4}}},
		{"at most 20 lines", strings.Repeat("a\n", 30), Edit{Old: "a", New: "b", All: true}, strings.Repeat("b\n", 30),
			Done{Replacements: 30, Lines: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}}},
		{"mark hidden and kept", "\xef\xbb\xbfa", Edit{Old: "a", New: "b"}, "\xef\xbb\xbfb", Done{Changed: 1}},
		{"mark is not line text", "\xef\xbb\xbfa\nb", Edit{Old: "a", New: ""}, "\xef\xbb\xbfb", Done{}},
		{"a mark in the middle is text", "a\ufeffb", Edit{Old: "\ufeff", New: ""}, "ab", Done{Changed: 3}},
		{"other bytes kept", "\xff\xe9a\x80", Edit{Old: "a", New: "b"}, "\xff\xe9b\x80", Done{}},
		{"other bytes can be matched by other bytes", "a\xffb", Edit{Old: "\xff", New: "-"}, "a-b", Done{}},
		{"characters", "naïve 日本", Edit{Old: "ïve 日", New: "é"}, "naé本", Done{Changed: 8}},
		{"a NUL behind the head is text", strings.Repeat("a", binaryHead) + "\x00b", Edit{Old: "\x00b", New: "c"},
			strings.Repeat("a", binaryHead) + "c", Done{}},
		{"fill an empty file", "", Edit{New: "a\r\nb"}, "a\r\nb", Done{}},
		{"fill a blank file", " \r\n\t", Edit{New: "a\n"}, "a\n", Done{Changed: 4, Lines: []int{1}}},
		{"fill behind the mark", "\xef\xbb\xbf\n", Edit{New: "a"}, "\xef\xbb\xbfa", Done{Changed: 1}},
	})
}

func TestApplyLineEnds(t *testing.T) {
	runApply(t, []applyCase{
		{"one line of a CRLF file", "a\r\nb\r\n", Edit{Old: "a", New: "c"}, "c\r\nb\r\n", Done{Changed: 1}},
		{"lines of a CRLF file", "a\r\nb\r\nc\r\n", Edit{Old: "a\nb", New: "x\ny"}, "x\r\ny\r\nc\r\n", Done{Changed: 4}},
		{"sent with CRLF", "a\nb\n", Edit{Old: "a\r\nb", New: "x\r\ny"}, "x\ny\n", Done{}},
		{"mixed", "a\r\nb\nc\r\n", Edit{Old: "a\nb\nc\n", New: "1\n2\n3\n"}, "1\r\n2\n3\r\n", Done{Changed: 8}},
		{"mixed, the other way", "a\nb\r\nc\n", Edit{Old: "a\nb\nc\n", New: "1\n2\n3\n"}, "1\n2\r\n3\n", Done{}},
		{"more lines than before take the last", "a\nb\r\nc\n", Edit{Old: "a\nb\n", New: "1\n2\n3\n4\n"}, "1\n2\r\n3\r\n4\r\nc\n", Done{}},
		{"fewer lines than before", "a\nb\r\nc\n", Edit{Old: "a\nb\n", New: "1\n"}, "1\nc\n", Done{}},
		{"a span without takes that of its line", "a\nb\r\nc\n", Edit{Old: "b", New: "1\n2"}, "a\n1\r\n2\r\nc\n", Done{}},
		{"a last line takes that of the line before", "a\r\nb", Edit{Old: "b", New: "1\n2"}, "a\r\n1\r\n2", Done{}},
		{"a last line of a mixed file", "a\r\nb\nc", Edit{Old: "c", New: "1\n2"}, "a\r\nb\n1\n2", Done{}},
		{"a file without any", "a", Edit{Old: "a", New: "1\r\n2"}, "1\n2", Done{}},
		{"begins with a line end", "a\r\nb", Edit{Old: "\nb", New: "c"}, "ac", Done{Changed: 3}},
		{"ends with a line end", "a\r\nb", Edit{Old: "a\n", New: "c"}, "cb", Done{Changed: 3}},
		{"only a line end", "a\r\nb", Edit{Old: "\n", New: " "}, "a b", Done{Changed: 2}},
		{"only line ends, all", "a\r\nb\nc", Edit{Old: "\n", New: "\n\n", All: true}, "a\r\n\r\nb\n\nc", Done{Replacements: 2, Changed: 3}},
		{"final newline stays", "a\nb\n", Edit{Old: "b", New: "c"}, "a\nc\n", Done{}},
		{"final newline matched", "a\nb\n", Edit{Old: "b\n", New: "c"}, "a\nc", Done{}},
		{"a lone CR is a character", "a\rb\r\n", Edit{Old: "a\rb", New: "c\rd"}, "c\rd\r\n", Done{}},
		{"a lone CR before a pair", "a\r\r\nb", Edit{Old: "a\r", New: "c"}, "c\r\nb", Done{Changed: 2}},
		{"a lone CR before a pair, with it", "a\r\r\nb", Edit{Old: "a\r\r\nb", New: "c"}, "c", Done{Changed: 5}},
		{"all in a mixed file", "x\r\ny\nx\ny\n", Edit{Old: "x\ny", New: "1\n2\n3", All: true}, "1\r\n2\r\n3\n1\n2\n3\n",
			Done{Replacements: 2, Lines: []int{1, 4}}},
		{"all on a last line", "p\r\na a", Edit{Old: "a", New: "1\n2", All: true}, "p\r\n1\r\n2 1\r\n2", Done{Replacements: 2}},
		{"behind the mark", "\xef\xbb\xbfa\r\nb\n", Edit{Old: "a\nb\n", New: "1\n2\n"}, "\xef\xbb\xbf1\r\n2\n", Done{}},
	})
}

func TestApplyDeletesWholeLines(t *testing.T) {
	runApply(t, []applyCase{
		{"a line", "a\nb\nc\n", Edit{Old: "b"}, "a\nc\n", Done{Changed: 2, Lines: []int{2}}},
		{"the first line", "a\nb\n", Edit{Old: "a"}, "b\n", Done{}},
		{"lines", "a\nb\nc\nd\n", Edit{Old: "b\nc"}, "a\nd\n", Done{}},
		{"CRLF", "a\r\nb\r\nc\r\n", Edit{Old: "b"}, "a\r\nc\r\n", Done{Changed: 3}},
		{"all", "x\na\nx\nb\nx\n", Edit{Old: "x", All: true}, "a\nb\n", Done{Replacements: 3, Changed: 6}},
		{"per occurrence", "x\nax\nx b\n", Edit{Old: "x", All: true}, "a\n b\n", Done{Replacements: 3, Changed: 4}},
		{"not within a line", "a b\nc\n", Edit{Old: " b"}, "a\nc\n", Done{}},
		{"not if something follows", "b c\nd\n", Edit{Old: "b"}, " c\nd\n", Done{}},
		{"not the last line", "a\nb", Edit{Old: "b"}, "a\n", Done{}},
		{"not if the match has the line end", "a\nb\n\nc\n", Edit{Old: "b\n"}, "a\n\nc\n", Done{Changed: 2}},
		{"not for other new text", "a\nb\nc\n", Edit{Old: "b", New: " "}, "a\n \nc\n", Done{}},
		{"not what the next match begins with", "\n\nx\nx\n", Edit{Old: "\nx", All: true}, "\n\n", Done{Replacements: 2, Changed: 4}},
		{"a lone CR is no line end", "b\rc\n", Edit{Old: "b"}, "\rc\n", Done{}},
		{"a lone CR before the pair is in the way", "b\r\r\nc", Edit{Old: "b"}, "\r\r\nc", Done{}},
		{"after a lone CR is no line start", "a\rb\nc", Edit{Old: "b"}, "a\r\nc", Done{}},
		{"by quotes", "“x”\nc\n", Edit{Old: `"x"`}, "c\n", Done{Level: Quotes, Changed: 8}},
	})
}

func TestApplyLevels(t *testing.T) {
	runApply(t, []applyCase{
		{"exact first", "“a” \"a\"", Edit{Old: `"a"`, New: "b"}, "“a” b", Done{}},
		{"straight for curly", "say “hi” now", Edit{Old: `"hi"`, New: `"bye"`}, "say “bye” now", Done{Level: Quotes, Changed: 8}},
		{"curly for straight", `say "hi" now`, Edit{Old: "“hi”", New: "“bye”"}, `say "bye" now`, Done{Level: Quotes}},
		{"curly for other curly", "‘a’", Edit{Old: "’a‘", New: "’b‘"}, "‘b’", Done{Level: Quotes}},
		{"primes", "5′ 3″", Edit{Old: `5' 3"`, New: `6' 4"`}, "6′ 4″", Done{Level: Quotes}},
		{"counted on the folded text", "‘a’ 'a’ ‘a'", Edit{Old: "'a'", New: "b", All: true}, "b b b", Done{Level: Quotes, Replacements: 3}},
		{"all keep their own spelling", "“a” ″a\"", Edit{Old: "“a″", New: "“b″", All: true}, "“b” ″b\"", Done{Level: Quotes, Replacements: 2}},
		{"over lines", "“a\r\nb”\n", Edit{Old: "\"a\nb\"", New: "\"c\nd\""}, "“c\r\nd”\n", Done{Level: Quotes}},
		{"around other bytes", "\xff“a”\xe2\x80", Edit{Old: `"a"`, New: "b"}, "\xffb\xe2\x80", Done{Level: Quotes}},
		{"escapes", "naïve", Edit{Old: `na\u00efve`, New: `na\u00efvely`}, "naïvely", Done{Level: Escapes}},
		{"escapes only if exact fails", `na\u00efve`, Edit{Old: `na\u00efve`, New: "x"}, "x", Done{}},
		{"other escapes of new text stay", "é", Edit{Old: `\u00e9`, New: `\u00e9\u00e8\n`}, `é\u00e8\n`, Done{Level: Escapes}},
		{"markers", "a <system> b\r\n\r\nHuman: c", Edit{Old: "<s> b\n\nH: c", New: "</s> b\n\nA: d", Markers: true}, "a </system> b\r\n\r\nAssistant: d",
			Done{Level: Markers}},
		{"markers only if they are not there", "<s> <system>", Edit{Old: "<s>", New: "x", Markers: true}, "x <system>", Done{}},
		{"line ends by escapes", "a\r\nb", Edit{Old: `a\x0d\x0ab`, New: "c"}, "c", Done{Level: Escapes, Changed: 4}},
	})
}

func TestApplyRefuses(t *testing.T) {
	latin := "caf\xe9 \x81" // two bytes that are not UTF-8, of no encoding that can be told
	cases := []struct {
		name    string
		content string
		edits   []Edit
		index   int
		want    error
	}{
		{"UTF-16 of odd length", "\xff\xfea\x00b", []Edit{{Old: "a", New: "b"}}, 0, ErrEncoding},
		{"half a character of UTF-16", "\xfe\xff\x00a\xd8\x3d", []Edit{{Old: "a", New: "b"}}, 0, ErrEncoding},
		{"UTF-32 little", "\xff\xfe\x00\x00a\x00\x00\x00", []Edit{{Old: "a", New: "b"}}, 0, ErrEncoding},
		{"UTF-32 big", "\x00\x00\xfe\xff\x00\x00\x00a", []Edit{{Old: "a", New: "b"}}, 0, ErrEncoding},
		{"a NUL in the head", strings.Repeat("a", binaryHead-1) + "\x00", []Edit{{Old: "a", New: "b"}}, 0, ErrBinary},
		{"fill what is not empty", " x", []Edit{{New: "b"}}, 0, ErrNotEmpty},
		{"fill other bytes", "\xa0", []Edit{{New: "b"}}, 0, ErrNotEmpty},
		{"markers unasked", "<system>", []Edit{{Old: "<s>", New: "<e>"}}, 0, &NotFoundError{}},
		{"foreign characters", latin, []Edit{{Old: "caf", New: "café"}}, 0, ErrMix},
		{"the missing comes before the mix", latin, []Edit{{Old: "tea", New: "thé"}}, 0, &NotFoundError{}},
		{"cascade", "a", []Edit{{Old: "a", New: "bcd"}, {Old: "c", New: "x"}}, 1, ErrCascade},
		{"cascade without the line ends", "a\nb\n", []Edit{{Old: "a", New: "x c y"}, {Old: "c\r\n\n", New: "x"}}, 1, ErrCascade},
		{"cascade of the third", "ab", []Edit{{Old: "a", New: "c"}, {Old: "b", New: "d"}, {Old: "c", New: "e"}}, 2, ErrCascade},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, report, err := Apply([]byte(c.content), c.edits)
			if got != nil || report.Edits != nil {
				t.Errorf("got %q, %v beside an error; want nothing", got, report)
			}
			e, ok := errors.AsType[*EditError](err)
			if !ok {
				t.Fatalf("error %v (%T), want an *EditError", err, err)
			}
			if e.Index != c.index {
				t.Errorf("Index %d, want %d", e.Index, c.index)
			}
			if _, missing := errors.AsType[*NotFoundError](c.want); missing {
				if _, ok := errors.AsType[*NotFoundError](err); !ok {
					t.Errorf("reason %v, want *NotFoundError", e.Err)
				}
			} else if !errors.Is(err, c.want) {
				t.Errorf("reason %v, want %v", e.Err, c.want)
			}
		})
	}
}

func TestApplyMix(t *testing.T) {
	runApply(t, []applyCase{
		{"ASCII is allowed", "caf\xe9", Edit{Old: "caf", New: "coff"}, "coff\xe9", Done{}},
		{"characters of the old text are allowed", "caf\xe9 \xe8 日", Edit{Old: "日", New: "日日"}, "caf\xe9 \xe8 日日", Done{}},
		{"as many characters as other bytes is UTF-8", "\xe9 日 x", Edit{Old: "x", New: "é"}, "\xe9 日 é", Done{}},
		{"a valid file takes all", "x", Edit{Old: "x", New: "é日\U0001f600"}, "é日\U0001f600", Done{}},
	})
}

func TestApplyAmbiguous(t *testing.T) {
	many := make([]int, 0, 20)
	for i := range 20 {
		many = append(many, i+1)
	}
	cases := []struct {
		name, content string
		edit          Edit
		want          AmbiguousError
	}{
		{"two", "a\nb\na", Edit{Old: "a"}, AmbiguousError{Count: 2, Lines: []int{1, 3}, Spelling: "a"}},
		{"overlapping", "aaa", Edit{Old: "aa"}, AmbiguousError{Count: 2, Lines: []int{1, 1}, Overlapping: true, Spelling: "aa"}},
		{"overlapping further on", "abab ababab", Edit{Old: "abab"},
			AmbiguousError{Count: 3, Lines: []int{1, 1, 1}, Overlapping: true, Spelling: "abab"}},
		{"able to overlap, but not doing so", "aa b aa", Edit{Old: "aa"}, AmbiguousError{Count: 2, Lines: []int{1, 1}, Spelling: "aa"}},
		{"touching", "abab", Edit{Old: "ab"}, AmbiguousError{Count: 2, Lines: []int{1, 1}, Spelling: "ab"}},
		{"expecting one", "a a", Edit{Old: "a", Expect: 1}, AmbiguousError{Count: 2, Lines: []int{1, 1}, Spelling: "a"}},
		{"pairs of a CRLF file", "x\r\n\r\n\r\n", Edit{Old: "\n\n"},
			AmbiguousError{Count: 2, Lines: []int{1, 2}, Overlapping: true, Spelling: "\r\n\r\n"}},
		{"pairs of a mixed file", "x\r\n\n\r\n", Edit{Old: "\n\n"},
			AmbiguousError{Count: 2, Lines: []int{1, 2}, Overlapping: true, Spelling: "\r\n\n"}},
		{"by quotes", "‘a’\n'a’", Edit{Old: "'a'"}, AmbiguousError{Count: 2, Lines: []int{1, 2}, Level: Quotes, Spelling: "‘a’"}},
		{"by escapes", "é é", Edit{Old: `\xe9`}, AmbiguousError{Count: 2, Lines: []int{1, 1}, Level: Escapes, Spelling: "é"}},
		{"first 20 lines", strings.Repeat("a\n", 25), Edit{Old: "a"}, AmbiguousError{Count: 25, Lines: many, Spelling: "a"}},
		{"a long spelling is cut", strings.Repeat(strings.Repeat("x", 300)+"\n", 2), Edit{Old: strings.Repeat("x", 300) + "\n"},
			AmbiguousError{Count: 2, Lines: []int{1, 2}, Spelling: strings.Repeat("x", 200) + "…"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Apply([]byte(c.content), []Edit{c.edit})
			e, ok := errors.AsType[*AmbiguousError](err)
			if !ok {
				t.Fatalf("error %v, want an *AmbiguousError", err)
			}
			if e.Count != c.want.Count || e.Overlapping != c.want.Overlapping || e.Level != c.want.Level ||
				e.Spelling != c.want.Spelling || !slices.Equal(e.Lines, c.want.Lines) {
				t.Errorf("got %+v\nwant %+v", *e, c.want)
			}
		})
	}
}

func TestApplyCount(t *testing.T) {
	cases := []struct {
		content string
		edit    Edit
		want    CountError
	}{
		{"a a a", Edit{Old: "a", Expect: 2}, CountError{Want: 2, Got: 3}},
		{"a", Edit{Old: "a", Expect: 2}, CountError{Want: 2, Got: 1}},
		{"a a", Edit{Old: "a", Expect: 1, All: true}, CountError{Want: 1, Got: 2}},
		{"aaa", Edit{Old: "aa", Expect: 2}, CountError{Want: 2, Got: 1}},
	}
	for _, c := range cases {
		_, _, err := Apply([]byte(c.content), []Edit{c.edit})
		if e, ok := errors.AsType[*CountError](err); !ok || *e != c.want {
			t.Errorf("%q, %+v: error %+v, want %+v", c.content, c.edit, err, c.want)
		}
	}
}

func TestApplySeveral(t *testing.T) {
	content := "one\ntwo\nthree\nfour\n"
	got, report, err := Apply([]byte(content), []Edit{
		{Old: "four", New: "4\n4b"},
		{Old: "two", New: "2\n2b\n2c"},
		{Old: "one\n", New: ""},
		{Old: "e", New: "E", All: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "2\n2b\n2c\nthrEE\n4\n4b\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, want := range [][]int{{5}, {1}, {1}, {4, 4}} {
		if !slices.Equal(report.Edits[i].Lines, want) {
			t.Errorf("edit %d: Lines %v, want %v: lines are those of the last content", i, report.Edits[i].Lines, want)
		}
	}

	got, report, err = Apply(nil, []Edit{{New: "a b\n"}, {Old: "z", New: "c"}})
	if e, ok := errors.AsType[*EditError](err); !ok || e.Index != 1 || got != nil || report.Edits != nil {
		t.Errorf("got %q, %v, %v; want nothing but an error at edit 1", got, report, err)
	}
	if same, _, err := Apply([]byte("\x00"), nil); err != nil || string(same) != "\x00" {
		t.Errorf("without edits: %q, %v; want the content", same, err)
	}
}

func TestApplyCascadeNamesTheEdit(t *testing.T) {
	_, _, err := Apply([]byte("a b"), []Edit{{Old: "a", New: "x"}, {Old: "b", New: "a y"}, {Old: "y", New: "z"}})
	e, ok := errors.AsType[*CascadeError](err)
	if !ok || e.By != 1 {
		t.Errorf("error %+v, want a *CascadeError by edit 1", err)
	}
	// Line ends alone are in nearly every text and would refuse nearly every edit.
	if _, _, err := Apply([]byte("a\nb"), []Edit{{Old: "a", New: "x"}, {Old: "\n", New: " "}}); err != nil {
		t.Errorf("an old text of line ends only: %v, want no cascade", err)
	}
}

// What would become too large is not made first: a call of a MiB took 4 GiB of memory.
func TestApplyTooLargeInLittleMemory(t *testing.T) { // not parallel: it counts what the process allocates
	content, add := bytes.Repeat([]byte("a"), 4000), strings.Repeat("x", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := apply(content, []Edit{{Old: "a", New: add, All: true}}, 1<<28)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrTooLarge) || n > 8<<20 {
		t.Errorf("%d bytes were allocated: %v", n, err)
	}
	runtime.ReadMemStats(&before)
	got, _, err := apply(content[:40], []Edit{{Old: "a", New: add, All: true}}, 1<<28)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || n > uint64(len(got))*5/4 {
		t.Errorf("%d bytes were allocated for %d: %v", n, len(got), err)
	}
}

func TestApplyTooLarge(t *testing.T) {
	content := bytes.Repeat([]byte("a"), 100)
	for _, e := range []Edit{{Old: "a", New: "0123456789", All: true}, {Old: string(content), New: strings.Repeat("b", 600)}} {
		if _, _, err := apply(content, []Edit{e}, 500); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%.20q: error %v, want ErrTooLarge", e.Old, err)
		}
	}
	if _, _, err := apply(nil, []Edit{{New: strings.Repeat("b", 600)}}, 500); !errors.Is(err, ErrTooLarge) {
		t.Errorf("fill: error %v, want ErrTooLarge", err)
	}
	if _, _, err := apply(content, []Edit{{Old: "a", New: "bbbb", All: true}}, 500); err != nil {
		t.Errorf("400 of 500 bytes: %v, want no error", err)
	}
	if _, _, err := apply(content, []Edit{{Old: "aa", New: "b", All: true}}, 10); err != nil {
		t.Errorf("a content over the limit that gets shorter: %v, want no error", err)
	}
}

// What could take the product of two lengths must not: each of these would run for hours.
func TestApplyHostile(t *testing.T) {
	long := strings.Repeat("a", 4<<20)
	if _, _, err := Apply([]byte(long), []Edit{{Old: long[:1<<20], New: "b"}}); err == nil {
		t.Error("a run of one letter: no error, want it to be ambiguous")
	} else if e, _ := errors.AsType[*AmbiguousError](err); e.Count != 3<<20+1 {
		t.Errorf("Count %d, want %d", e.Count, 3<<20+1)
	}
	// Each replacement asks for the line end of a line that is 4 MiB long.
	got, _, err := Apply([]byte("x\r\n"+long), []Edit{{Old: "a", New: "\n", All: true}})
	if err != nil || len(got) != 3+2*len(long) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, 3+2*len(long))
	}
	periodic := strings.Repeat(strings.Repeat("ab", 512)+"\r\n", 2048)
	if _, _, err := Apply([]byte(periodic+"\n"), []Edit{{Old: strings.Repeat("ba", 256) + "b\n", New: "b"}}); err == nil {
		t.Error("a periodic text: no error, want it to be ambiguous")
	}
}

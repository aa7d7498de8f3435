package textedit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const goFile = "package a\n\nfunc Alpha(x int) string {\n\tif x > 1 {\n\t\treturn \"alpha\"  \n\t}\n\treturn fmt.Sprint(x)\n}\n"

func TestHint(t *testing.T) {
	cases := []struct{ name, content, old, want string }{
		{"line numbers", goFile, "4\t\tif x > 1 {\n5\t\t\treturn \"alpha\"  ", `Remove the "N<TAB>" prefixes.`},
		{"line numbers with blanks before", goFile, "     3\tfunc Alpha(x int) string {", `Remove the "N<TAB>" prefixes.`},
		{"line numbers with arrows", goFile, "  3→func Alpha(x int) string {", `Remove the "N→" prefixes.`},
		{"a table with numbers has none", "1\tone\n2\ttwo\n", "7\tone hundred", "The nearest lines are:\n1: 1→one"},
		{"white space", goFile, "    if x > 1 {\n        return \"alpha\"\n    }",
			"It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n" +
				"4: →if x > 1 {\n5: →→return \"alpha\"··\n6: →}"},
		{"white space within", "a = b+c\n", "a  =  b + c", "It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n1: a = b+c"},
		{"joined lines", "a(\r\n\tb)\r\n", "a(b)", "It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n1: a(\n2: →b)"},
		// The hint showed what had been sent, and nothing that differs from it.
		{"no line end at the end", "a\nb", "b\n", "It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n2: b\n(no newline at the end)"},
		{"no line end at the end, but white space", "a\nb \n\t", "b\n\n", "It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n2: b·"},
		{"blanks that look like others", "a\u00a0= b", "a = b", "It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n1: a\\u00a0= b"},
		{"case", goFile, "func alpha(X int) String {", "It matches when case is ignored. The file has:\n3: func Alpha(x int) string {"},
		{"case over lines", "Ab\r\nCd\r\nE", "aB\ncD\n", "It matches when case is ignored. The file has:\n1: Ab\n2: Cd"},
		{"case that changes its length", "ⱥⱥ\nX ÄB y", "x äb Y", "It matches when case is ignored. The file has:\n2: X ÄB y"},
		{"nearest", goFile, "return fmt.Sprintln(x, y)", "The nearest lines are:\n7: →return fmt.Sprint(x)"},
		{"nearest lines", goFile, "if x > 2 {\n    return alpha + beta\n}", "The nearest lines are:\n3: func Alpha(x int) string {\n4: →if x > 1 {\n5: →→return \"alpha\"··"},
		{"rare words count more", "the the\nthe of zebra\nthe of and\nof the and\n", "and of the zebras zebra the", "The nearest lines are:\n2: the of zebra"},
		{"nothing in common", goFile, "zebra", ""},
		{"no words", goFile, "((((", ""},
		{"only white space", goFile, "\t\t\t\t", ""},
		{"empty content", "", "a", ""},
		{"letters of another encoding", "x\ncaf\xe9 one\n", "café one", "Line 2 has bytes that are not UTF-8 where " +
			"old_string has letters beyond ASCII; choose text without these."},
		{"other bytes", "caf\xe9 one\n", "caf\ufffd one", "The line holds bytes that are not UTF-8; choose text without them."},
		{"other bytes are shown as U+FFFD", "caf\xe9 one two\n", "one two three", "The nearest lines are:\n1: caf\ufffd one two"},
		{"U+FFFD in a valid file is text", "a \ufffd b", "\ufffd zebra", ""},
		{"the mark is no text", "\xef\xbb\xbfAlpha", "alpha", "It matches when case is ignored. The file has:\n1: Alpha"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Apply([]byte(c.content), []Edit{{Old: c.old, New: "x"}})
			missing, ok := errors.AsType[*NotFoundError](err)
			if !ok {
				t.Fatalf("error %v, want *NotFoundError", err)
			}
			if missing.Hint != c.want {
				t.Errorf("got\n%s\nwant\n%s", missing.Hint, c.want)
			}
		})
	}
}

func TestHintIsBounded(t *testing.T) {
	var content strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&content, "line %d of alpha beta gamma%s\n", i, strings.Repeat(" x", i%7))
	}
	long := strings.Repeat("word ", 5000) + "omega"
	for name, c := range map[string]struct{ content, old string }{
		"many lines":     {content.String(), "alpha\nbeta\n" + strings.Repeat("gamma line\n", 300)},
		"one long line":  {long, "word word omega word"},
		"no line end":    {strings.Repeat("abc ", 3<<20), "abd"},
		"many words":     {content.String(), strings.Repeat(content.String()[:5000], 3) + "!"},
		"ignoring space": {content.String(), strings.ReplaceAll(content.String()[:4000], " ", "  ")},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Apply([]byte(c.content), []Edit{{Old: c.old, New: "x"}})
			missing, ok := errors.AsType[*NotFoundError](err)
			if !ok {
				t.Fatalf("error %v, want *NotFoundError", err)
			}
			lines := strings.Split(missing.Hint, "\n")
			if len(lines) > 1+hintLines {
				t.Errorf("%d lines, want at most %d", len(lines), 1+hintLines)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > maxShown+20 {
					t.Errorf("a line of %d runes, want at most %d: %.80s", n, maxShown, line)
				}
			}
		})
	}
}

func TestChangedBy(t *testing.T) {
	cases := []struct {
		name, content string
		edits         []Edit
		want          NotFoundError
	}{
		{"the edit before", "a b c", []Edit{{Old: "a b", New: "x"}, {Old: "b c", New: "y"}}, NotFoundError{ChangedBy: 1, From: 1, To: 1}},
		{"one of several", "a\nb\nc\nd\n", []Edit{{Old: "a", New: "1"}, {Old: "b\nc", New: "2"}, {Old: "1\n", New: ""}}, NotFoundError{}},
		{"lines as that edit met them", "a\nb\nc\nd\n", []Edit{{Old: "a\n", New: "x\nx\n"}, {Old: "c", New: "2"}, {Old: "b\nc\n", New: "y"}},
			NotFoundError{ChangedBy: 2, From: 3, To: 4}},
		{"never there", "a zebra", []Edit{{Old: "a ", New: "x "}, {Old: "Zebra", New: "y"}},
			NotFoundError{Hint: "It matches when case is ignored. The file has:\n1: a zebra"}},
		{"by quotes", "“a” b", []Edit{{Old: "a", New: "x"}, {Old: `"a"`, New: "y"}}, NotFoundError{ChangedBy: 1, From: 1, To: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Apply([]byte(c.content), c.edits)
			if c.want == (NotFoundError{}) {
				if !errors.Is(err, ErrCascade) {
					t.Fatalf("error %v, want ErrCascade", err)
				}
				return
			}
			missing, ok := errors.AsType[*NotFoundError](err)
			if !ok || *missing != c.want {
				t.Errorf("got %+v (%v), want %+v", missing, err, c.want)
			}
		})
	}
}

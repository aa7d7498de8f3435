package textedit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// hunk is an edit by whole lines.
func hunk(old, now string, under ...string) Edit {
	return Edit{Old: old, New: now, Hunk: &Hunk{Under: under, Insert: old == ""}}
}

func atEnd(e Edit) Edit {
	e.Hunk.AtEnd = true
	return e
}

const twoFuncs = "package p\n\nfunc a() {\n\tx := 1\n\treturn\n}\n\nfunc b() {\n\tx := 1\n\treturn\n}\n"

func TestHunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content string
		edits         []Edit
		want          string
	}{
		{"one", "a\nb\nc\n", []Edit{hunk("b", "2")}, "a\n2\nc\n"},
		{"whole lines only", "ab\nb\nbc\n", []Edit{hunk("b", "2")}, "ab\n2\nbc\n"},
		{"a removed line goes with its end", "a\nb\nc\n", []Edit{hunk("b", "")}, "a\nc\n"},
		{"the last line without an end", "a\nb", []Edit{hunk("b", "2\n3")}, "a\n2\n3"},
		{"in order", "a\nb\na\n", []Edit{hunk("a\nb", "1\nb"), hunk("a", "3")}, "1\nb\n3\n"},
		{"what an earlier hunk wrote is no place", "a\nb\n", []Edit{hunk("a", "b\nb"), hunk("b", "3")}, "b\nb\n3\n"},
		{"under a line", twoFuncs, []Edit{hunk("\tx := 1", "\tx := 2", "func b() {")}, strings.Replace(twoFuncs, "b() {\n\tx := 1", "b() {\n\tx := 2", 1)},
		{"under how a line begins", twoFuncs, []Edit{hunk("\tx := 1", "\tx := 2", "func b(")}, strings.Replace(twoFuncs, "b() {\n\tx := 1", "b() {\n\tx := 2", 1)},
		{"with the line that it is under", twoFuncs, []Edit{hunk("func b() {\n\tx := 1", "func b() {\n\tx := 2", "func b() {")},
			strings.Replace(twoFuncs, "b() {\n\tx := 1", "b() {\n\tx := 2", 1)},
		{"under one line twice", twoFuncs, []Edit{hunk("\tx := 1", "\tx := 2", "func b() {"), hunk("\treturn", "\treturn // b", "func b() {")},
			strings.Replace(twoFuncs, "b() {\n\tx := 1\n\treturn", "b() {\n\tx := 2\n\treturn // b", 1)},
		{"under two lines", "class A:\n  def f\n    x\nclass B:\n  def f\n    x\n", []Edit{hunk("    x", "    y", "class B:", "def f")},
			"class A:\n  def f\n    x\nclass B:\n  def f\n    y\n"},
		{"inserted under a line", "a\nb\n", []Edit{hunk("", "new", "a")}, "a\nnew\nb\n"},
		{"inserted at the end", "a\nb\n", []Edit{hunk("", "new")}, "a\nb\nnew\n"},
		{"inserted behind a last line without an end", "a\nb", []Edit{hunk("", "new")}, "a\nb\nnew"},
		{"inserted into nothing", "", []Edit{hunk("", "new")}, "new\n"},
		{"at the end", "x\ny\nx\n", []Edit{atEnd(hunk("x", "z"))}, "x\ny\nz\n"},
		{"CRLF", "a\r\nb\r\nc\r\n", []Edit{hunk("a\nb", "a\n2\n3"), hunk("", "d")}, "a\r\n2\r\n3\r\nc\r\nd\r\n"},
		{"CRLF, one line", "a\r\nb\r\n", []Edit{hunk("b", "2")}, "a\r\n2\r\n"},
		{"mixed line ends", "a\r\nb\nc\r\n", []Edit{hunk("b\nc", "2\nc")}, "a\r\n2\nc\r\n"},
		{"a mark", "\ufeffa\nb\n", []Edit{hunk("a", "1"), hunk("", "new", "b")}, "\ufeff1\nb\nnew\n"},
		{"quotes", "say “hi”\nno\n", []Edit{hunk("say \"hi\"", "say \"ho\"")}, "say “ho”\nno\n"},
		{"an empty line in between", "a\n\nb\n", []Edit{hunk("a\n\nb", "a\n\n2")}, "a\n\n2\n"},
	} {
		got, report, err := Apply([]byte(c.content), c.edits)
		if err != nil || string(got) != c.want || len(report.Edits) != len(c.edits) {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.name, got, err, c.want)
		}
		wide := utf16le(c.content)
		if got, _, err := Apply(wide, c.edits); c.name != "a mark" && (err != nil || string(got) != string(utf16le(c.want))) {
			t.Errorf("%s, UTF-16:\n got %q, %v\nwant %q", c.name, got, err, utf16le(c.want))
		}
	}
}

func utf16le(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return out
}

func TestHunksRefused(t *testing.T) {
	t.Parallel()
	missing := func(edits ...Edit) *NotFoundError {
		t.Helper()
		_, _, err := Apply([]byte(twoFuncs), edits)
		e, ok := errors.AsType[*NotFoundError](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		return e
	}
	many := func(edits ...Edit) *AmbiguousError {
		t.Helper()
		_, _, err := Apply([]byte(twoFuncs), edits)
		e, ok := errors.AsType[*AmbiguousError](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		return e
	}
	if e := missing(hunk("\treturn 5", "")); e.Line != 0 || e.Under != "" || !strings.Contains(e.Hint, "5: →return") {
		t.Errorf("no such lines: %+v", e)
	}
	if e := missing(hunk("x := 1", "")); e.Line != 0 {
		t.Errorf("part of a line: %+v", e)
	}
	if e := missing(hunk("\tx := 1", "", "func c() {")); e.Under != "func c() {" || e.Hint == "" {
		t.Errorf("no such line: %+v", e)
	}
	if e := missing(hunk("\treturn", "\treturn 1", "func b() {"), hunk("package p", "package q")); e.Line != 1 || !e.Before {
		t.Errorf("before: %+v", e)
	}
	if e := missing(atEnd(hunk("package p", ""))); e.Line != 1 || e.Before {
		t.Errorf("not at the end: %+v", e)
	}
	if e := missing(hunk("\tx := 1", "\tx := 2", "func b() {"), hunk("func b() {\n\tx := 1", "")); e.ChangedBy != 1 {
		t.Errorf("changed by a hunk: %+v", e)
	}
	if e := many(hunk("\tx := 1", "")); !slices.Equal(e.Lines, []int{4, 9}) || e.Under != "" {
		t.Errorf("twice: %+v", e)
	}
	if e := many(hunk("\tx := 1", "", "func")); !slices.Equal(e.Lines, []int{4, 9}) || e.Under != "func" {
		t.Errorf("twice, as the line above: %+v", e)
	}
	if e := many(hunk("", "new", "}")); e.Under != "}" {
		t.Errorf("inserted, but where: %+v", e)
	}
}

package patch

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const text = `*** Begin Patch
*** Update File: a.go
*** Move to: b/a.go
@@ type T struct {
@@ func (t T) f() {
 	x := 1
-	y := 2
+	y := 3

 	z := 4
@@
+last
*** End of File

*** Add File: c.txt
+hello
+
++ plus
*** Delete File: d d.txt
*** Update File: e
-one
+two
*** End Patch
`
	want := []Section{
		{Path: "a.go", Action: Update, To: "b/a.go", Hunks: []Hunk{
			{Line: 4, Under: []string{"type T struct {", "func (t T) f() {"},
				Old: []string{"\tx := 1", "\ty := 2", "", "\tz := 4"}, New: []string{"\tx := 1", "\ty := 3", "", "\tz := 4"}},
			{Line: 11, Old: nil, New: []string{"last"}, AtEnd: true},
		}},
		{Path: "c.txt", Action: Add, Content: "hello\n\n+ plus\n"},
		{Path: "d d.txt", Action: Delete},
		{Path: "e", Action: Update, Hunks: []Hunk{{Line: 21, Old: []string{"one"}, New: []string{"two"}}}},
	}
	for name, form := range map[string]string{
		"as it is":        text,
		"CRLF":            strings.ReplaceAll(text, "\n", "\r\n"),
		"here-document":   "<<'EOF'\n" + text + "EOF",
		"shell":           "\n" + text,
		"fence":           "```diff\n" + text + "```\n",
		"with a command":  "apply_patch <<\"EOF\"\n" + text + "EOF\n",
		"trailing blanks": strings.ReplaceAll(text, "*** End Patch", "*** End Patch  "),
	} {
		got, err := Parse(form)
		if name == "here-document" || name == "fence" || name == "with a command" {
			for i := range got {
				for n := range got[i].Hunks {
					got[i].Hunks[n].Line = want[i].Hunks[n].Line
				}
			}
		}
		if err != nil || !same(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func same(a, b []Section) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if len(x.Hunks) != len(y.Hunks) {
			return false
		}
		for n := range x.Hunks {
			h, o := x.Hunks[n], y.Hunks[n]
			if strings.Join(h.Old, "\n") != strings.Join(o.Old, "\n") || strings.Join(h.New, "\n") != strings.Join(o.New, "\n") ||
				strings.Join(h.Under, "\n") != strings.Join(o.Under, "\n") || h.AtEnd != o.AtEnd || h.Line != o.Line {
				return false
			}
		}
		x.Hunks, y.Hunks = nil, nil
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// What separates sections is no context, and numbers of a unified diff are none either.
func TestParseLenient(t *testing.T) {
	t.Parallel()
	files, err := Parse("*** Begin Patch\n*** Update File:a\n\n@@ -1,2 +1,2 @@ func f() {\n a\n-b\n+c\n\n\n*** Delete File: x\n*** End Patch")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	h := files[0].Hunks[0]
	if files[0].Path != "a" || strings.Join(h.Old, "|") != "a|b" || strings.Join(h.New, "|") != "a|c" || strings.Join(h.Under, "|") != "func f() {" {
		t.Errorf("got %+v", files[0])
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               `the patch must begin with a line "*** Begin Patch"`,
		"--- a\n+++ b\n":                 `the patch must begin with a line "*** Begin Patch"`,
		"*** Begin Patch\n":              `the patch has no line "*** End Patch": it may have been cut off; send all of it`,
		"*** Begin Patch\n*** End Patch": "the patch names no file",
		"*** Begin Patch\n*** Update File: a\n@@\n-b\n+c":                             `the patch has no line "*** End Patch": it may have been cut off; send all of it`,
		"*** Begin Patch\n*** Add File: a\nb\n*** End Patch":                          "line 3 of the patch: each line of a new file must begin with +",
		"*** Begin Patch\n*** Update File: a\n*** End Patch":                          "line 3 of the patch: the update of a has no hunk: give lines that begin with a space, - or +",
		"*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch":                    "line 3 of the patch: the hunk changes nothing: it has no line that begins with - or +",
		"*** Begin Patch\n*** Update File: a\n@@ x\n \n+c\n*** End Patch":             "line 3 of the patch: an empty line alone does not say where the hunk belongs; add lines around it",
		"*** Begin Patch\n*** Update File: a\n@@ x\n-b\nc\n*** End Patch":             `line 5 of the patch: "c" must begin with a space (context), - (removed) or + (added)`,
		"*** Begin Patch\n*** Update File: a\n-b\n*** End of File\n+c\n*** End Patch": "line 5 of the patch: a hunk must begin with @@",
		"*** Begin Patch\n*** Update File: \n-b\n*** End Patch":                       "line 2 of the patch: the path is missing",
		"*** Begin Patch\n*** Update File: a\n*** Move to:\n-b\n*** End Patch":        "line 3 of the patch: the path is missing",
		"*** Begin Patch\nb\n*** End Patch":                                           `line 2 of the patch: "b" is no header; there are "*** Update File: PATH", "*** Add File: PATH" and "*** Delete File: PATH"`,
		"*** Begin Patch\n*** Delete File: a\n*** End Patch\nmore":                    `line 4 of the patch: nothing may follow "*** End Patch"`,
	} {
		if files, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %+v, %v, want %s", text, files, err, want)
		}
	}
}

// Whatever the text, there is a patch with something to do or an error, and no line of a hunk is lost.
func FuzzParse(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ x\n a\n-b\n+c\n*** End of File\n*** Add File: c\n+d\n*** Delete File: e\n*** End Patch")
	f.Add("<<'EOF'\n*** Begin Patch\n*** Add File: c\n*** End Patch\nEOF")
	f.Fuzz(func(t *testing.T, text string) {
		files, err := Parse(text)
		if (err == nil) != (len(files) > 0) {
			t.Fatalf("%d files, %v", len(files), err)
		}
		plus, minus := 0, 0
		for _, file := range files {
			if file.Path == "" || file.Action == 0 || file.Action == Update && len(file.Hunks) == 0 && file.To == "" ||
				file.Action != Update && (len(file.Hunks) > 0 || file.To != "") || file.Action != Add && file.Content != "" {
				t.Fatalf("the file is %+v", file)
			}
			plus += strings.Count(file.Content, "\n")
			for _, h := range file.Hunks {
				if len(h.Old)+len(h.New) == 0 || h.Line < 1 {
					t.Fatalf("the hunk is %+v", h)
				}
				plus, minus = plus+len(h.New), minus+len(h.Old)
			}
		}
		if lines := strings.Count(text, "\n") + 1; plus > lines || minus > lines {
			t.Fatalf("%d lines give %d and %d", lines, plus, minus)
		}
	})
}

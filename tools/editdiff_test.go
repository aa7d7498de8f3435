package tools

import (
	"fmt"
	"strings"
	"testing"

	"codehand/tools/editing"
)

// What an edit made different is in the part of a result for programs, where a client finds it for the person; the model
// reads a line.
func TestDiffForThePerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\ntwo\nthree\n")
	r.ok("read_file", `{"file_path":"a"}`)
	at := r.Space.Cwd()
	for _, c := range []struct{ name, args, text, diff string }{
		{
			"multi_edit", `{"dry_run":true,"edits":[{"file_path":"a","old_string":"two","new_string":"2"},{"file_path":"b","old_string":"","new_string":"new\n"}]}`,
			"Dry run: all 2 edits would apply.\nWould edit a:2 (+1 -1)\nWould create b (1 line)",
			"--- $/a\n+++ $/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n--- /dev/null\n+++ $/b\n@@ -0,0 +1 @@\n+new",
		},
		{"edit_file", `{"file_path":"a","old_string":"two","new_string":"2"}`, "Edited a:2 (+1 -1)", "--- $/a\n+++ $/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"},
		{"write_file", `{"file_path":"c","content":"x\ny\n"}`, "Created c (2 lines)", "--- /dev/null\n+++ $/c\n@@ -0,0 +1,2 @@\n+x\n+y"},
		{"write_file", `{"file_path":"c","content":"x\ny\n"}`, "No change: c already has this content.", ""},
		{"write_file", `{"file_path":"c","content":"x\n"}`, "Wrote c (1 line; +0 -1)", "--- $/c\n+++ $/c\n@@ -1,2 +1 @@\n x\n-y"},
		{"undo_change", `{"file_path":"c"}`, "", "--- $/c\n+++ $/c\n@@ -1 +1,2 @@\n x\n+y"},
	} {
		res, _ := r.do(c.name, c.args)
		if c.text != "" && res.Text != c.text {
			t.Errorf("%s: the model reads\n%s", c.name, res.Text)
		}
		if want := strings.ReplaceAll(c.diff, "$", at); res.Meta.Diff != want {
			t.Errorf("%s: the person sees\n%s\nwant\n%s", c.name, res.Meta.Diff, want)
		}
	}

	// However much changed, it is no longer than a diff may be, and no line end in a name makes a line of it.
	var edits []string
	for i := range 20 {
		name := fmt.Sprintf("f%d", i)
		r.write(name, "old\n"+strings.Repeat("line\n", 300))
		r.ok("read_file", fmt.Sprintf(`{"file_path":%q}`, name))
		edits = append(edits, fmt.Sprintf(`{"file_path":%q,"old_string":"old\n","new_string":%q}`, name, strings.Repeat("new\n", 100)))
	}
	res, _ := r.do("multi_edit", `{"edits":[`+strings.Join(edits, ",")+`]}`)
	if n := len(res.Meta.Diff); n < 7_000 || n > editing.MaxDiff || !strings.HasPrefix(res.Meta.Diff, "--- "+at+"/f") || strings.Contains(res.Text, "+new") {
		t.Errorf("%d bytes: %.300s", n, res.Meta.Diff)
	}
}

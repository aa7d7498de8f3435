package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/tool"
)

func TestMultiEdit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\ntwo\n")
	r.write("b", "three\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("read_file", `{"file_path":"b"}`)
	args := `{"file_path":"a","edits":[{"old_string":"one","new_string":"1"},{"file_path":"./b","old_string":"three","new_string":"3"},` +
		`{"old_string":"two","new_string":"2"},{"file_path":"new/c","old_string":"","new_string":"c\n"}]%s}`
	same(t, r.ok("multi_edit", fmt.Sprintf(args, `,"dry_run":true`)),
		"Dry run: all 4 edits would apply.\nWould edit a:1,2 (+2 -2)\nWould edit b:1 (+1 -1)\nWould create new/c (1 line)")
	r.holds("a", "one\ntwo\n")
	same(t, r.ok("multi_edit", fmt.Sprintf(args, "")), "Edited a:1,2 (+2 -2)\nEdited b:1 (+1 -1)\nCreated new/c (1 line)")
	r.holds("a", "1\n2\n")
	r.holds("b", "3\n")
	r.holds("new/c", "c\n")
}

// One edit that fails leaves every file as it is, and each file says what is wrong with it.
func TestMultiEditNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"a", "b", "c"} {
		r.write(name, "one\none\n")
	}
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("read_file", `{"file_path":"b"}`)
	text := r.fails(tool.StringNotFound, "multi_edit", `{"edits":[{"file_path":"a","old_string":"zzz","new_string":"1"},{"file_path":"b","old_string":"one","new_string":"1"},`+
		`{"file_path":"c","old_string":"one","new_string":"1"}]}`)
	for _, want := range []string{
		"STRING_NOT_FOUND: Edit 1: String to replace not found in file.\n", "\nMULTIPLE_MATCHES: Edit 2: old_string occurs 2 times in b: lines 1, 2.", "\nFILE_NOT_READ: File has not been read yet: $WORK/c.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	r.holds("a", "one\none\n")
	r.holds("b", "one\none\n")
}

// Of many failing edits ten are told, and what was not looked at is not passed over in silence.
func TestMultiEditManyFail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var edits []string
	for i := range 15 {
		name := fmt.Sprintf("f%02d", i)
		r.write(name, "one\n")
		r.ok("read_file", `{"file_path":"`+name+`"}`)
		edits = append(edits, fmt.Sprintf(`{"file_path":"%s","old_string":"zzz","new_string":"1"}`, name))
	}
	for _, dry := range []string{"", `,"dry_run":true`} {
		text := r.fails(tool.StringNotFound, "multi_edit", `{"edits":[`+strings.Join(edits, ",")+`]`+dry+`}`)
		if n := strings.Count(text, "STRING_NOT_FOUND: "); n != 10 || !strings.Contains(text, "Edit 10: ") || !strings.HasSuffix(text, "\n(5 more files were not looked at.)") {
			t.Errorf("%d are told:\n%s", n, text)
		}
	}
	edits = edits[:10]
	if text := r.fails(tool.StringNotFound, "multi_edit", `{"edits":[`+strings.Join(edits, ",")+`]}`); strings.Contains(text, "not looked at") {
		t.Errorf("all ten are told, and more is said: %s", text)
	}
}

// Where the answer has no room for what changed in the files, its brief form says of each that it must be read again.
func TestMultiEditBrief(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b", "c"} {
		r.write(name, "one\n")
		r.ok("read_file", `{"file_path":"`+name+`"}`)
	}
	r.write("a", "foreign\n")
	r.write("c", "foreign\n")
	var err error
	for _, tl := range All(Engines{}) {
		if tl.Spec.Name == "multi_edit" {
			call, bad := tl.Bind(r.State, json.RawMessage(`{"edits":[{"file_path":"a","old_string":"one","new_string":"1"},`+
				`{"file_path":"b","old_string":"zzz","new_string":"1"},{"file_path":"c","old_string":"one","new_string":"1"}]}`))
			if bad != nil {
				t.Fatal(bad)
			}
			_, err = call.Run(t.Context(), r.Env(call))
		}
	}
	refusal, ok := errors.AsType[*tool.Refusal](err)
	if !ok {
		t.Fatal(err)
	}
	read := " has been modified since read, either by the user or by a linter. The change is too long to show here. Read it again before attempting to write it."
	want := filepath.Join(r.dir, "a") + read + "\nSTRING_NOT_FOUND: Edit 2: String to replace not found in file.\nString: zzz\nFILE_CHANGED: " + filepath.Join(r.dir, "c") + read
	if refusal.Brief != want {
		t.Errorf("got  %s\nwant %s", refusal.Brief, want)
	}
}

// A file that is in the way of a new one is named by its edit.
func TestMultiEditInTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "one\n")
	text := r.fails(tool.FileExists, "multi_edit", `{"edits":[{"file_path":"new","old_string":"","new_string":"x"},{"file_path":"f","old_string":"","new_string":"x"}]}`)
	if !strings.Contains(text, "Edit 2: Cannot create new file") {
		t.Error(text)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "new")); err == nil {
		t.Error("the other file was made")
	}
}

func TestMultiEditRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "one\ntwo\nthree\n")
	r.ok("read_file", `{"file_path":"f"}`)
	for _, c := range []struct {
		code tool.Code
		args string
		want string
	}{
		{tool.InputInvalid, `{"edits":[]}`, `"edits"`},
		{tool.InputInvalid, `{"file_path":"f","edits":[{"old_string":"` + strings.Repeat("x", 1<<20+1) + `","new_string":"y"}]}`, `Edit 1: "old_string" must have at most 1 MiB`},
		{tool.InputInvalid, `{"edits":[{"old_string":"a","new_string":"b"}]}`, `"file_path" is required`},
		{tool.InputInvalid, `{"file_path":"f","edits":[{"old_string":"one","new_string":"b","version":"000000000000"},{"old_string":"two","new_string":"b","version":"000000000001"}]}`, `"version" of edit 2`},
		{tool.NoChange, `{"file_path":"f","edits":[{"old_string":"one","new_string":"b"},{"old_string":"a","new_string":"a"}]}`, `Edit 2: No changes to make`},
		{tool.OutsideRoots, `{"edits":[{"file_path":"f","old_string":"one","new_string":"b"},{"file_path":"/etc/hostname","old_string":"a","new_string":"b"}]}`, `/etc/hostname is outside`},
		{tool.StringNotFound, `{"file_path":"f","edits":[{"old_string":"one\ntwo","new_string":"X"},{"old_string":"two\nthree","new_string":"Y"}]}`,
			"Edit 2: String to replace not found in file. Edit 1 may have changed it.\nConflicts: edits 1 and 2 overlap at lines 2-3."},
		{tool.Cascade, `{"file_path":"f","edits":[{"old_string":"one","new_string":"uno dos"},{"old_string":"uno","new_string":"X"}]}`,
			"Edit 2: Cannot edit file: old_string is a substring of a new_string from a previous edit.\nConflicts: edit 2 depends on edit 1. Make one edit of the two."},
		{tool.CountMismatch, `{"file_path":"f","edits":[{"old_string":"one","new_string":"1"},{"old_string":"two","new_string":"2","expected_replacements":3}]}`, "Edit 2: Expected 3 replacements but found 1."},
		{tool.FileExists, `{"file_path":"f","edits":[{"old_string":"one","new_string":"1"},{"old_string":"","new_string":"2"}]}`, "Edit 2: Cannot create new file"},
		{tool.FileNotFound, `{"file_path":"missing","edits":[{"old_string":"one","new_string":"1"}]}`, "File does not exist: $WORK/missing."},
	} {
		if text := r.fails(c.code, "multi_edit", c.args); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nhas no %q", c.args, text, c.want)
		}
	}
	r.holds("f", "one\ntwo\nthree\n")
}

// A rename over 30 files was refused, after all of it was written down: 20 were the most, which no text said.
func TestMultiEditManyFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var many []string
	for i := range 100 {
		name := fmt.Sprintf("f%d", i)
		r.write(name, "old\n")
		many = append(many, `{"file_path":"`+name+`","old_string":"old","new_string":"new"}`)
		r.ok("read_file", `{"file_path":"`+name+`"}`)
	}
	r.ok("multi_edit", `{"edits":[`+strings.Join(many, ",")+`]}`)
	r.holds("f0", "new\n")
	r.holds("f99", "new\n")
}

// A dry run said that edits would apply which a rule denies: it only reads, so no rule of changes is asked.
func TestMultiEditDryRunDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Edit(closed.txt)")
	r.write("closed.txt", "a\n")
	r.write("open.txt", "a\n")
	r.ok("read_file", `{"file_path":"closed.txt"}`)
	r.ok("read_file", `{"file_path":"open.txt"}`)
	edits := `{"dry_run":true,"edits":[{"file_path":"open.txt","old_string":"a","new_string":"b"},{"file_path":"%s","old_string":"a","new_string":"b"}]}`
	text := r.ok("multi_edit", fmt.Sprintf(edits, "closed.txt"))
	if want := "Dry run: all 2 edits fit, but a permission rule denies changes of $WORK/closed.txt.\n"; !strings.HasPrefix(text, want) {
		t.Error(text)
	}
	if err := os.Symlink("closed.txt", filepath.Join(r.dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	text = r.ok("multi_edit", fmt.Sprintf(edits, "link.txt"))
	if want := "Dry run: all 2 edits fit, but a permission rule denies changes of $WORK/link.txt.\n"; !strings.HasPrefix(text, want) {
		t.Error(text)
	}
	r.holds("open.txt", "a\n")
}

// Edits that come to what the file has already were told as done.
func TestMultiEditWithoutChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "a\r\nb\r\n")
	r.write("b", "b\n")
	r.ok("read_file", `{"file_path":"a"}`)
	r.ok("read_file", `{"file_path":"b"}`)
	const noChange = `{"file_path":"a","old_string":"a\r\nb\r\n","new_string":"a\nb\n"}`
	same(t, r.ok("multi_edit", `{"edits":[`+noChange+`]}`), "No change: a already has this content.")
	same(t, r.ok("multi_edit", `{"edits":[`+noChange+`,{"file_path":"b","old_string":"b","new_string":"c"}]}`),
		"No change: a already has this content.\nEdited b:1 (+1 -1)")
	r.holds("a", "a\r\nb\r\n")
}

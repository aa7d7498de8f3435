package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/tool"
)

// patchArgs are the arguments of a patch with these lines between its first and its last.
func patchArgs(lines ...string) string {
	text := "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
	b, _ := json.Marshal(map[string]string{"patch": text})
	return string(b)
}

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\ntwo\nthree\n")
	r.write("b", "x\ny\n")
	r.write("c", "gone\nsoon\n")
	for _, name := range []string{"a", "b", "c"} {
		r.ok("read_file", `{"file_path":"`+name+`"}`)
	}
	args := patchArgs("*** Update File: a", "@@ one", "-two", "+2", "*** Update File: ./b", "*** Move to: new/b", "@@",
		" x", "-y", "+z", "*** Delete File: c", "*** Add File: d", "+d")
	same(t, r.ok("apply_patch", args), "Edited a:2 (+1 -1)\nMoved b:2 to new/b (+1 -1)\nDeleted c (2 lines)\nCreated d (1 line)")
	r.holds("a", "one\n2\nthree\n")
	r.holds("new/b", "x\nz\n")
	r.holds("d", "d\n")
	for _, name := range []string{"b", "c"} {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	// What a session has moved it may edit, and one undo takes all of it back.
	same(t, r.ok("edit_file", `{"file_path":"new/b","old_string":"z","new_string":"zz"}`), "Edited new/b:2 (+1 -1)")
	r.ok("undo_change", `{"file_path":"new/b"}`)
	r.ok("undo_change", whole(r.lastChange("a")))
	r.holds("a", "one\ntwo\nthree\n")
	r.holds("b", "x\ny\n")
	r.holds("c", "gone\nsoon\n")
	for _, name := range []string{"new/b", "d"} {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
}

// A hunk that does not fit leaves every file as it is, and each file says what is wrong with it.
func TestApplyPatchNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		r.write(name, "one\nif x {\n\tone\n}\n")
		if name != "c" {
			r.ok("read_file", `{"file_path":"`+name+`"}`)
		}
	}
	text := r.fails(tool.StringNotFound, "apply_patch", patchArgs("*** Update File: a", "@@", "-one", "+1", "@@", "-  one",
		"+  1", "*** Delete File: c", "*** Update File: b", "*** Move to: b2", "@@ if y {", "-one", "+1",
		"*** Delete File: d", "*** Add File: e", "+e"))
	same(t, text, "STRING_NOT_FOUND: Hunk 2 of $WORK/a: its lines (context and removed ones) are not in the file.\n"+
		"Lines:   one\nIt matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n1: one\n"+
		"FILE_NOT_READ: File has not been read yet: $WORK/c. Read it first.\n"+
		"STRING_NOT_FOUND: Hunk 1 of $WORK/b: no line is like if y {. Use a line of the file behind @@.\nThe nearest lines are:\n2: if x {")
	for _, name := range []string{"a", "b", "c", "d"} {
		r.holds(name, "one\nif x {\n\tone\n}\n")
	}
	if _, err := os.Lstat(filepath.Join(r.dir, "e")); !os.IsNotExist(err) {
		t.Errorf("e was made: %v", err)
	}
}

// A line of a hunk that is only the beginning of one in the file was said to match when white space is ignored.
func TestApplyPatchPartOfLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "x\n\tfive = 5 // RFC 5\ny\n")
	r.ok("read_file", `{"file_path":"a"}`)
	text := r.fails(tool.StringNotFound, "apply_patch", patchArgs("*** Update File: a", "@@", "-\tfive  = 5", "+\tsix = 6"))
	same(t, text, "STRING_NOT_FOUND: Hunk 1 of $WORK/a: its lines (context and removed ones) are not in the file.\n"+
		"Lines: \tfive  = 5\nIt is there as part of longer lines, and a hunk has whole lines. The file has (→ is a tab, "+
		"· a space at the end of a line):\n2: →five = 5 // RFC 5")
	r.write("b", "xfive=5\nfive = 5\n")
	r.ok("read_file", `{"file_path":"b"}`)
	text = r.fails(tool.StringNotFound, "apply_patch", patchArgs("*** Update File: b", "@@", "-five  = 5", "+six = 6"))
	if !strings.Contains(text, "It matches when white space is ignored.") {
		t.Error(text)
	}
	r.write("c", strings.Repeat("ab a ", 200_000)+"\n") // each place is looked at once, or this takes hours
	r.ok("read_file", `{"file_path":"c","limit":1}`)
	text = r.fails(tool.StringNotFound, "apply_patch", patchArgs("*** Update File: c", "@@", "-a", "+b"))
	if !strings.Contains(text, "It is there as part of longer lines") {
		t.Errorf("%.300s", text)
	}
}

// A link is not removed by the name of what it leads to.
func TestApplyPatchLink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a", "one\n")
	r.ok("read_file", `{"file_path":"a"}`)
	if err := os.Symlink("a", filepath.Join(r.dir, "l")); err != nil {
		t.Skip("no links here: ", err)
	}
	r.fails(tool.NotRegular, "apply_patch", patchArgs("*** Delete File: l"))
	r.fails(tool.NotRegular, "apply_patch", patchArgs("*** Update File: l", "*** Move to: m"))
	r.holds("a", "one\n")
	same(t, r.ok("apply_patch", patchArgs("*** Update File: l", "-one", "+two")), "Edited l:1 (+1 -1)")
	r.holds("a", "two\n")
}

// Every path of a patch is judged, also where it stands only in the text.
func TestApplyPatchTargets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, err := applyPatch.Bind(r.State, json.RawMessage(patchArgs("*** Update File: a", "*** Move to: sub/b", "*** Add File: c",
		"+c", "*** Delete File: d")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, target := range c.Targets {
		got = append(got, strings.TrimPrefix(target.Value, r.dir+"/"))
	}
	if strings.Join(got, " ") != "a sub/b c d" {
		t.Errorf("the targets are %q", got)
	}
}

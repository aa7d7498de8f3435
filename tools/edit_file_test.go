package tools

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"codehand/tools/tool"
)

func TestEditFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, args, after, want string }{
		{"one", "a\nb\nc\n", `"old_string":"b","new_string":"X"`, "a\nX\nc\n",
			"Edited f:2 (+1 -1)"},
		{"all", "a\na\n", `"old_string":"a","new_string":"b","replace_all":true`, "b\nb\n",
			"Edited f:1,2 (+2 -2)"},
		{"expected", "a\na\n", `"old_string":"a","new_string":"b","expected_replacements":2`, "b\nb\n",
			"Edited f:1,2 (+2 -2)"},
		{"quotes", "x := “hi”\n", `"old_string":"\"hi\"","new_string":"\"bye\""`, "x := “bye”\n",
			"Edited f:1 (+1 -1) (matched via quote normalization)\n@@ -1 +1 @@\n-x := “hi”\n+x := “bye”"},
		{"crlf kept", "a\r\nb\r\n", `"old_string":"a\nb","new_string":"c\nd"`, "c\r\nd\r\n",
			"Edited f:1 (+2 -2)"},
		{"escapes hidden", "a\x1bb\n", `"old_string":"b","new_string":"c"`, "a\x1bc\n",
			"Edited f:1 (+1 -1)"},
		{"escapes hidden", "“a”\x1bb\n", `"old_string":"\"a\"","new_string":"\"c\""`, "“c”\x1bb\n",
			"Edited f:1 (+1 -1) (matched via quote normalization)\n@@ -1 +1 @@\n-“a”\\x1bb\n+“c”\\x1bb"},
		{"lines around are not named", "a\nb\nc\n", `"old_string":"a\nb\nc\n","new_string":"a\nb\nX\nc\n"`, "a\nb\nX\nc\n", "Edited f:3 (+1 -0)"},
		{"a line is removed", "a\nb\nc\n", `"old_string":"b","new_string":""`, "a\nc\n", "Edited f:2 (+0 -1)"},
		{"several in a line", "a a\nb\na\n", `"old_string":"a","new_string":"X","replace_all":true`, "X X\nb\nX\n", "Edited f:1,3 (3 replacements, +2 -2)"},
		{"more lines than are named", strings.Repeat("a\n", 21), `"old_string":"a","new_string":"X","replace_all":true`, strings.Repeat("X\n", 21),
			"Edited f:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,… (21 replacements, +21 -21)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("f", c.before)
			r.ok("read_file", `{"file_path":"f"}`)
			same(t, r.ok("edit_file", `{"file_path":"f",`+c.args+`}`), c.want)
			r.holds("f", c.after)
		})
	}
}

func TestEditFileCreates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	same(t, r.ok("edit_file", `{"file_path":"d/new","old_string":"","new_string":"a\n"}`), "Created d/new (1 line)")
	r.holds("d/new", "a\n")
	r.write("full", "x\n")
	text := r.fails(tool.FileExists, "edit_file", `{"file_path":"full","old_string":"","new_string":"a"}`)
	if !strings.HasPrefix(text, "FILE_EXISTS: Cannot create new file - file already exists.") {
		t.Error(text)
	}
	r.write("blank", " \n\n")
	r.fails(tool.FileNotRead, "edit_file", `{"file_path":"blank","old_string":"","new_string":"a\n"}`)
	r.ok("read_file", `{"file_path":"blank"}`)
	r.ok("edit_file", `{"file_path":"blank","old_string":"","new_string":"a\n"}`)
	r.holds("blank", "a\n")
}

func TestEditFileRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a one\nb one\n")
	r.write("unread", "x\n")
	r.write("latin", "caf\xe9 na\xefve\n")
	r.write("bytes", "caf\xe9 \x81\n")
	r.write("bin", "a\x00b")
	r.write("d/g", "x")
	r.ok("read_file", `{"file_path":"f"}`)
	r.ok("read_file", `{"file_path":"latin"}`)
	r.ok("read_file", `{"file_path":"bytes"}`)
	r.write("changed", "x\n")
	r.ok("read_file", `{"file_path":"changed"}`)
	r.write("changed", "y\n")
	r.write("book.ipynb", `{"cells":[]}`)
	r.write("huge", "")
	if err := os.Truncate(filepath.Join(r.dir, "huge"), 1<<30+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code   tool.Code
		number int
		args   string
		want   string
	}{
		{tool.InputInvalid, 0, `{"file_path":"f","old_string":"` + strings.Repeat("x", 1<<20+1) + `","new_string":"y"}`, `"old_string" must have at most 1 MiB`},
		{tool.InputInvalid, 0, `{"file_path":"f","old_string":"a"}`, `"new_string" is required`},
		{tool.InputInvalid, 0, `{"file_path":"f","old_string":"a","new_string":"b","expected_replacements":0}`, `expected_replacements`},
		{tool.InputInvalid, 0, `{"file_path":"f","old_string":"a one","new_string":"b","version":"1"}`, `"version"`},
		{tool.NoChange, 1, `{"file_path":"missing","old_string":"a","new_string":"a"}`, "No changes to make: old_string and new_string are exactly the same."},
		{tool.OutsideRoots, 0, `{"file_path":"/etc/hostname","old_string":"a","new_string":"b"}`, "is outside"},
		{tool.BinaryFile, 0, `{"file_path":"bin","old_string":"a","new_string":"b"}`, "binary"},
		{tool.IsDirectory, 0, `{"file_path":"d","old_string":"a","new_string":"b"}`, "is a directory"},
		{tool.FileExists, 3, `{"file_path":"f","old_string":"","new_string":"b"}`, "Cannot create new file - file already exists."},
		{tool.FileNotFound, 4, `{"file_path":"missing","old_string":"a","new_string":"b"}`, "File does not exist: $WORK/missing. Current directory: $WORK."},
		{tool.Notebook, 5, `{"file_path":"book.ipynb","old_string":"a","new_string":"b"}`, "notebook_edit"},
		{tool.FileNotRead, 6, `{"file_path":"unread","old_string":"x","new_string":"b"}`, "File has not been read yet: $WORK/unread. Read it first."},
		{tool.FileChanged, 7, `{"file_path":"changed","old_string":"x","new_string":"b"}`, "has been modified since read"},
		{tool.TooLarge, 10, `{"file_path":"huge","old_string":"x","new_string":"b"}`, "File is too large to edit (1.0 GB). Maximum editable file size is 1 GiB."},
		{tool.StringNotFound, 8, `{"file_path":"f","old_string":"zzz","new_string":"b"}`, "String to replace not found in file.\nString: zzz"},
		{tool.MultipleMatches, 9, `{"file_path":"f","old_string":"one","new_string":"b"}`, "old_string occurs 2 times in f: lines 1, 2. Add lines around the one you mean, or set replace_all to change all."},
		{tool.CountMismatch, 13, `{"file_path":"f","old_string":"one","new_string":"b","expected_replacements":3}`, "Expected 3 replacements but found 2."},
		{tool.EncodingMix, 12, `{"file_path":"latin","old_string":"caf","new_string":"ж"}`, "Windows-1252, which has no"},
		{tool.EncodingMix, 12, `{"file_path":"latin","old_string":"caf","new_string":"ž"}`, "looks like Windows-1252"},
		{tool.EncodingMix, 12, `{"file_path":"bytes","old_string":"caf","new_string":"ž"}`, "not UTF-8"},
	} {
		call, err := editFile.Bind(r.State, json.RawMessage(c.args))
		if err == nil {
			_, err = call.Run(t.Context(), r.Env(call))
		}
		refusal, ok := err.(*tool.Refusal)
		if !ok {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		text := strings.ReplaceAll(refusal.Text, r.dir, "$WORK")
		if refusal.Code != c.code || refusal.Number != c.number || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s (%d) %s\nwant %s (%d) with %q", c.args, refusal.Code, refusal.Number, text, c.code, c.number, c.want)
		}
	}
	r.holds("f", "a one\nb one\n")
	r.holds("unread", "x\n")
}

// A call that was refused because the file changed succeeds when it is repeated: the answer has shown the change.
func TestEditFileChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\nb\nc\n")
	r.ok("read_file", `{"file_path":"f"}`)
	r.write("f", "a\nb\nc\nd\n")
	edit := `{"file_path":"f","old_string":"b","new_string":"X"}`
	text := r.fails(tool.FileChanged, "edit_file", edit)
	same(t, text, "FILE_CHANGED: $WORK/f has been modified since read, either by the user or by a linter. The change is below and counts as read. Repeat the call, adjusted to it if needed.\n"+
		"@@ -1,3 +1,4 @@\n a\n b\n c\n+d")
	r.holds("f", "a\nb\nc\nd\n")
	r.ok("edit_file", edit)
	r.holds("f", "a\nX\nc\nd\n")
	// Too much to show: nothing counts as read.
	r.write("f", strings.Repeat("another line\n", 2000))
	for range 2 {
		text = r.fails(tool.FileChanged, "edit_file", edit)
		same(t, text, "FILE_CHANGED: $WORK/f has been modified since read, either by the user or by a linter. The change is too large to show. Read it again before attempting to write it.")
	}
}

// What a diff cannot show once counted as read, and what was not held once counted as too large.
func TestEditFileChangeNotShown(t *testing.T) {
	t.Parallel()
	const head = "FILE_CHANGED: $WORK/f has been modified since read, either by the user or by a linter. "
	r := newRig(t)
	r.write("f", "MARK caf\xe9\nx\n")
	r.ok("read_file", `{"file_path":"f"}`)
	r.write("f", "MARK caf\xe8\nx\n")
	for _, call := range []string{"edit_file", "write_file", "edit_file"} {
		args := `{"file_path":"f","old_string":"MARK","new_string":"DONE"}`
		if call == "write_file" {
			args = `{"file_path":"f","content":"mine\n"}`
		}
		same(t, r.fails(tool.FileChanged, call, args), head+"The change cannot be shown exactly: it is in bytes that are not UTF-8. Read it again before attempting to write it.")
	}
	r.ok("read_file", `{"file_path":"f"}`)
	r.ok("edit_file", `{"file_path":"f","old_string":"MARK","new_string":"DONE"}`)
	r.holds("f", "DONE caf\xe8\nx\n")
	for literal, real := range map[string]string{`\x1b`: "\x1b", `\u202e`: "\u202e"} { // each looks like the other
		r.write("f", "MARK "+literal+"\n")
		r.ok("read_file", `{"file_path":"f"}`)
		r.write("f", "MARK "+real+"\n")
		for range 2 {
			same(t, r.fails(tool.FileChanged, "write_file", `{"file_path":"f","content":"mine\n"}`),
				head+"The change cannot be shown exactly: it is between special characters and the escapes that stand for them. Read it again before attempting to write it.")
		}
	}
	r.write("f", strings.Repeat("a line\n", 2000))
	same(t, r.fails(tool.FileChanged, "edit_file", `{"file_path":"f","old_string":"MARK","new_string":"DONE","version":"0123456789ab"}`),
		"FILE_CHANGED: $WORK/f does not have version 0123456789ab now. The change cannot be shown: the old content was not kept. Read it again before attempting to write it.")
}

// A call with a version was told to repeat itself, which fails for ever, and that another program had changed the file.
// Only the session itself had, more often than it keeps versions.
func TestEditFileVersionAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const edits = 18 // one more than a session may make with one version
	var content strings.Builder
	for i := range edits {
		fmt.Fprintf(&content, "line %02d a\n", i)
	}
	r.write("f", content.String())
	r.ok("read_file", `{"file_path":"f"}`)
	edit := func(i int, version string) string {
		return fmt.Sprintf(`{"file_path":"f","old_string":"line %02d a","new_string":"line %02d b","version":"%s"}`, i, i, version)
	}
	first := fmt.Sprintf("%x", sha256.Sum256([]byte(content.String())))[:12]
	for i := range edits - 1 {
		r.ok("edit_file", edit(i, first))
	}
	text := r.fails(tool.FileChanged, "edit_file", edit(edits-1, first))
	head := "FILE_CHANGED: $WORK/f does not have version " + first + " now. The change is below and counts as read. Repeat the call with version "
	now, ok := strings.CutPrefix(text, head)
	if !ok {
		t.Fatalf("got %s", text)
	}
	r.fails(tool.FileChanged, "edit_file", edit(edits-1, first))
	r.ok("edit_file", edit(edits-1, now[:12]))
	r.holds("f", strings.ReplaceAll(content.String(), "a\n", "b\n"))
}

func TestEditFileDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\n")
	r.ok("read_file", `{"file_path":"f"}`)
	if err := os.Remove(filepath.Join(r.dir, "f")); err != nil {
		t.Fatal(err)
	}
	text := r.fails(tool.FileNotFound, "edit_file", `{"file_path":"f","old_string":"a","new_string":"b"}`)
	same(t, text, "FILE_NOT_FOUND: File does not exist: $WORK/f. Current directory: $WORK. It was deleted after you read it.")
}

// Several edits of one turn are sent with the same version; each finds what the one before has written.
func TestEditFileVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.Modern = true
	r.write("f", "a\nb\n")
	r.ok("edit_file", `{"file_path":"f","old_string":"a","new_string":"1","version":"911169ddaaf1p"}`)
	r.ok("edit_file", `{"file_path":"f","old_string":"b","new_string":"2","version":"911169ddaaf1p"}`)
	r.holds("f", "1\n2\n")
}

func TestEditFileRelaxed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.EditRelaxed = true
	r.write("f", "a\nb\n")
	r.ok("edit_file", `{"file_path":"f","old_string":"a","new_string":"1"}`)
	r.write("f", "a\nb\nc\n")
	// What the session did not read is shown, and counts as read but for what stands around it.
	same(t, r.ok("edit_file", `{"file_path":"f","old_string":"c","new_string":"2"}`), "Edited f:3 (+1 -1)\nAll that differs from what you read:\n@@ -1,2 +1,3 @@\n-1\n+a\n b\n+2")
	r.holds("f", "a\nb\n2\n")
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"x"}`)
}

// Edits of different lines that are sent at the same time are all there at the end.
func TestEditFileParallel(t *testing.T) {
	t.Parallel()
	const n = 20
	r := newRig(t)
	var before, after strings.Builder
	for i := range n {
		before.WriteString(strings.Repeat("a", i+1) + ";\n")
		after.WriteString(strings.Repeat("b", i+1) + ";\n")
	}
	r.write("f", before.String())
	r.ok("read_file", `{"file_path":"f"}`)
	calls := make([]tool.Call, n)
	envs := make([]tool.Env, n)
	for i := range n {
		args, _ := json.Marshal(map[string]string{"file_path": "f", "old_string": "\n" + strings.Repeat("a", i+1) + ";", "new_string": "\n" + strings.Repeat("b", i+1) + ";"})
		if i == 0 {
			args = []byte(`{"file_path":"f","old_string":"a;\naa;","new_string":"b;\naa;"}`)
		}
		call, err := editFile.Bind(r.State, args)
		if err != nil {
			t.Fatal(err)
		}
		calls[i], envs[i] = call, r.Env(call)
	}
	var all sync.WaitGroup
	if _, err := calls[0].Run(t.Context(), envs[0]); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < n; i++ {
		all.Go(func() {
			if _, err := calls[i].Run(t.Context(), envs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r.holds("f", after.String())
}

// The answer once showed nothing of an edit beside a line that is longer than a whole diff may be.
func TestEditFileBesideLongLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a.txt", strings.Repeat("x", 9000)+"\n“old”\n")
	r.ok("read_file", `{"file_path":"a.txt"}`)
	same(t, r.ok("edit_file", `{"file_path":"a.txt","old_string":"\"old\"","new_string":"new"}`), "Edited a.txt:2 (+1 -1) (matched via quote normalization)\n"+
		"@@ -1,2 +1,2 @@\n "+strings.Repeat("x", 500)+"... (truncated, 8500 more characters)\n-“old”\n+new")
	r.write("a.txt", strings.Repeat("x", 9000)+"\nother\nnew\n")
	if text := r.fails(tool.FileChanged, "edit_file", `{"file_path":"a.txt","old_string":"new","new_string":"newer"}`); !strings.HasSuffix(text, "+other\n new") {
		t.Errorf("all of the change fits, and is not shown: %s", text)
	}
	r.ok("edit_file", `{"file_path":"a.txt","old_string":"new","new_string":"newer"}`)
}

// One line of a file of 300 MB took 600 MB of memory, and ten times as long as to copy it.
func TestEditFileLarge(t *testing.T) {
	r := newRig(t)
	var b strings.Builder
	for i := 0; b.Len() < 40<<20; i++ {
		fmt.Fprintf(&b, "line %d of a log, with so many words that it is as long as lines of logs are\n", i+1)
	}
	content := b.String()
	r.write("log", content)
	b.Reset()
	r.ok("read_file", `{"file_path":"log","offset":400000,"limit":2}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := r.ok("edit_file", `{"file_path":"log","old_string":"line 400000 of","new_string":"line X of"}`)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 {
		t.Errorf("the edit allocated %d MiB", taken>>20)
	}
	if !strings.HasPrefix(got, "Edited log:400000 (+1 -1)") {
		t.Errorf("got %s", got)
	}
	want := strings.Replace(content, "line 400000 of", "line X of", 1)
	if now, err := os.ReadFile(filepath.Join(r.dir, "log")); err != nil || string(now) != want {
		t.Fatalf("the file is not what the edit makes of it (%v)", err)
	}
	// What cannot be told without the whole content is told as ever.
	r.fails("STRING_NOT_FOUND", "edit_file", `{"file_path":"log","old_string":"line 400000 of","new_string":"x"}`)
	r.fails("MULTIPLE_MATCHES", "edit_file", `{"file_path":"log","old_string":"line 40000","new_string":"x"}`)
	got = r.ok("edit_file", `{"file_path":"log","old_string":"line X of a log, ","new_string":""}`)
	if !strings.HasPrefix(got, "Edited log:400000 (+1 -1)") {
		t.Errorf("got %s", got)
	}
}

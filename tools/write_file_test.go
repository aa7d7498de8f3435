package tools

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/tool"
)

func TestWriteFileNew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	same(t, r.ok("write_file", `{"file_path":"$WORK/deep/er/f","content":"a\nb\n"}`), "Created deep/er/f (2 lines)")
	r.holds("deep/er/f", "a\nb\n")
	same(t, r.ok("write_file", `{"file_path":"one","content":"a"}`), "Created one (1 line)")
	same(t, r.ok("write_file", `{"file_path":"none","content":""}`), "Created none (0 lines)")
	r.holds("none", "")
	// A file with a NUL was said to have no lines.
	same(t, r.ok("write_file", `{"file_path":"nul","content":"a\u0000\nb\n"}`), "Created nul (2 lines)")
	r.ok("write_file", `{"file_path":"wider","content":"`+strings.Repeat(strings.Repeat("x", 600)+`\n`, 25)+`"}`)
	// What was written is known all the same.
	r.ok("edit_file", `{"file_path":"wider","old_string":"`+strings.Repeat("x", 600)+`\n","new_string":"","expected_replacements":25}`)
	r.holds("wider", "")
}

func TestWriteFileOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\nb\nc\n")
	if n := r.number(tool.FileNotRead, "write_file", `{"file_path":"f","content":"x\n"}`); n != 2 {
		t.Errorf("FILE_NOT_READ has number %d", n)
	}
	text := r.fails(tool.FileNotRead, "write_file", `{"file_path":"f","content":"x\n"}`)
	same(t, text, "FILE_NOT_READ: File has not been read yet: $WORK/f. Read it first.")
	r.ok("read_file", `{"file_path":"f","limit":2}`)
	text = r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"x\n"}`)
	same(t, text, "FILE_PARTLY_READ: Only lines 1-2 of 3 of $WORK/f were read. Read the rest (next: offset=3; truncated lines do not count as read) or use edit_file.")
	r.holds("f", "a\nb\nc\n")
	if n := r.number(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"x\n"}`); n != 2 {
		t.Errorf("FILE_PARTLY_READ has number %d", n)
	}
	r.ok("read_file", `{"file_path":"f","offset":3}`)
	r.write("f", "a\nb\n")
	if n := r.number(tool.FileChanged, "write_file", `{"file_path":"f","content":"x\n"}`); n != 3 {
		t.Errorf("FILE_CHANGED has number %d", n)
	}
	text = r.ok("write_file", `{"file_path":"f","content":"a\nX\nc\n"}`)
	same(t, text, "Wrote f (3 lines; +2 -1)")
	r.holds("f", "a\nX\nc\n")
	// What was written is known: no read is needed before the next change.
	same(t, r.ok("write_file", `{"file_path":"f","content":"a\nX\nc\n"}`), "No change: f already has this content.")
	r.ok("edit_file", `{"file_path":"f","old_string":"X","new_string":"Y"}`)
	r.holds("f", "a\nY\nc\n")
}

// What a read shows in place of a byte that is no text was written into the file, and the letter was gone.
func TestWriteFileLosesNoBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "caf\xe9\n")
	r.ok("read_file", `{"file_path":"f"}`)
	text := r.fails(tool.EncodingMix, "write_file", `{"file_path":"f","content":"caf\ufffd, tea\n"}`)
	if !strings.Contains(text, "bytes that are not UTF-8 (1)") {
		t.Error(text)
	}
	r.holds("f", "caf\xe9\n")
	r.write("f", "has \ufffd, caf\xe9\n") // as the file itself has it
	r.ok("read_file", `{"file_path":"f"}`)
	r.ok("write_file", `{"file_path":"f","content":"has \ufffd\n"}`)
}

func TestWriteFileKeepsAndTells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, content, after, notes string }{
		{"line ends change as sent", "a\r\nb\r\n", `a\nc\n`, "a\nc\n", "\n[line ends changed: CRLF → LF]"},
		{"line ends stay", "a\r\n", `b\r\n`, "b\r\n", ""},
		{"the mark stays", "\xef\xbb\xbfa\n", `b\n`, "\xef\xbb\xbfb\n", ""},
		{"one mark is enough", "\xef\xbb\xbfa\n", `\ufeffb\n`, "\xef\xbb\xbfb\n", ""},
		{"other bytes", "caf\xe9\n", `café\n`, "café\n", "\n[encoding changed to UTF-8]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("f", c.before)
			r.ok("read_file", `{"file_path":"f"}`)
			text := r.ok("write_file", `{"file_path":"f","content":"`+c.content+`"}`)
			r.holds("f", c.after)
			if !strings.HasSuffix(text, c.notes) || c.notes == "" && strings.Contains(text, "changed") {
				t.Errorf("notes are not %q:\n%s", c.notes, text)
			}
		})
	}
}

func TestWriteFileRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("d/f", "x")
	r.write("bin", "a\x00b")
	r.write("wide", "\xff\xfea\x00")
	if err := os.Symlink(filepath.Join(t.TempDir(), "new"), filepath.Join(r.dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	r.write("book.ipynb", "{}")
	if err := os.Symlink("book.ipynb", filepath.Join(r.dir, "book.txt")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code tool.Code
		args string
		want string
	}{
		{tool.InputInvalid, `{"file_path":"f"}`, `"content" is required`},
		{tool.InputInvalid, `{"file_path":"f","content":"x","version":"zzz"}`, `"version"`},
		{tool.OutsideRoots, `{"file_path":"/etc/codehand-test","content":"x"}`, "is outside"},
		{tool.OutsideRoots, `{"file_path":"dangling","content":"x"}`, "is outside"},
		{tool.IsDirectory, `{"file_path":"d","content":"x"}`, "$WORK/d is a directory. Use list_files."},
		{tool.NotebookInvalid, `{"file_path":"a.ipynb","content":"{}"}`, "cells"},
		{tool.NotebookInvalid, `{"file_path":"a.ipynb","content":"x"}`, "not a Jupyter notebook"},
		// A key in another case was taken for "cells", a link led round the check, and the words were about types of Go.
		{tool.NotebookInvalid, `{"file_path":"a.ipynb","content":"{\"Cells\":[]}"}`, "a list of cells is missing. Write JSON with cells."},
		{tool.NotebookInvalid, `{"file_path":"a.ipynb","content":"{\"cells\":\"x\"}"}`, "a list of cells is missing."},
		{tool.NotebookInvalid, `{"file_path":"a.ipynb","content":"[1]"}`, "a list of cells is missing."},
		{tool.NotebookInvalid, `{"file_path":"book.txt","content":"x"}`, "not a Jupyter notebook"},
		{tool.BinaryFile, `{"file_path":"bin","content":"x"}`, "binary"},
		{tool.FileNotRead, `{"file_path":"wide","content":"x"}`, "Read it first"},
		{tool.NotDirectory, `{"file_path":"d/f/g","content":"x"}`, "A part of $WORK/d/f/g is a file"},
	} {
		if text := r.fails(c.code, "write_file", c.args); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nhas no %q", c.args, text, c.want)
		}
	}
	r.ok("write_file", `{"file_path":"b.ipynb","content":"{\"cells\":[]}"}`)
	// What Jupyter itself writes was refused: a NaN in an output, or cells in worksheets.
	r.ok("write_file", `{"file_path":"c.ipynb","content":"{\"cells\":[{\"outputs\":[NaN]}],\"nbformat\":4}"}`)
	r.ok("write_file", `{"file_path":"d.ipynb","content":"{\"worksheets\":[{\"cells\":[]}],\"nbformat\":3}"}`)
}

// A file that was deleted after the read is made anew, and the answer says so.
func TestWriteFileDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\n")
	r.ok("read_file", `{"file_path":"f"}`)
	if err := os.Remove(filepath.Join(r.dir, "f")); err != nil {
		t.Fatal(err)
	}
	text := r.ok("write_file", `{"file_path":"f","content":"b\n"}`)
	same(t, text, "Created f (1 line)\n[the file was deleted after you read it]")
}

func TestWriteFileVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.Modern = true
	r.write("f", "a\nb\n")
	r.fails(tool.FileChanged, "write_file", `{"file_path":"f","content":"x\n","version":"000000000000"}`)
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"f","content":"x\n","version":"911169ddaaf1p"}`)
	text := r.ok("write_file", `{"file_path":"f","content":"x\n","version":"911169ddaaf1"}`)
	if !strings.HasSuffix(text, "\n[version 73cb3858a687]") {
		t.Errorf("the answer does not end with the new version:\n%s", text)
	}
}

// A directory that cannot be written leaves the file as it is, and the answer says so.
func TestWriteFileFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("d/f", "a\n")
	r.ok("read_file", `{"file_path":"d/f"}`)
	r.fails(tool.InputInvalid, "write_file", `{"file_path":"`+strings.Repeat("n", 300)+`","content":"x"}`)
	if os.Getuid() == 0 {
		t.Skip("root may write to every directory: the rest needs an ordinary user")
	}
	dir := filepath.Join(r.dir, "d")
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	text := r.fails(tool.WriteFailed, "write_file", `{"file_path":"d/f","content":"b\n"}`)
	if !strings.HasPrefix(text, "WRITE_FAILED: Writing $WORK/d/f failed: ") || !strings.HasSuffix(text, "The file is unchanged. Ask the user.") {
		t.Error(text)
	}
	r.holds("d/f", "a\n")
	text = r.fails(tool.WriteFailed, "multi_edit", `{"file_path":"d/f","edits":[{"old_string":"a","new_string":"b"}]}`)
	if !strings.HasSuffix(text, "The file is unchanged. Ask the user.") {
		t.Error(text)
	}
	r.write("secret", "x")
	if err := os.Chmod(filepath.Join(r.dir, "secret"), 0); err != nil {
		t.Fatal(err)
	}
	r.fails(tool.PermissionDenied, "read_file", `{"file_path":"secret"}`)
}

// The diff of an image that was overwritten was 8 KiB of unreadable bytes.
func TestWriteFileOverBinary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	content := strings.Repeat("\x00\x01\x02\n", 1000)
	r.write("f", content)
	version := sha256.Sum256([]byte(content))
	text := r.ok("write_file", fmt.Sprintf(`{"file_path":"f","content":"text\n","version":"%x"}`, version[:6]))
	same(t, text, "Wrote f (1 line; before: 3.9 KB, not text)")
}

package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/tools/tool"
)

// Without its memory a session can read, is told so, and changes nothing.
func TestWithoutMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\n")
	r.ok("read_file", `{"file_path":"f"}`)
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, r.ok("read_file", `{"file_path":"f"}`), "1\ta\n[this read could not be remembered]")
	want := "STATE_UNAVAILABLE: The state store does not answer. Reading works, changes are refused. Try again."
	same(t, r.fails(tool.StateUnavailable, "edit_file", `{"file_path":"f","old_string":"a","new_string":"b"}`), want)
	same(t, r.fails(tool.StateUnavailable, "write_file", `{"file_path":"f","content":"b"}`), want)
	same(t, r.fails(tool.StateUnavailable, "multi_edit", `{"file_path":"f","edits":[{"old_string":"a","new_string":"b"}]}`), want)
	r.holds("f", "a\n")
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("huge", "")
	if err := os.Truncate(filepath.Join(r.dir, "huge"), 3<<29); err != nil { // a hole: it takes no room on the disk
		t.Fatal(err)
	}
	text := r.fails(tool.TooLarge, "edit_file", `{"file_path":"huge","old_string":"a","new_string":"b"}`)
	same(t, text, "TOO_LARGE: File is too large to edit (1.5 GB). Maximum editable file size is 1 GiB. Use run_shell.")
}

func TestTornRefusal(t *testing.T) {
	t.Parallel()
	err := tornRefusal(&filestate.RollbackError{Err: errors.New("disk full"), Files: []filestate.Left{
		{Path: "/w/a", Changed: true, Err: errors.New("read-only file system")}, {Path: "/w/b"},
	}})
	r, ok := errors.AsType[*tool.Refusal](err)
	if !ok || r.Code != tool.RollbackFailed || r.Number != 15 {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"\n/w/a: the new content, or what another program made of it (read-only file system)", "\n/w/b: as before"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("no %q in %s", want, r.Text)
		}
	}
}

func TestSeenLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen []filestate.Lines
		text string
		next int
	}{
		{nil, "parts of lines", 1},
		{[]filestate.Lines{{From: 1, To: 200}}, "lines 1-200 of 5,204", 201},
		{[]filestate.Lines{{From: 5, To: 9}, {From: 20, To: 30}}, "lines 5-9, 20-30 of 5,204", 1},
	} {
		if got := seenLines(&filestate.PartReadError{Seen: c.seen, Total: 5204}); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
		if got := nextUnseen(c.seen); got != c.next {
			t.Errorf("the next line to read is %d, want %d", got, c.next)
		}
	}
}

// A hard link that is broken by the change is told, since the other name keeps the old content.
func TestHardLink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\n")
	if err := os.Link(filepath.Join(r.dir, "f"), filepath.Join(r.dir, "g")); err != nil {
		t.Fatal(err)
	}
	r.ok("read_file", `{"file_path":"f"}`)
	text := r.ok("edit_file", `{"file_path":"f","old_string":"a","new_string":"b"}`)
	if !strings.HasSuffix(text, "\n[hard link broken: 1 other name keeps the old content]") {
		t.Error(text)
	}
	r.holds("g", "a\n")
}

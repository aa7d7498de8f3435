package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	want := "STATE_UNAVAILABLE: The state store does not answer, so changes are refused. Reading works. Try again."
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

// TestReadOnlyFile: a file that its owner marked read-only is changed with a word about it, and stays so.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\n")
	file := filepath.Join(r.dir, "f")
	const note = "\n[the file is read-only by its mode; it was changed all the same]"
	for mode, told := range map[os.FileMode]bool{0o444: true, 0o644: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		r.ok("read_file", `{"file_path":"f"}`)
		for _, text := range []string{r.ok("edit_file", `{"file_path":"f","old_string":"a","new_string":"b"}`),
			r.ok("write_file", `{"file_path":"f","content":"a\n"}`)} {
			if strings.Contains(text, note) != told {
				t.Errorf("%o: %s", mode, text)
			}
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != mode {
			t.Errorf("it has %v, %v", info.Mode(), err)
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

package blackbox

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A change of a file of 40 MiB could not be taken back, and several edits of one call held it in memory. Now each tool
// that edits changes the places alone, an undo gives back the bytes, and what another program wrote since stays.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	p, work := blackbox(t)
	was := []byte("the first line\n" + strings.Repeat("a line of a large file\n", 1<<20) + "the middle line\n" +
		strings.Repeat("another line of it\n", 900_000) + "the last line\n")
	path := filepath.Join(work, "large")
	if err := os.WriteFile(path, was, 0o600); err != nil {
		t.Fatal(err)
	}
	holds := func(what string, want []byte) {
		t.Helper()
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, want) {
			t.Fatalf("%s: %d bytes are there, not the %d that should be, %v", what, len(now), len(want), err)
		}
	}
	p.Must(t, "read_file", `{"file_path":"large","limit":3}`)
	now := bytes.Replace(bytes.Replace(was, []byte("the first"), []byte("The 1st"), 1), []byte("the last"), []byte("The\nend"), 1)
	for _, c := range []struct{ tool, args string }{
		{"multi_edit", `{"file_path":"large","edits":[{"old_string":"the first","new_string":"The 1st"},{"old_string":"the last","new_string":"The\nend"}]}`},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: large\n@@\n-the first line\n+The 1st line\n@@\n-the last line\n+The\n+end line\n*** End Patch"}`},
		{"edit_file", `{"file_path":"large","old_string":"the middle","new_string":"The 2nd"}`},
	} {
		text := p.Must(t, c.tool, c.args)
		want := now
		if c.tool == "edit_file" {
			want = bytes.Replace(was, []byte("the middle"), []byte("The 2nd"), 1)
		}
		if holds(c.tool, want); strings.Contains(text, "no undo copy") {
			t.Errorf("%s says %s", c.tool, text)
		}
		id := regexp.MustCompile(`[a-z0-9]{16}`).FindString(p.Must(t, "file_history", `{"file_path":"large","limit":1}`))
		shown := p.Must(t, "file_history", `{"change_id":"`+id+`"}`)
		if first, last := "\n-the first line\n+The 1st line\n", "\n-the last line\n+The\n+end line"; c.tool != "edit_file" &&
			(!strings.Contains(shown, "@@ -1,4 +1,4 @@"+first) || !strings.Contains(shown, "@@ -1948576,4 +1948576,5 @@") || !strings.Contains(shown, last)) {
			t.Errorf("%s is shown as %s", c.tool, shown)
		}
		p.Must(t, "undo_change", `{"change_id":"`+id+`"}`)
		holds("the undo of "+c.tool, was)
		if text := p.Must(t, "file_history", `{"file_path":"large","limit":2}`); !strings.Contains(text, "[takes back "+id+"]") || !strings.Contains(text, "[undone]") {
			t.Errorf("the history says %s", text)
		}
	}
	p.Must(t, "edit_file", `{"file_path":"large","old_string":"the middle","new_string":"The 2nd"}`)
	foreign := bytes.Replace(bytes.Replace(was, []byte("the middle"), []byte("The 2nd"), 1), []byte("a line"), []byte("A LINE"), 1)
	if err := os.WriteFile(path, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := p.Must(t, "undo_change", `{"file_path":"large"}`); !strings.HasPrefix(text, "! UNDO_CONFLICT: ") {
		t.Errorf("another program changed it, and the undo says %s", text)
	}
	holds("what another program wrote", foreign)
	if text := p.Must(t, "file_history", `{"file_path":"large","limit":1}`); !strings.Contains(text, " edit_file large +1 -1") || strings.Contains(text, "undone") {
		t.Errorf("the history says %s", text)
	}
}

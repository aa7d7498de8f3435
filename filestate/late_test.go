package filestate_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"codehand/filestate"
)

// What a program saved late into a file of more than 32 MiB was dropped without a word.
func TestLateWriterOfALargeFile(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	old := bytes.Repeat([]byte("old line of a large file\n"), 33<<20/25)
	if err := os.WriteFile(d.path("a"), old, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(d.path("a"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d.must(d.put("a", "new", unseen))
	if _, err := f.WriteAt([]byte("late"), 0); err != nil { // the file has no name any more
		t.Fatal(err)
	}
	filestate.SettleLate(d.j)
	entries := d.history(filestate.Query{Kept: true, Limit: 1})
	if len(entries) != 1 || entries[0].Kept != "external" {
		t.Fatalf("the journal has %+v", entries)
	}
	before, _, err := d.j.Contents(t.Context(), entries[0].ID, d.path("a"))
	if err != nil || len(before) != len(old) || !strings.HasPrefix(string(before), "lateline") {
		t.Errorf("the copy has %d bytes, %v", len(before), err)
	}
}

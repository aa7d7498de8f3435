package filestate_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// A program that opened the old file before the change writes into it afterwards: that is in the journal.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old")
	f, err := os.OpenFile(d.path("a"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tick(t, d.path("a"))
	d.beforeSteps(func(step string) error {
		if step == "remove" {
			_, err := f.WriteString("late")
			return err
		}
		return nil
	})
	d.must(d.put("a", "new", unseen))
	d.holds("a", "new")
	if !d.keepsContent("late") {
		t.Error("the late save is lost")
	}
	if _, err := f.WriteString(" and later"); err != nil { // the file has no name any more
		t.Fatal(err)
	}
	if err := d.j.Close(); err != nil { // which looks at it for the last time
		t.Fatal(err)
	}
	d = d.again()
	if !d.keepsContent("late and later") {
		t.Error("the later save is lost")
	}
}

// What a program saved late into a file of more than 32 MiB was dropped without a word.
func TestLateWriterOfALargeFile(t *testing.T) {
	leaktest.Sequential(t)
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
	if err := d.j.Close(); err != nil { // which looks at it for the last time
		t.Fatal(err)
	}
	d = d.again()
	entries := d.history(journal.Query{Kept: true, Limit: 1})
	if len(entries) != 1 || entries[0].Kept != "external" {
		t.Fatalf("the journal has %+v", entries)
	}
	before, _, err := d.j.Contents(t.Context(), entries[0].ID, d.path("a"))
	if err != nil || len(before) != len(old) || !strings.HasPrefix(string(before), "lateline") {
		t.Errorf("the copy has %d bytes, %v", len(before), err)
	}
}

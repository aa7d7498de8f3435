package filestate_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// BenchmarkJournal is what a journal of 10,000 changes costs: the start of a process, its first search for a file that was
// never changed, which reads the note of every change (BenchmarkIndex of the journal has the others), the newest hundred,
// and all in pages of 200.
func BenchmarkJournal(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "journal")
	d := benchDesk(b, dir)
	for i := range 10_000 {
		d(i)
	}
	o := journal.Options{Fast: true}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			j, err := journal.Open(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := filestate.New(filestate.Options{Journal: j, Fast: true}).Recover(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pages", func(b *testing.B) {
		j, err := journal.Open(dir, o)
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		for b.Loop() {
			n := 0
			for q := (journal.Query{Limit: 200}); n < 10_000; n += 200 {
				found, err := j.History(b.Context(), q)
				if err != nil || len(found) != 200 {
					b.Fatalf("%d changes, %v", len(found), err)
				}
				q.Before = found[199].ID
			}
		}
	})
	for name, q := range map[string]journal.Query{"nothing": {Path: "/nowhere"}, "newest": {Limit: 100}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				j, err := journal.Open(dir, o)
				if err != nil {
					b.Fatal(err)
				}
				found, err := j.History(b.Context(), q)
				if err != nil || len(found) != q.Limit {
					b.Fatalf("%d changes, %v", len(found), err)
				}
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchDesk returns what changes one file again and again, with a journal in dir.
func benchDesk(b *testing.B, dir string) func(i int) {
	j, err := journal.Open(dir, journal.Options{Fast: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() }) // nothing late comes here
	file, err := fileAt(filepath.Join(b.TempDir(), "a"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() }) // a directory handle holds no data
	l := filestate.New(filestate.Options{Journal: j, Fast: true})
	return func(i int) {
		_, err := l.Update(b.Context(), journal.By{}, filestate.Edit{File: file, Unseen: true, Change: func([]byte) ([]byte, error) {
			return fmt.Appendf(nil, "change %d\n", i), nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

package filestate_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"codehand/filestate"
)

// BenchmarkJournal is what a journal of 10,000 changes costs: the start of a process, a search for a file that was never
// changed, which reads the note of every change, and the newest hundred.
func BenchmarkJournal(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "journal")
	d := benchDesk(b, dir)
	for i := range 10_000 {
		d(i)
	}
	o := filestate.JournalOptions{Fast: true}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			j, err := filestate.OpenJournal(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := j.Recover(b.Context(), filestate.NewLocker("")); err != nil {
				b.Fatal(err)
			}
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, q := range map[string]filestate.Query{"nothing": {Path: "/nowhere"}, "newest": {Limit: 100}} {
		b.Run(name, func(b *testing.B) {
			j, err := filestate.OpenJournal(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			for b.Loop() {
				found, err := j.History(b.Context(), q)
				if err != nil || len(found) != q.Limit {
					b.Fatalf("%d changes, %v", len(found), err)
				}
			}
		})
	}
}

// benchDesk returns what changes one file again and again, with a journal in dir.
func benchDesk(b *testing.B, dir string) func(i int) {
	j, err := filestate.OpenJournal(dir, filestate.JournalOptions{Fast: true})
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
		_, err := l.Update(b.Context(), filestate.By{}, filestate.Edit{File: file, Unseen: true, Change: func([]byte) ([]byte, error) {
			return fmt.Appendf(nil, "change %d\n", i), nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

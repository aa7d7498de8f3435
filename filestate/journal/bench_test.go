package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codehand/filestate/disk"
)

// BenchmarkIndex asks for a file that was never changed, in a journal of 50,000 notes of one day: the first question of
// a process, one while others make changes, one after 2 s without changes, and one for all files below a directory. All
// but the first are compared with reading every note.
func BenchmarkIndex(b *testing.B) {
	for name, files := range map[string]int{"500 files": 500, "50000 files": 50_000} {
		b.Run(name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "journal")
			benchNotes(b, dir, files)
			for b.Loop() {
				j := benchJournal{openBench(b, dir)}
				walk := j.took(b, Query{Fits: func(Entry) bool { return false }})
				first := j.took(b, Query{Path: "/nowhere"})
				_ = j.took(b, Query{Path: "/nowhere"}) // the first began less than 2 s after the last change
				rest := j.took(b, Query{Path: "/nowhere"})
				below := j.took(b, Query{Below: []string{"/nowhere"}})
				id := j.took(b, Query{ID: "aaaaaaaaaaaaaaaa"})
				made(b, j.Journal)
				busy := j.took(b, Query{Path: "/nowhere"})
				for unit, took := range map[string]time.Duration{"walk": walk, "first": first, "rest": rest, "below": below, "id": id, "busy": busy} {
					b.ReportMetric(float64(took.Microseconds())/1000, unit+"-ms")
				}
				b.ReportMetric(float64(walk)/float64(rest), "walk/rest")
				b.ReportMetric(float64(walk)/float64(busy), "walk/busy")
				b.ReportMetric(float64(j.index.all.bytes), "index-B")
			}
		})
	}
}

type benchJournal struct{ *Journal }

// took is the time of a question that finds nothing.
func (j benchJournal) took(b *testing.B, q Query) time.Duration {
	began := time.Now()
	if found, err := j.History(b.Context(), q); err != nil || len(found) > 0 {
		b.Fatalf("%d changes, %v", len(found), err)
	}
	return time.Since(began)
}

func openBench(b *testing.B, dir string) *Journal {
	b.Helper()
	j, err := Open(dir, Options{Fast: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() }) // nothing late comes here
	return j
}

// benchNotes makes a journal of 50,000 changes of so many files.
func benchNotes(b *testing.B, dir string, files int) {
	b.Helper()
	j := openBench(b, dir)
	for i := range 50_000 {
		p, err := j.Begin(By{}, nil, []Part{{
			Path: fmt.Sprintf("/home/somebody/src/project/internal/package/file%d.go", i%files),
			Old:  []byte("old"), Before: disk.DigestOf([]byte("old")), New: []byte("new"), After: disk.DigestOf([]byte("new")),
		}})
		if err != nil {
			b.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, p.name.path()), filepath.Join(dir, noteName{p.name.at, p.name.id, stateDone}.path())); err != nil {
			b.Fatal(err)
		}
	}
}

package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkSpan is what a command costs in a tree of 10,000 files in 500 directories of which it changes one, beside
// what `git status` takes there (x-status: how many times as long).
func BenchmarkSpan(b *testing.B) {
	r := newRepo(b)
	for d := range 500 {
		for f := range 20 {
			r.write(fmt.Sprintf("p%d/s%d/f%d.go", d%20, d, f), fmt.Sprintf("package a // %d %d\n", d, f))
		}
	}
	r.commit()
	trees := New("", "")
	defer trees.Close()
	trees.Begin(b.Context(), r.dir).Drop() // the first look reads all
	one := filepath.Join(r.dir, "p1/s1/f1.go")
	for i := 0; b.Loop(); i++ {
		s := trees.Begin(b.Context(), r.dir)
		if err := os.WriteFile(one, fmt.Appendf(nil, "package b // %d\n", i), 0o600); err != nil {
			b.Fatal(err)
		}
		if found := s.End(200, everything); len(found.Changes) != 1 {
			b.Fatalf("%d changes", len(found.Changes))
		}
	}
	span := b.Elapsed() / time.Duration(b.N)
	start := time.Now()
	const times = 5
	for range times {
		r.git("status", "--porcelain")
	}
	b.ReportMetric(float64(time.Since(start)/times)/float64(span), "x-status")
}

// BenchmarkFirst is the first look at such a tree.
func BenchmarkFirst(b *testing.B) {
	r := newRepo(b)
	for d := range 500 {
		for f := range 20 {
			r.write(fmt.Sprintf("p%d/s%d/f%d.go", d%20, d, f), fmt.Sprintf("package a // %d %d\n", d, f))
		}
	}
	r.commit()
	for b.Loop() {
		trees := New("", "")
		trees.Begin(b.Context(), r.dir).Drop()
		trees.Close()
	}
}

// BenchmarkFlood is what a command costs that makes 20,000 files in one directory (ns-file: for each of them).
func BenchmarkFlood(b *testing.B) {
	r := newRepo(b)
	r.write("a", "1\n")
	r.commit()
	const files = 20_000
	for b.Loop() {
		b.StopTimer()
		trees := New("", "")
		s := trees.Begin(b.Context(), r.dir)
		for i := range files {
			r.write(fmt.Sprintf("big/%d", i), "")
		}
		b.StartTimer()
		found := s.End(200, everything)
		b.StopTimer()
		if found.All != files {
			b.Fatalf("%d changes", found.All)
		}
		trees.Close()
		if err := os.RemoveAll(filepath.Join(r.dir, "big")); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*files), "ns-file")
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"codehand/tools/search"
)

const (
	perDir = 100
	// quiet is how long files must have been left alone before they are remembered, with something to spare.
	quiet = 50 * time.Second
	rare  = "needleInOneFileOnly"
	// mostBytes is the goal for what is remembered of a file beside its summary.
	mostBytes = 100
)

// growth prints what searches of generated trees take, one row for each number of files: the first search, a repeated
// one, and one after a file was changed, each in turns with ripgrep; and what is remembered, of at most so many MiB.
// The peaks of memory are of this process.
func growth(ctx context.Context, rg, sizes string, runs, memory int) error {
	fmt.Printf("%s\n%s, %d cores, at most %d MiB are remembered\n\n", version(ctx, rg), runtime.Version(),
		runtime.NumCPU(), memory)
	fmt.Println("| files | first: ms | wall / rg | cpu / rg | MiB | repeated: ms | wall / rg | cpu / rg | MiB | " +
		"after a change: ms | wall / rg | cpu / rg | known | bytes a file | of summaries | learning, µs a file |\n" +
		"|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for word := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		if err := grown(ctx, rg, n, runs, memory); err != nil {
			return err
		}
	}
	return nil
}

func grown(ctx context.Context, rg string, n, runs, memory int) error {
	dir, err := os.MkdirTemp("", "growth")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := generate(dir, n); err != nil {
		return err
	}
	time.Sleep(quiet)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	at, q := search.Place{Dir: root, Path: dir}, query{"", rare, false}
	peer := peer{rg, []string{"--no-config", "-n", "--no-heading", "--hidden"}, true}
	forgetPeak()
	cold := search.New(search.Options{})
	defer cold.Close()
	first, err := turns(ctx, cold, at, q, peer, runs, nil)
	if err != nil {
		return err
	}
	coldPeak := peakMiB()
	forgetPeak()
	warm := search.New(search.Options{Memory: int64(memory) << 20})
	defer warm.Close()
	began := cpu()
	for range 2 {
		if _, _, err := ours(ctx, warm, at, q); err != nil {
			return err
		}
		warm.Settle()
	}
	learned := cpu() - began
	again, err := turns(ctx, warm, at, q, peer, runs, nil)
	if err != nil {
		return err
	}
	stats := warm.Stats()
	changed, err := turns(ctx, warm, at, q, peer, runs, func(i int) error {
		return os.WriteFile(nameIn(dir, i*7919%n), fmt.Appendf(nil, "changed %d\n", i), 0o600)
	})
	if err != nil {
		return err
	}
	shown := func(t [2]took) string {
		return fmt.Sprintf("%.1f | %.2f | %.2f", ms(t[0].wall), ms(t[0].wall)/ms(t[1].wall), ms(t[0].cpu)/ms(t[1].cpu))
	}
	files := float64(max(stats.Files, 1))
	fmt.Printf("| %d | %s | %.0f | %s | %.0f | %s | %d | %.0f | %.0f | %.1f |\n", n, shown(first), coldPeak, shown(again),
		peakMiB(), shown(changed), stats.Files, float64(stats.Bytes-stats.Summaries)/files,
		float64(stats.Summaries)/files, float64(learned)/1e3/files)
	if each := float64(stats.Bytes-stats.Summaries) / files; each > mostBytes {
		return fmt.Errorf("MISSED: %.0f bytes are remembered of a file beside its summary, goal <= %d", each, mostBytes)
	}
	return nil
}

// forgetPeak makes what this process takes of memory now the peak of peakMiB.
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // else the peak is that of all rows
}

// peakMiB is the most memory that this process has had since.
func peakMiB() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kB, _, _ := strings.Cut(strings.TrimSpace(peak), " ")
	n, _ := strconv.Atoi(kB)
	return float64(n) / 1024
}

// turns runs ours and ripgrep in turns and returns both medians. before, if not nil, changes the tree before each pair.
func turns(ctx context.Context, e *search.Engine, at search.Place, q query, p peer, runs int,
	before func(int) error) (medians [2]took, err error) {
	var times [2][]took
	for i := range runs + 1 {
		if before != nil {
			if err := before(i); err != nil {
				return medians, err
			}
		}
		var lines [2]int
		for j := range times {
			which := (i + j) % 2
			var t took
			if which == 0 {
				t, lines[0], err = ours(ctx, e, at, q)
			} else {
				t, lines[1], err = theirs(ctx, p, at.Path, q)
			}
			if err != nil {
				return medians, err
			}
			if i > 0 {
				times[which] = append(times[which], t)
			}
		}
		if lines[0] != lines[1] {
			return medians, fmt.Errorf("%d lines, and %d of ripgrep", lines[0], lines[1])
		}
	}
	return [2]took{median(times[0]), median(times[1])}, nil
}

// generate makes n files of about 1,300 bytes, 100 to a directory. The last has the only line that is looked for.
func generate(dir string, n int) error {
	r := rand.New(rand.NewPCG(33, 3))
	words := make([]string, 5000)
	for i := range words {
		for range 3 + r.IntN(8) {
			words[i] += string(rune('a' + r.IntN(26)))
		}
	}
	for i := range n {
		name := nameIn(dir, i)
		if i%perDir == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
		}
		var b strings.Builder
		for range 20 {
			for range 10 {
				b.WriteString(words[r.IntN(len(words))] + " ")
			}
			b.WriteByte('\n')
		}
		if i == n-1 {
			b.WriteString(rare + "\n")
		}
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// nameIn is the path of file number i: two levels of directories.
func nameIn(dir string, i int) string {
	d := i / perDir
	return filepath.Join(dir, fmt.Sprint("d", d/perDir), fmt.Sprint("d", d%perDir), fmt.Sprint("f", i%perDir, ".go"))
}

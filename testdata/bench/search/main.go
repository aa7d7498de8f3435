// Command search compares the search engine with ripgrep, ugrep and git grep on one tree, and prints a Markdown table.
//
//	go run ./testdata/bench/search [-rg PROGRAM] [-n RUNS] DIRECTORY
//	go run ./testdata/bench/search [-rg PROGRAM] [-n RUNS] [-memory MIB] -growth 1000,10000
//
// The first rows are searches of an engine that remembers nothing, as the first search of a tree is. Those named
// "repeat" are the tenth and later searches of one tree by one engine, "stat" where it looks at each file; the last row
// is their sum. -repeat prints these alone. Two more tables are about listing names, and about the order of lines. -growth makes trees of so many files
// instead, and searches them.
//
// Each query runs once untimed, then ours and each peer in turns, so that a busy machine is busy for all. The peers'
// output is read through a pipe. A row has medians of wall and processor time, ours divided by the peer's: below 1 ours
// is faster. The numbers of lines of ours and of ripgrep must be equal, or the command fails; the other peers read
// ignore files in other ways and are only shown. A peer that is not installed is left out.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"codehand/tools/search"
)

type query struct {
	name, pattern string
	fold          bool
}

var queries = []query{
	{"literal", "ErrUnexpectedEOF", false}, {"literal, none", "xyzzy_plugh_42", false},
	{"literal, common", "return", false}, {"ignore case", "errunexpectedeof", true},
	{"alternatives", "ReadHeaderTimeout|ErrAbortHandler|NewTLSListener", false},
	{"literal behind \\w", `\w+UnexpectedEOF`, false}, {"word", `\bReadFull\b`, false},
	{"method", `^func \(\w+ \*\w+\) Close\(`, false}, {"no literal", `[a-z]{3}[0-9]{4}`, false},
	{"no literal", `[A-Za-z]{30}`, false}, {"no literal", `\w{5}\s+\w{5}`, false},
	{"no literal", `\w{5}\s+\w{5}\s+\w{5}\s+\w{5}\s+\w{5}`, false}, {"Unicode", `\p{Greek}`, false},
	{"Unicode", `\p{Lu}\p{Ll}+\p{Lu}\p{Ll}+\p{Lu}`, false}, {"many states", `[a-z_]*e[a-z_]{14}z`, false},
	{"many stars", `a.*b.*c.*d.*e.*f`, false},
}

// repeats are searches of a session, as a model makes them one after the other.
var repeats = []query{
	{"repeat", "ErrUnexpectedEOF", false}, {"repeat", "func NewReader", false}, {"repeat", `func \(c \*conn\) \w+`, false},
	{"repeat", "readloop", true}, {"repeat", "DialContext|DialTLS", false}, {"repeat", `\bReadFull\b`, false},
	{"repeat", `type \w+ interface \{`, false}, {"repeat", "TODO.*bradfitz", true}, {"repeat", "http2Transport", false},
	{"repeat", "GOEXPERIMENT", false}, {"repeat", `runtime\.KeepAlive`, false}, {"repeat", "morestack_noctxt", false},
	{"repeat", "case OINDEXMAP", false}, {"repeat", "ssaGenValue", false},
	{"repeat", `errors\.Is\(err, fs\.ErrNotExist\)`, false},
}

// A peer is a program to compare with.
type peer struct {
	program string
	args    []string
	exact   bool // its lines must be ours
}

// took is what one run cost.
type took struct{ wall, cpu time.Duration }

func main() {
	rg := flag.String("rg", "rg", "ripgrep to compare with")
	runs := flag.Int("n", 7, "timed runs of each")
	again := flag.Bool("repeat", false, "repeated searches alone")
	sizes := flag.String("growth", "", "numbers of files of trees to be made and searched")
	memory := flag.Int("memory", 256, "MiB that are remembered at most of such a tree")
	flag.Parse()
	if *sizes != "" {
		if err := growth(context.Background(), *rg, *sizes, *runs, *memory); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := compare(context.Background(), flag.Arg(0), *rg, *runs, *again); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, tree, rg string, runs int, again bool) error {
	tree, err := filepath.EvalSymlinks(tree)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	var peers []peer
	for _, p := range []peer{
		{rg, []string{"--no-config", "-n", "--no-heading", "--no-messages", "--hidden", "--no-require-git",
			"-g", "!.git"}, true},
		{"ugrep", []string{"-rnIP", "--hidden", "--ignore-files"}, false},
		{"git", []string{"grep", "--no-index", "-nIP"}, false},
	} {
		if _, err := exec.LookPath(p.program); err == nil {
			peers = append(peers, p)
			fmt.Printf("%s\n", version(ctx, p.program))
		}
	}
	fmt.Printf("%s, %d cores, %s\n\n| query | pattern | lines | ms |", runtime.Version(), runtime.NumCPU(), tree)
	for _, p := range peers {
		fmt.Printf(" wall / %s | cpu / %[1]s |", filepath.Base(p.program))
	}
	fmt.Printf("\n|---|---|---:|---:|%s\n", strings.Repeat("---:|---:|", len(peers)))
	at := search.Place{Dir: root, Path: tree}
	differ := 0
	cold := search.New(search.Options{})
	defer cold.Close()
	for _, q := range queries {
		if again {
			break
		}
		_, same, err := row(ctx, cold, at, q, peers, runs)
		if err != nil {
			return err
		}
		if !same {
			differ++
		}
	}
	warm := search.New(search.Options{Memory: 256 << 20})
	defer warm.Close()
	began := cpu()
	for _, q := range repeats[:2] {
		if _, _, err := ours(ctx, warm, at, q); err != nil {
			return err
		}
		warm.Settle()
	}
	learned := cpu() - began
	sums := make([]took, len(peers)+1)
	for _, q := range repeats {
		times, same, err := row(ctx, warm, at, q, peers, runs)
		if err != nil {
			return err
		}
		if !same {
			differ++
		}
		for i, t := range times {
			sums[i].wall += t.wall
			sums[i].cpu += t.cpu
		}
	}
	fmt.Printf("| repeat | all of them | | %.1f |", ms(sums[0].wall)/float64(len(repeats)))
	for _, s := range sums[1:] {
		fmt.Printf(" %.2f | %.2f |", ms(sums[0].wall)/ms(s.wall), ms(sums[0].cpu)/ms(s.cpu))
	}
	stats := warm.Stats()
	fmt.Printf("\n\nRemembered: %d directories, %d files, %.1f MB, %.0f bytes a file beside the summaries' %.0f; two "+
		"searches and learning took %.0f ms of processor time.\n", stats.Dirs, stats.Files, float64(stats.Bytes)/1e6,
		float64(stats.Bytes-stats.Summaries)/float64(max(stats.Files, 1)),
		float64(stats.Summaries)/float64(max(stats.Files, 1)), ms(learned))
	engines := map[string]*search.Engine{"first": cold, "repeated": warm}
	if err := lists(ctx, engines, at, rg, runs); err != nil {
		return err
	}
	if err := ranked(ctx, engines, at, runs); err != nil {
		return err
	}
	if differ > 0 {
		return fmt.Errorf("%d queries gave other numbers of lines than ripgrep", differ)
	}
	return nil
}

// row runs one query and prints its line. same: ours has as many lines as the peers that are exact.
func row(ctx context.Context, e *search.Engine, at search.Place, q query, peers []peer, runs int) (
	medians []took, same bool, err error) {
	times := make([][]took, len(peers)+1)
	lines := make([]int, len(peers)+1)
	for i := range runs + 1 {
		for j := range times {
			which := (i + j) % len(times) // another one begins each time
			var t took
			if which == 0 {
				t, lines[0], err = ours(ctx, e, at, q)
			} else {
				t, lines[which], err = theirs(ctx, peers[which-1], at.Path, q)
			}
			if err != nil {
				return nil, false, err
			}
			if i > 0 {
				times[which] = append(times[which], t)
			}
		}
	}
	mine := median(times[0])
	medians = append(medians, mine)
	fmt.Printf("| %s | `%s` | %d | %.1f |", q.name, strings.ReplaceAll(q.pattern, "|", `\|`), lines[0], ms(mine.wall))
	same = true
	for j, p := range peers {
		m := median(times[j+1])
		medians = append(medians, m)
		fmt.Printf(" %.2f | %.2f |", ms(mine.wall)/ms(m.wall), ms(mine.cpu)/ms(m.cpu))
		if p.exact && lines[j+1] != lines[0] {
			fmt.Printf(" %d lines! |", lines[j+1])
			same = false
		}
	}
	fmt.Println()
	return medians, same, nil
}

func ours(ctx context.Context, e *search.Engine, at search.Place, q query) (took, int, error) {
	return timed(ctx, e, search.GrepQuery{Scope: search.Scope{Place: at}, Pattern: q.pattern, Fold: q.fold,
		Mode: search.Lines, MaxText: 1 << 30, Within: time.Hour}) // what takes longer than a call may is to be seen
}

func timed(ctx context.Context, e *search.Engine, q search.GrepQuery) (took, int, error) {
	before, began := cpu(), time.Now()
	a, err := e.Grep(ctx, q)
	return took{time.Since(began), cpu() - before}, a.NLines, err
}

func theirs(ctx context.Context, p peer, dir string, q query) (took, int, error) {
	args := slices.Clone(p.args)
	if q.fold {
		args = append(args, "-i")
	}
	cmd := exec.CommandContext(ctx, p.program, append(args, "-e", q.pattern, ".")...)
	cmd.Dir = dir
	began := time.Now()
	out, err := cmd.Output()
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1) {
		return took{}, 0, fmt.Errorf("%s %q: %w", p.program, q.pattern, err)
	}
	t := took{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	return t, bytes.Count(out, []byte{'\n'}), nil
}

// median sorts wall and processor time by themselves.
func median(all []took) (m took) {
	for _, field := range []func(*took) *time.Duration{
		func(t *took) *time.Duration { return &t.wall }, func(t *took) *time.Duration { return &t.cpu },
	} {
		var list []time.Duration
		for i := range all {
			list = append(list, *field(&all[i]))
		}
		slices.Sort(list)
		*field(&m) = list[len(list)/2]
	}
	return m
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func ms(d time.Duration) float64 { return max(float64(d)/1e6, 0.001) }

// version is the first line of what a program says about itself.
func version(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return program + ": version unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

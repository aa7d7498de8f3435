//go:build score

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// options are what to play, and on what.
type options struct {
	dir, peers, cases, server string
	without                   string // a file with cases that are left out, one a line, with the reason behind a tab
	ours, drive               string // another codehand, played alone: any failure is an error then
	task                      bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "testdata/score", "`directory` of the cases")
	flag.StringVar(&o.peers, "peers", "testdata/bench/peers/node_modules,testdata/bench/clients/node_modules",
		"`directories` with the npm modules of other servers, with commas between them")
	flag.StringVar(&o.cases, "cases", "", "play only cases whose area or name contains this `text`")
	flag.StringVar(&o.server, "server", "", "play only servers whose name contains this `text`")
	flag.StringVar(&o.ours, "ours", "",
		"play only this `command`, a codehand for another system; a failure is an error")
	flag.StringVar(&o.drive, "drive", "", "what stands before paths for it, as `Z:` under Wine")
	flag.StringVar(&o.without, "without", "", "leave out the cases that this `file` names, each with a reason")
	flag.BoolVar(&o.task, "task", true, "count the tokens of the task of 34 calls, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := score(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "score:", err)
		os.Exit(1)
	}
}

// score plays the cases on all servers at once, and writes the page.
func score(ctx context.Context, o options, out io.Writer) error {
	cases, err := o.chosen()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("/var/tmp", "score") // not in /tmp, which some servers hide from commands
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	all, err := o.played(ctx, filepath.Join(scratch, "bin", "codehand"))
	if err != nil {
		return err
	}
	results := make([][]result, len(all))
	var wait sync.WaitGroup
	for i, s := range all {
		wait.Go(func() { results[i] = play(ctx, s, cases, filepath.Join(scratch, s.name)) })
	}
	wait.Wait()
	tokens := ""
	if o.task && o.ours == "" {
		tokens = countTask(ctx)
	}
	if err := page(out, all, cases, results, tokens); err != nil || o.ours == "" {
		return err
	}
	failed := 0
	for _, r := range results[0] {
		if !r.passed && !r.lacks {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return nil
}

// chosen are the cases to play.
func (o options) chosen() (chosen []scenario, err error) {
	cases, err := readCases(o.dir)
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	if o.without != "" {
		b, err := os.ReadFile(o.without)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			left[name] = true
		}
	}
	for _, c := range cases {
		if name := c.area + "/" + c.name; strings.Contains(name, o.cases) && !left[name] && !left[c.area] {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// played are the servers to play on. Ours is built into a file first.
func (o options) played(ctx context.Context, ours string) (all []*server, err error) {
	if o.ours != "" {
		return []*server{other(o.ours, o.drive)}, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", ours, "./cmd/codehand")
	if b, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build codehand: %w: %s", err, b)
	}
	for _, s := range servers(ours, o.peers) {
		if strings.Contains(s.name, o.server) {
			all = append(all, s)
		}
	}
	return all, nil
}

// counted is what the blackbox test says of a server.
var counted = regexp.MustCompile(`: ([a-z-]+): (\d+ of \d+) calls, (\d+) tokens, ours (\d+);`)

// countTask has the blackbox test count what the task of 34 calls costs with each server, and returns rows of a table.
func countTask(ctx context.Context) string {
	const test = "^TestTaskBesidePeers$"
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", test, "./server/blackbox")
	cmd.Env = append(os.Environ(), "CODEHAND_LONG=1")
	b, _ := cmd.CombinedOutput() // what it could not count has no line
	return taskRows(string(b))
}

// taskRows are the rows of the table of tokens that a log of the test has.
func taskRows(log string) string {
	var rows strings.Builder
	for _, m := range counted.FindAllStringSubmatch(log, -1) {
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", m[1], m[2], m[3], m[4])
	}
	return rows.String()
}

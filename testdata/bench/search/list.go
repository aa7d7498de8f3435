package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"codehand/tools/search"
)

// newest is how many of the files are listed, the newest first.
const newest = 100

// lists prints a row of what it takes to list the newest files of one kind, for each engine: ripgrep and fd print names
// alone, so that their times include a look at each file and the sorting.
func lists(ctx context.Context, engines map[string]*search.Engine, at search.Place, rg string, runs int) error {
	peers := [][]string{{rg, "--no-config", "--files", "--hidden", "--no-require-git", "-g", "!.git", "-g", "*.go"}}
	if _, err := exec.LookPath("fdfind"); err == nil {
		fmt.Printf("\n%s\n", version(ctx, "fdfind"))
		peers = append(peers, []string{"fdfind", "-H", "-t", "f", "-e", "go"})
	}
	fmt.Println("\n| newest 100 of `**/*.go` | files | ms | wall / cpu beside `rg --files` | wall / cpu beside `fd` |\n|---|---:|---:|---:|---:|")
	for name, e := range engines {
		times := make([][]took, len(peers)+1)
		found := make([]int, len(peers)+1)
		for i := range runs + 1 {
			for j := range times {
				which := (i + j) % len(times)
				var t took
				var err error
				if which == 0 {
					t, found[0], err = oursListed(ctx, e, at)
				} else {
					t, found[which], err = theirsListed(ctx, peers[which-1], at.Path)
				}
				if err != nil {
					return err
				}
				if i > 0 {
					times[which] = append(times[which], t)
				}
			}
		}
		mine := median(times[0])
		fmt.Printf("| %s | %d | %.1f |", name, found[0], ms(mine.wall))
		for _, all := range times[1:] {
			m := median(all)
			fmt.Printf(" %.2f / %.2f |", ms(mine.wall)/ms(m.wall), ms(mine.cpu)/ms(m.cpu))
		}
		fmt.Println()
		if found[0] != found[1] {
			return fmt.Errorf("%d files are listed, and %d by ripgrep", found[0], found[1])
		}
	}
	return nil
}

func oursListed(ctx context.Context, e *search.Engine, at search.Place) (took, int, error) {
	before, began := cpu(), time.Now()
	a, err := e.Files(ctx, search.FileQuery{Scope: search.Scope{Place: at}, Pattern: "**/*.go", Limit: newest})
	return took{time.Since(began), cpu() - before}, a.N, err
}

func theirsListed(ctx context.Context, args []string, dir string) (took, int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	before, began := cpu(), time.Now()
	out, err := cmd.Output()
	if err != nil {
		return took{}, 0, err
	}
	var infos []os.FileInfo
	for line := range bytes.Lines(out) {
		info, err := os.Lstat(filepath.Join(dir, string(bytes.TrimSpace(line))))
		if err != nil {
			return took{}, 0, err
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	own := cpu() - before
	return took{time.Since(began), own + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, len(infos), nil
}

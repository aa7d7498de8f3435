package main

import (
	"context"
	"fmt"
	"strings"

	"codehand/tools/search"
)

// page is how many lines an answer of grep_search shows.
const page = 250

// ranked prints what it costs to order the lines of an answer by their use, beside the same page by path, in turns.
func ranked(ctx context.Context, engines map[string]*search.Engine, at search.Place, runs int) error {
	fmt.Println("\n| 250 lines, ranked beside by path | pattern | lines | wall | cpu |\n|---|---|---:|---:|---:|")
	for name, e := range engines {
		for _, q := range []query{queries[0], queries[1], queries[2], repeats[1], repeats[13]} {
			var times [2][]took
			lines := 0
			for i := range runs + 1 {
				for j := range times {
					which := (i + j) % 2
					g := search.GrepQuery{Scope: search.Scope{Place: at}, Pattern: q.pattern, Mode: search.Lines, Limit: page}
					if which == 0 {
						g.Rank = &search.Rank{}
					}
					t, n, err := timed(ctx, e, g)
					if err != nil {
						return err
					}
					if lines = max(lines, n); i > 0 {
						times[which] = append(times[which], t)
					}
				}
			}
			r, p := median(times[0]), median(times[1])
			fmt.Printf("| %s | `%s` | %d | %.2f | %.2f |\n", name, strings.ReplaceAll(q.pattern, "|", `\|`), lines,
				ms(r.wall)/ms(p.wall), ms(r.cpu)/ms(p.cpu))
		}
	}
	return nil
}

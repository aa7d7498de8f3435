//go:build score

package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// intro is what the page begins with.
const intro = `# Comparison

What %d cases of [testdata/score](../testdata/score) found on %s, on Linux. A case is what a person wants,
with a check of the files or of the answer. It counts only where a server has a tool for it, and as failed if it fails
%d times. We chose the cases, so they are those that we thought of; the area "trade" has what safety and few tokens
cost. Peers are installed by npm in testdata/bench/peers and testdata/bench/clients; then this writes the page:

    go run -tags score ./cmd/score >docs/comparison.md

`

// tokensIntro stands above what the task costs.
const tokensIntro = `
## Tokens

A task of 34 calls ([testdata/bench/task](../testdata/bench/task)): look around in a Go project, edit, test, undo. Each
server does it with its nearest tools; calls that it has no tool for are left out on both sides. What a model reads and
writes counts, at 4 characters a token: arguments and answers, without the list of tools. A few tokens of a server that
tells times move from run to run. ` + "`" + `TestTaskBesidePeers` + "`" + ` counts:

| server | calls | its tokens | codehand's for the same |
|---|---|---|---|
`

// page writes the table, and each case that failed with its request and its answer.
func page(out io.Writer, all []*server, cases []scenario, results [][]result, tokens string) error {
	var b strings.Builder
	fmt.Fprintf(&b, intro, len(cases), time.Now().UTC().Format("2006-01-02"), tries)
	b.WriteString("| server | version |\n|---|---|\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.version)
	}
	b.WriteString("\n| passed of those that it has a tool for |")
	for _, s := range all {
		b.WriteString(" " + s.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	var areas []string
	for _, c := range cases {
		if !slices.Contains(areas, c.area) {
			areas = append(areas, c.area)
		}
	}
	for _, area := range append(areas, "") {
		name := area
		if area == "" {
			name = "**all**"
		}
		b.WriteString("| " + name + " |")
		for i := range all {
			passed, of := 0, 0
			for j, c := range cases {
				if area != "" && c.area != area || results[i][j].lacks {
					continue
				}
				of++
				if results[i][j].passed {
					passed++
				}
			}
			fmt.Fprintf(&b, " %d of %d |", passed, of)
		}
		b.WriteString("\n")
	}
	if tokens != "" {
		b.WriteString(tokensIntro + tokens)
	}
	b.WriteString("\n## What failed\n")
	for i, s := range all {
		fmt.Fprintf(&b, "\n### %s\n\n", s.name)
		rows := ""
		for j, c := range cases {
			r := results[i][j]
			if r.passed || r.lacks {
				continue
			}
			rows += fmt.Sprintf("| %s/%s: %s | `%s` | `%s` | `%s` |\n", c.area, c.name, c.about, code(r.expected),
				code(r.request), code(r.said))
		}
		if rows == "" {
			b.WriteString("Nothing.\n")
			continue
		}
		b.WriteString("| case | what did not hold | last request | answer |\n|---|---|---|---|\n" + rows)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

var moving = regexp.MustCompile(`/\S*/score\d+/\S*?/work/|search_\d+_\d+|PID \d+`)

// code is a text for a span of code; what differs from run to run is left out.
func code(text string) string {
	text = moving.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "/") {
			return "/work/"
		}
		return strings.TrimRight(m, "0123456789_ ") + "…"
	})
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return '?'
		}
		return r
	}, text)
	return strings.NewReplacer("`", "'", "|", "\\|").Replace(text)
}

package search

import (
	"bufio"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codehand/tools/search/ignore"
)

// maxAlternatives is how many texts the braces of one glob may stand for.
const maxAlternatives = 64

// typesTable holds what `rg --type-list` of version 15 prints: a name, a tab, and its globs parted by blanks.
//
//go:embed types.tsv
var typesTable string

// A filter is the globs and types of a query. The zero value lets everything through.
type filter struct {
	globs    *ignore.List // "ignored" is what a glob names, "kept" is what it excludes
	positive bool         // some glob names files, so the others are out
	types    *ignore.List // of names; nil: any
}

// newFilter reads globs and types. Errors: *PatternError of kind glob, *TypeError.
func newFilter(globs, types []string) (filter, error) {
	var f filter
	var lines []string
	for _, g := range globs {
		more, err := globLines(g)
		if err != nil {
			return filter{}, err
		}
		f.positive = f.positive || len(more) > 0 && !strings.HasPrefix(g, "!")
		lines = append(lines, more...)
	}
	if len(lines) > 0 {
		f.globs = ignore.Parse([]byte(strings.Join(lines, "\n")))
	}
	lines = nil
	for _, name := range types {
		more, err := typeGlobs(name)
		if err != nil {
			return filter{}, err
		}
		lines = append(lines, more...)
	}
	if len(types) > 0 {
		f.types = ignore.Parse([]byte(strings.Join(lines, "\n")))
	}
	return f, nil
}

// globLines makes ignore lines of one glob. A "#" at its start is no comment.
func globLines(glob string) ([]string, error) {
	if strings.ContainsAny(glob, "\n\x00") {
		return nil, &PatternError{Kind: "glob", Text: fmt.Sprintf("glob %q has a newline or NUL", glob)}
	}
	text, excludes := strings.CutPrefix(glob, "!")
	if strings.Trim(text, " ") == "" {
		return nil, nil
	}
	alternatives, ok := expandBraces(text, maxAlternatives)
	if !ok {
		return nil, &PatternError{
			Kind: "glob", Text: fmt.Sprintf("glob %q stands for more than %d alternatives", glob, maxAlternatives),
		}
	}
	for i, a := range alternatives {
		if !ignore.Valid(a) {
			return nil, &PatternError{
				Kind: "glob",
				Text: fmt.Sprintf("glob %q has an unclosed or unknown class, or a backslash at its end", glob),
			}
		}
		switch {
		case excludes:
			a = "!" + a
		case strings.HasPrefix(a, "#"), strings.HasPrefix(a, "!"):
			a = `\` + a
		}
		alternatives[i] = a
	}
	return alternatives, nil
}

// file decides about a file. sure: it was named, whatever ignore files say.
func (f *filter) file(rel string) (in, sure bool) {
	if f.types != nil && f.types.Match(rel, false) != ignore.Ignore {
		return false, false
	}
	switch f.globs.Match(rel, false) {
	case ignore.Ignore:
		return true, true
	case ignore.Keep:
		return false, false
	}
	return !f.positive, false
}

func (f *filter) excludesDir(rel string) bool { return f.globs.Match(rel, true) == ignore.Keep }

// expandBraces replaces {a,b} by its alternatives, nested ones too. A brace that is not closed is
// literal. false: there are more than limit.
func expandBraces(s string, limit int) ([]string, bool) {
	open, parts, end := findBraces(s)
	if open < 0 {
		return []string{s}, true
	}
	rest, ok := expandBraces(s[end:], limit)
	if !ok {
		return nil, false
	}
	var out []string
	for _, p := range parts {
		inner, ok := expandBraces(p, limit)
		if !ok || len(out)+len(inner)*len(rest) > limit {
			return nil, false
		}
		for _, i := range inner {
			for _, r := range rest {
				out = append(out, s[:open]+i+r)
			}
		}
	}
	return out, true
}

// findBraces finds the first braces that are closed. open -1: there are none. end is behind them.
func findBraces(s string) (open int, parts []string, end int) {
	for open = 0; open < len(s); open++ {
		switch s[open] {
		case '\\':
			open++
		case '{':
			if parts, n := splitBraces(s[open:]); n > 0 {
				return open, parts, open + n
			}
		}
	}
	return -1, nil, 0
}

// splitBraces parts what stands in the braces at the start of s. Length 0: they are not closed.
func splitBraces(s string) (parts []string, n int) {
	depth, from := 0, 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, s[from:i])
				from = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(parts, s[from:i]), i + 1
			}
		}
	}
	return nil, 0
}

// typeGlobs returns the globs of a type, or a *TypeError.
func typeGlobs(name string) ([]string, error) {
	table := fileTypes()
	if globs, ok := table[name]; ok {
		return globs, nil
	}
	return nil, &TypeError{name, nearNames(name, slices.Sorted(maps.Keys(table)))}
}

func fileTypes() map[string][]string {
	out := map[string][]string{}
	lines := bufio.NewScanner(strings.NewReader(typesTable))
	for lines.Scan() {
		name, globs, _ := strings.Cut(lines.Text(), "\t")
		out[name] = strings.Fields(globs)
	}
	return out
}

// nearNames returns at most five of names that look like name: those that it begins or that begin it, then those with a
// glob "*.name", then those at most two edits away.
func nearNames(name string, names []string) []string {
	lower := strings.ToLower(strings.TrimPrefix(name, "."))
	table := fileTypes()
	var out []string
	for _, near := range []func(n string) bool{
		func(n string) bool { return n == lower },
		func(n string) bool { return slices.Contains(table[n], "*."+lower) },
		func(n string) bool {
			return len(lower) > 1 && strings.HasPrefix(n, lower) || len(n) > 1 && strings.HasPrefix(lower, n)
		},
		func(n string) bool { return edits(n, lower) <= min(2, len(lower)/2) },
	} {
		for _, n := range names {
			if len(out) < keptPaths && near(n) && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// edits counts the bytes to insert, delete or replace between two short names.
func edits(a, b string) int {
	if len(b) > 40 {
		return len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

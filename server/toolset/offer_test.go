package toolset

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/server/clients"
	"codehand/tools"
	"codehand/tools/session"
)

// Codex defers every tool and searches names, titles, descriptions and parameters by itself: it found no tool by the
// words of its hint, which it is not shown. Each tool is among the first eight, its default, for all that models type;
// and all of the list stays within what a list may cost.
func TestHintedListIsFound(t *testing.T) {
	t.Parallel()
	all := tools.All(tools.Engines{})
	offer := (Lists{}).Offer(all, true)
	for _, l := range offer.Marked { // a client that cuts at 50,000 UTF-16 units would cut what we have cut to 50,000 characters
		if b, err := l.JSON(); err != nil || !strings.Contains(string(b), `"anthropic/maxResultSizeChars":100000`) {
			t.Errorf("%s: %v: %s", l.Name, err, b)
		}
	}
	texts, size := map[string]string{}, 0
	for _, l := range offer.Hinted {
		b, err := l.JSON()
		must(t, err)
		size += len(b)
		var d struct {
			Name, Title, Description string
			InputSchema              struct{ Properties map[string]any }
		}
		must(t, json.Unmarshal(b, &d))
		if len(d.Description) > 2_000 {
			t.Errorf("%s: a description of %d bytes", d.Name, len(d.Description))
		}
		texts[d.Name] = strings.Join([]string{"mcp__codehand__" + d.Name, d.Name, d.Name, "codehand", d.Title, d.Description,
			strings.Join(slices.Sorted(maps.Keys(d.InputSchema.Properties)), " ")}, " ")
	}
	if len(texts) != len(all) || size/4 > 9_000 {
		t.Errorf("%d tools of %d in %d tokens", len(texts), len(all), size/4)
	}
	for _, x := range all {
		for _, query := range x.Spec.Finds {
			if at := slices.Index(byBM25(texts, query), x.Spec.Name); at < 0 || at >= 8 {
				t.Errorf("%q finds %s at place %d", query, x.Spec.Name, at+1)
			}
		}
	}
}

// byBM25 ranks documents as a search engine does that knows nothing but words.
func byBM25(texts map[string]string, query string) (names []string) {
	words := func(text string) (all []string) {
		text = regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(text, "$1 $2")
		for _, w := range regexp.MustCompile(`[a-z0-9]+`).FindAllString(strings.ToLower(text), -1) {
			all = append(all, strings.TrimSuffix(strings.TrimSuffix(w, "s"), "e"))
		}
		return all
	}
	docs, total := map[string][]string{}, 0
	for name, text := range texts {
		docs[name] = words(text)
		total += len(docs[name])
	}
	scores := map[string]float64{}
	for _, q := range words(query) {
		holding := 0
		for _, d := range docs {
			if slices.Contains(d, q) {
				holding++
			}
		}
		for name, d := range docs {
			n := 0.0
			for _, w := range d {
				if w == q {
					n++
				}
			}
			if n == 0 {
				continue
			}
			idf := math.Log(1 + (float64(len(docs)-holding)+0.5)/(float64(holding)+0.5))
			scores[name] += idf * n * 2.2 / (n + 1.2*(0.25+0.75*float64(len(d))*float64(len(docs))/float64(total)))
		}
	}
	return slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return strings.Compare(a, b)
	})
}

// Where commands run in PowerShell, the tools that take some say so, and no other tool changes.
func TestPowerShellIsNamed(t *testing.T) {
	t.Parallel()
	all := tools.All(tools.Engines{})
	bash, power := (Lists{}).Offer(all, true), (Lists{PowerShell: "PowerShell 7"}).Offer(all, true)
	changed := map[string]string{}
	for i, l := range power.Tools {
		before, err := bash.Tools[i].JSON()
		must(t, err)
		after, err := l.JSON()
		must(t, err)
		var d struct{ Name string }
		must(t, json.Unmarshal(after, &d))
		if string(before) != string(after) {
			changed[d.Name] = string(after)
		}
	}
	if got := slices.Sorted(maps.Keys(changed)); !slices.Equal(got, []string{"enter_worktree", "exit_worktree", "job_input", "monitor", "run_readonly", "run_shell"}) {
		t.Errorf("changed: %v", got)
	}
	for _, want := range []string{"Run a PowerShell 7 command", "PowerShell 7 command line", "there is no bash here"} {
		if text := changed["run_shell"]; !strings.Contains(text, want) || strings.Contains(text, "a bash command") {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

// Tools of mounted servers come and go: they stand last, also one that is always listed, so that the beginning of a list
// stays in the cache of a model.
func TestMountedComeLast(t *testing.T) {
	t.Parallel()
	all := tools.All(tools.Engines{})
	for _, name := range []string{"mcp__b__late", "mcp__a__listed"} {
		x := all[0]
		x.Spec.Name, x.Spec.Aliases, x.Spec.Deferred = name, nil, name == "mcp__b__late"
		all = append(all, x)
	}
	offer := (Lists{}).Offer(all, true)
	for _, c := range []struct {
		client session.Client
		active []string
		want   []string
	}{
		{session.Client{SeesAll: true}, nil, []string{"mcp__a__listed", "mcp__b__late"}},
		{session.Client{}, []string{"undo_change", "mcp__b__late"}, []string{"undo_change", "mcp__a__listed", "mcp__b__late"}},
		{session.Client{}, nil, []string{"mcp__a__listed"}},
	} {
		var names []string
		for _, l := range offer.Listed(c.client, clients.Profile{}, c.active) {
			names = append(names, l.Name)
		}
		own := names[:len(names)-len(c.want)]
		if got := names[len(own):]; !slices.Equal(got, c.want) || strings.Contains(strings.Join(own, " "), "mcp__") {
			t.Errorf("%+v: %v", c.client, names)
		}
	}
}

package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// What a word of a query is worth to an entry. The best match with the name counts, and the other places are added.
const (
	partEqual  = 10 // a part of the name or of an alias is the word
	partBegins = 6  // one begins with it
	partHolds  = 4  // one contains it, or begins it
	inHint     = 3
	inText     = 2 // the description
	inSchema   = 1 // the name of a parameter
)

// midWord is how long a word must be to be looked for within others: ask is no part of task.
const midWord = 4

// leastBegun is how long a word must be to be the beginning of a longer one: todo of todolist, web of website, but not
// up of update.
const leastBegun = 3

// worthwhile is which part of the best score an entry needs: one in so many. Who answers to two of three words stays,
// who answers to one of two does not.
const worthwhile = 5

// ranked are the deferred entries that match, best first, those of one score by name. best is the score of what has
// been found already.
func ranked(entries []Entry, r request, best int) []Entry {
	type scored struct {
		at, score int
	}
	var all []scored
	for i, e := range entries {
		if !e.Deferred {
			continue
		}
		if s := scoreOf(e, r); s > 0 {
			all = append(all, scored{i, s})
			best = max(best, s)
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(entries[a.at].Name, entries[b.at].Name))
	})
	var found []Entry
	for _, s := range all {
		if s.score*worthwhile >= best || len(r.must) > 0 {
			found = append(found, entries[s.at])
		}
	}
	return found
}

// scoreOf is the sum over all words; 0: the entry does not match.
func scoreOf(e Entry, r request) int {
	names := append([]string{e.Name}, e.Aliases...)
	for _, w := range r.must {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(strings.ToLower(n), stem(w)) }) {
			return 0
		}
	}
	var own []string
	for _, n := range names {
		own = append(own, parts(n)...)
	}
	hint, text, parameters := strings.ToLower(e.Hint), strings.ToLower(e.Description), parametersOf(e.Schema)
	sum, matched := 0, 0
	for _, w := range r.words {
		w = stem(w)
		s := partScore(own, w)
		if mentions(hint, w) {
			s += inHint
		}
		if mentions(text, w) {
			s += inText
		}
		if s == 0 && mentions(parameters, w) {
			s = inSchema
		}
		if s > 0 {
			sum, matched = sum+s, matched+1
		}
	}
	for _, w := range r.pairs {
		if s := partScore(own, stem(w)); s == partEqual {
			sum, matched = sum+s, matched+1
		}
	}
	if matched == 1 && sum <= inText && len(r.words) > 1 {
		return 0 // item of "tick an item off"
	}
	return sum * matched * matched
}

// partScore is what a word is worth to the parts of a name.
func partScore(own []string, w string) int {
	best := 0
	for _, p := range own {
		switch {
		case stem(p) == w:
			return partEqual
		case len(w) >= leastBegun && strings.HasPrefix(p, w):
			best = max(best, partBegins)
		case len(w) >= midWord && strings.Contains(p, w), len(p) >= leastBegun && strings.HasPrefix(w, p):
			best = max(best, partHolds)
		}
	}
	return best
}

// mentions says whether a word of a text begins with w, or contains it if it is long enough. Both are in lower case.
func mentions(text, w string) bool {
	if len(w) >= midWord {
		return strings.Contains(text, w)
	}
	for at := 0; ; {
		i := strings.Index(text[at:], w)
		if i < 0 {
			return false
		}
		if at += i; at == 0 || !alphanumeric(text[at-1]) {
			return true
		}
		at += len(w)
	}
}

// alphanumeric takes every byte beyond ASCII for a letter.
func alphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b >= 0x80
}

// parametersOf are the names of a schema's properties, in lower case.
func parametersOf(schema json.RawMessage) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return "" // then it is found by its other words
	}
	var b strings.Builder
	for name := range s.Properties {
		b.WriteString(strings.Join(parts(name), " ") + " ")
	}
	return b.String()
}

// Package catalog finds tools by what a model types.
//
// An Entry describes a tool without running it; Find ranks entries by the words of a query. Everything is pure: the
// same entries and the same query give the same answer in every process. The package knows no tool and no MCP, and has
// no list of synonyms: other names for a thing are in the hint and the description of its tool.
package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// An Entry is one tool. Entries are shared by all sessions of a place: they are only read.
type Entry struct {
	Name        string
	Aliases     []string
	Elsewhere   []string // names of other agents for it, in lower case: they are led here, and it is not found by them
	Description string
	Hint        string // 3 to 10 words
	Deferred    bool   // not always listed; only these are found by words
	Schema      json.RawMessage
}

// Function is the tool as models know it: one line of JSON with description, name and parameters, in this order. The
// error says that the schema is no JSON.
func (e Entry) Function() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // \u003c costs a model six characters for one
	err := enc.Encode(struct {
		Description string          `json:"description"`
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters"`
	}{e.Description, e.Name, e.Schema})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// A Found is the answer to a query.
type Found struct {
	Entries []Entry   // best first
	Named   bool      // the query was a select: Entries are what it named, in its order
	Unknown []Unknown // names of a select that are none, as they were typed
}

// An Unknown is a name that no entry has.
type Unknown struct {
	Name string
	Near []string // at most 3 names that may have been meant, best first
}

// Find answers a query, of which there are three forms; names and words count in any case.
//
//	select:A,B   the tools that have these names or aliases, in this order, each once
//	+must other  tools with the word must in their name or an alias, ranked by all words
//	words        tools ranked by these words
//
// A query that is the name or an alias of a tool finds that tool: alone if it is deferred, else before what its words
// find. Words find only deferred entries.
//
// Names and words are split where the case changes and at all that is no letter or digit, and compared without their
// endings; words that say nothing, as how and the, count only after a plus sign. A word is worth 10 to an entry if it
// is a part of the name or of an alias, 6 if one begins with it, 4 if one contains it or begins it, then 3 more in the
// hint and 2 in the description, and 1 if it is the name of a parameter and stands nowhere else. Two words that stand
// side by side count as one word, too, if that is a part of the name: to do, work tree. The sum is multiplied by the
// square of how many words the entry answers to, so that one which answers to all goes before one that answers loudly
// to a single one. Equals are in the order of their names.
//
// Find drops an entry that matches one of several words only, and that one only in its description. Without a plus sign
// it also drops entries that score less than a fifth of the best: a search for a todo list should not return every tool
// that lists something.
func Find(entries []Entry, query string) Found {
	query = strings.TrimSpace(query)
	if names, ok := selected(query); ok {
		return named(entries, names)
	}
	var first []Entry
	r, best := parse(query), 0
	if i := indexOf(entries, query); i >= 0 {
		first = []Entry{entries[i]}
		if entries[i].Deferred {
			return Found{Entries: first}
		}
		best = scoreOf(entries[i], r)
	}
	return Found{Entries: append(first, ranked(entries, r, best)...)}
}

// named finds the entries that a select names.
func named(entries []Entry, names []string) Found {
	f := Found{Named: true}
	var taken []int
	for _, name := range names {
		switch i := indexOf(entries, name); {
		case i < 0:
			if !slices.ContainsFunc(f.Unknown, func(u Unknown) bool { return strings.EqualFold(u.Name, name) }) {
				f.Unknown = append(f.Unknown, Unknown{Name: name, Near: Nearest(entries, name)})
			}
		case !slices.Contains(taken, i):
			taken = append(taken, i)
			f.Entries = append(f.Entries, entries[i])
		}
	}
	return f
}

// indexOf is the entry with this name, else the first with this alias, in any case; -1: none. Names of other agents
// are written as they are.
func indexOf(entries []Entry, name string) int {
	name = Short(name)
	if i := slices.IndexFunc(entries, func(e Entry) bool { return strings.EqualFold(e.Name, name) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(entries, func(e Entry) bool {
		return slices.ContainsFunc(e.Aliases, func(a string) bool { return strings.EqualFold(a, name) })
	})
}

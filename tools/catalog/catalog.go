// Package catalog finds tools by what a model types.
//
// An Entry is what can be said about a tool without running it; Find ranks entries
// by the words of a query. Everything is pure: the same entries and the same query
// give the same answer in every process. The package knows no tool and no MCP: what
// people call a thing stands in the hint and the description of its tool, and no
// list of synonyms is kept here.
package catalog

import (
	"encoding/json"
	"slices"
	"strings"
)

// An Entry is one tool. Entries are shared by all sessions of a place: they are only read.
type Entry struct {
	Name        string
	Aliases     []string
	Description string
	Hint        string // 3 to 10 words
	Deferred    bool   // not always listed; only these are found by words
	Schema      json.RawMessage
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
// find. Words find only deferred entries, and no entry that scores less than a third of the best: whoever asks for a
// todo list has no use for every tool that lists something.
func Find(entries []Entry, query string) Found {
	query = strings.TrimSpace(query)
	if names, ok := selected(query); ok {
		return named(entries, names)
	}
	var first []Entry
	if i := indexOf(entries, query); i >= 0 {
		first = entries[i : i+1 : i+1]
		if entries[i].Deferred {
			return Found{Entries: first}
		}
	}
	return Found{Entries: append(first, ranked(entries, parse(query))...)}
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

// indexOf is the entry with this name, else the first with this alias, in any case; -1: none.
func indexOf(entries []Entry, name string) int {
	if i := slices.IndexFunc(entries, func(e Entry) bool { return strings.EqualFold(e.Name, name) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(entries, func(e Entry) bool {
		return slices.ContainsFunc(e.Aliases, func(a string) bool { return strings.EqualFold(a, name) })
	})
}

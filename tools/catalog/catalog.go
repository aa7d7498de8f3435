// Package catalog finds tools by what a model types.
//
// An Entry is what can be said about a tool without running it; Find ranks entries
// by the words of a query. Everything is pure: the same entries and the same query
// give the same answer in every process. The package knows no tool and no MCP.
package catalog

import "encoding/json"

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
	Unknown []Unknown // names of a select that are none, as they were typed
}

// An Unknown is a name that no entry has.
type Unknown struct {
	Name string
	Near []string // at most 3 names that may have been meant, best first
}

package toolset

import "codehand/tools/tool"

// An Entry is one tool as tools/list shows it, for people.
type Entry struct {
	Tool     tool.Tool
	JSON     []byte // the entry of tools/list
	Deferred bool   // most clients are shown it only when it was found
}

// Tokens estimates what the entry costs in a model's context: bytes / 4.
func (e Entry) Tokens() int { return (len(e.JSON) + 3) / 4 }

// Entries are all that tools/list shows to clients that are offered o, in its order.
func (set *Set) Entries(o Offer) []Entry {
	now := set.current().byName
	entries := make([]Entry, 0, len(o.Tools))
	for _, d := range o.Tools {
		b, err := d.JSON()
		if err != nil {
			continue // tools make their schemas themselves, and tests look at each
		}
		late := !d.always && set.Lists.Deferral != deferralOff
		entries = append(entries, Entry{Tool: now[d.Name], JSON: b, Deferred: late})
	}
	return entries
}

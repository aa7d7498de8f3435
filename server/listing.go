package server

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// active is what a session has found, without opening it: nothing begins because a client lists.
func (e *engines) active(key session.Key) session.Cell[[]string] {
	return session.NewCell[[]string](e.memory(key), activeCell)
}

// activeCell names the value in which a session keeps the tools that it found.
const activeCell = "cell.active"

// Digest is the SHA-256, in hex, of what every client of a release is told before it calls anything: the entries of
// tools/list, if nothing is switched off and no back-end is configured, each on a line, and the instructions but for
// what they say of the directories and the mode of a session. It depends on nothing else, so a list that differs was
// changed by the operator's settings, or by nobody who should have.
func Digest(tools []tool.Tool) (string, error) {
	sum := sha256.New()
	plain := slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return t.Spec.Backed })
	for _, d := range (tenants.Lists{}).Offer(plain, true).Tools {
		b, err := d.JSON()
		if err != nil {
			return "", err
		}
		sum.Write(b)
		sum.Write([]byte{'\n'})
	}
	sum.Write([]byte(fullAdvice()))
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// An Entry is one tool as tools/list shows it, for people.
type Entry struct {
	Tool     tool.Tool
	JSON     []byte // the entry of tools/list
	Deferred bool   // most clients are shown it only when it was found
}

// Tokens estimates what the entry costs in a model's context: bytes / 4.
func (e Entry) Tokens() int { return (len(e.JSON) + 3) / 4 }

// List returns all that tools/list shows to anybody, in its order.
func (s *Server) List() []Entry {
	all := s.local.Offers(true)
	entries := make([]Entry, 0, len(all.Tools))
	for i, d := range all.Tools {
		b, err := d.JSON()
		if err != nil {
			continue // tools make their schemas themselves, and tests look at each
		}
		late := i >= all.Always && s.cfg.Tools.Deferral != tenants.DeferralOff
		entries = append(entries, Entry{Tool: s.tools.table[d.Name], JSON: b, Deferred: late})
	}
	return entries
}

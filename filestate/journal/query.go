package journal

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Query says which changes History returns. The zero Query means all.
type Query struct {
	ID        string
	Path      string   // canonical; changes that include this file
	Below     []string // canonical; changes that include one of these files, or a file below one of them; empty: all
	Workspace string
	Session   string
	Kept      bool // also what is no change of ours
	Limit     int  // 0: all

	// Before is the id of a change: only older ones than that; "": all. The next page of a History that its Limit ended
	// continues where that stopped, if it is asked of the same Journal and no change was made since.
	Before string

	// Fits has the last word about an entry, before it counts for Limit; nil: all fit. It is called newest first, in
	// the caller's goroutine.
	Fits func(Entry) bool
}

// mayBe says whether the note of an id that is about this may be meant, or is where q begins.
func (q *Query) mayBe(id string, a *about) bool {
	return id == q.ID || id == q.Before || q.ID == "" && q.names(a.paths)
}

// names says whether these files of one change make it one that is meant.
func (q *Query) names(paths []string) bool {
	return (q.Path == "" || slices.Contains(paths, q.Path)) &&
		(len(q.Below) == 0 || slices.ContainsFunc(paths, func(path string) bool {
			return slices.ContainsFunc(q.Below, func(dir string) bool { return isBelow(dir, path) })
		}))
}

func isBelow(dir, path string) bool {
	if len(path) < len(dir) || !strings.EqualFold(path[:len(dir)], dir) {
		return false // as what follows would say, which takes ten times as long
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (q *Query) fits(h *Header) bool {
	return (q.Kept || h.Kind == KindChange) &&
		(q.ID == "" || q.ID == h.ID) &&
		(q.Workspace == "" || q.Workspace == h.By.Workspace) &&
		(q.Session == "" || q.Session == h.By.Session) &&
		q.names(h.paths())
}

func (h *Header) paths() []string {
	paths := make([]string, len(h.Files))
	for i, f := range h.Files {
		paths[i] = f.Path
	}
	return paths
}

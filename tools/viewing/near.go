package viewing

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// RestNotes says in which directories the hits behind a page are; nothing, if all are where was searched.
func (p PageNote) RestNotes(env tool.Env, q search.GrepQuery, a search.GrepAnswer) []string {
	left := p.Total - p.From - p.Shown
	if !p.More || p.Shown == 0 || left <= 0 || len(a.Rest) == 1 && a.Rest[0].Path == q.Scope.Place.Path {
		return nil
	}
	var parts []string
	for _, r := range a.Rest {
		parts = append(parts, results.Count(r.N)+" in "+wording.ShownName(env, r.Path)+"/")
		left -= r.N
	}
	if left > 0 {
		parts = append(parts, results.Count(left)+" elsewhere")
	}
	return []string{"(Still to come: " + AtLeast(p.AtLeast, strings.Join(parts, ", ")) + ".)"}
}

const (
	// nearWork is how many files and directories all searches for a hint may look at together, for the answer is known
	// and waits for them. It bounds work and promises no time: 100 to 300 ms were measured, the more the busier the
	// machine.
	nearWork = 4000
	// nearFor bounds them on a disk that is slow.
	nearFor = time.Second
)

// A nearQuery is a query that a pattern without hits could have been.
type nearQuery struct {
	as      string // said of its matches
	change  func(*search.GrepQuery)
	ignored bool
}

// NearNotes says what a pattern without hits would find if it were asked in another way: whatever the case, as a text,
// without glob and type, in what ignore files leave out. Each is one more search of the same scope, so that no rule
// about files is passed by. In a tree that is too large for that it looks at the first files in path order.
func NearNotes(ctx context.Context, env tool.Env, q search.GrepQuery, a search.GrepAnswer) []string {
	if a.NFiles > 0 || !a.Coverage.Complete {
		return nil
	}
	var queries []nearQuery
	if !q.Fold {
		queries = append(queries, nearQuery{as: "with -i", change: func(n *search.GrepQuery) { n.Fold = true }})
	}
	if text := regexp.QuoteMeta(q.Pattern); text != q.Pattern {
		queries = append(queries, nearQuery{as: "as the text itself (pattern " + wording.Clip(text, 100) + ")",
			change: func(n *search.GrepQuery) { n.Literal = true }})
	}
	if len(q.Globs)+len(q.Types) > 0 {
		queries = append(queries, nearQuery{as: "without glob and type",
			change: func(n *search.GrepQuery) { n.Globs, n.Types = nil, nil }})
	}
	queries = append(queries, nearQuery{as: "that ignore files leave out", ignored: true,
		change: func(n *search.GrepQuery) { n.LeftOut = true }})
	end, work := time.Now().Add(nearFor), nearWork
	var parts []string
	for i, near := range queries {
		next := q
		next.Mode, next.Newest, next.Spans, next.Rank, next.Progress = search.Count, false, false, nil, nil
		next.Offset, next.Limit = 0, 1
		next.MaxWork, next.Within = work/(len(queries)-i), time.Until(end)
		if next.Within <= 0 {
			break
		}
		near.change(&next)
		found, err := env.Search.Grep(ctx, next)
		if err != nil || found.Coverage.Why == search.Time { // how far it came is a matter of chance
			break
		}
		if work -= found.Work; found.NFiles > 0 {
			parts = append(parts, near.text(env, found))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"(Near: " + strings.Join(parts, "; ") + ".)"}
}

// text says what a query found.
func (n nearQuery) text(env tool.Env, found search.GrepAnswer) string {
	text := AtLeast(!found.Exact, wording.Plural(found.NLines, "match", "matches")+" in "+
		wording.Plural(found.NFiles, "file", "files")) + " " + n.as
	if !n.ignored {
		return text
	}
	dirs := found.Rest
	first := filepath.ToSlash(filepath.Dir(found.Files[0].Path)) // is in the answer, and not in the rest
	at := slices.IndexFunc(dirs, func(d search.InDir) bool { return wording.Below(d.Path, first) })
	switch {
	case at >= 0:
		dirs[at].N++
	case len(dirs) == 0:
		return text + " (name it in path: " + wording.ShownName(env, first) + ")"
	default:
		dirs = append([]search.InDir{{Path: first, N: 1}}, dirs...)
	}
	if len(dirs) == 1 {
		return text + " (name it in path: " + wording.ShownName(env, dirs[0].Path) + ")"
	}
	var names []string
	for _, d := range dirs[:min(len(dirs), 3)] {
		names = append(names, wording.ShownName(env, d.Path)+" "+results.Count(d.N))
	}
	return text + " (name one in path: " + strings.Join(names, ", ") + ")"
}

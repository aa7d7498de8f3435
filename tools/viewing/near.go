package viewing

import (
	"context"
	"path/filepath"
	"regexp"
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

// nearFor is how long all searches for a hint may take together: the answer is known and waits for it.
const nearFor = time.Second

// NearNotes says what a pattern without hits would find if it were asked in another way: whatever the case, as a text,
// without glob and type, in what ignore files leave out. Each is one more search of the same scope, so that no rule
// about files is passed by.
func NearNotes(ctx context.Context, env tool.Env, q search.GrepQuery, a search.GrepAnswer) []string {
	if a.NFiles > 0 || !a.Coverage.Complete {
		return nil
	}
	end := time.Now().Add(nearFor)
	var parts []string
	try := func(as string, change func(*search.GrepQuery)) []search.InDir {
		near := q
		near.Mode, near.Newest, near.Spans, near.Progress = search.Count, false, false, nil
		near.Offset, near.Limit = 0, 1
		if near.Within = time.Until(end); near.Within <= 0 {
			return nil
		}
		change(&near)
		found, err := env.Search.Grep(ctx, near)
		if err != nil || found.NFiles == 0 {
			return nil
		}
		parts = append(parts, AtLeast(!found.Exact, wording.Plural(found.NLines, "match", "matches"))+" in "+
			wording.Plural(found.NFiles, "file", "files")+" "+as)
		if len(found.Rest) == 0 {
			return []search.InDir{{Path: filepath.Dir(found.Files[0].Path), N: 1}}
		}
		return found.Rest
	}
	if !q.Fold {
		try("with -i", func(n *search.GrepQuery) { n.Fold = true })
	}
	if text := regexp.QuoteMeta(q.Pattern); text != q.Pattern {
		try("as the text itself (pattern "+wording.Clip(text, 100)+")",
			func(n *search.GrepQuery) { n.Literal = true })
	}
	if len(q.Globs)+len(q.Types) > 0 {
		try("without glob and type", func(n *search.GrepQuery) { n.Globs, n.Types = nil, nil })
	}
	dirs := try("that ignore files leave out", func(n *search.GrepQuery) { n.Ignored = true })
	if len(parts) == 0 {
		return nil
	}
	if len(dirs) > 0 {
		parts[len(parts)-1] += " (name it in path: " + wording.ShownName(env, dirs[0].Path) + ")"
	}
	return []string{"(Near: " + strings.Join(parts, "; ") + ".)"}
}

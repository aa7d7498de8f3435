package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"codehand/tools/search/index"
)

// ErrNotDirectory says that the place of a Files query is a file.
var ErrNotDirectory = errors.New("not a directory")

// Files lists the newest files whose names match, ties by path. The total is exact unless time ran out. Errors:
// *PatternError, *TypeError, ErrNotDirectory, ErrNotRegular, ErrGone (the place), ctx.Err(), and those of opening the
// place.
func (e *Engine) Files(ctx context.Context, q FileQuery) (FileAnswer, error) {
	if err := ctx.Err(); err != nil {
		return FileAnswer{}, err
	}
	p, err := newNamePattern(q.Pattern)
	if err != nil {
		return FileAnswer{}, err
	}
	names, err := newFilter(q.Globs, q.Types)
	if err != nil {
		return FileAnswer{}, err
	}
	place, info, err := q.Place.open()
	if err != nil {
		return FileAnswer{}, err
	}
	if !info.IsDir() {
		return FileAnswer{}, errors.Join(fmt.Errorf("list %s: %w", q.Place.Path, ErrNotDirectory), place.Close())
	}
	if q.Within <= 0 {
		q.Within = defaultWithin
	}
	// A directory that the pattern names itself is entered.
	q.SkipDirs = slices.DeleteFunc(slices.Clone(q.SkipDirs), p.mentions)
	r := e.newRun(ctx, q.Scope, q.Within, q.Progress)
	defer r.end()
	r.walk.filter = names
	r.walk.leads, r.walk.named = p.leads, p.matches
	c := &collector{dirs: tally{}, newest: true, toEnd: true, maxText: defaultMaxText, halt: r.halt}
	q.Offset, q.Limit = max(q.Offset, 0), max(q.Limit, 0)
	if q.Limit > 0 {
		c.need = q.Offset + q.Limit
	}
	return r.list(place, q, p, c)
}

// list walks, and puts the answer together.
func (r *run) list(place *os.File, q FileQuery, p *namePattern, c *collector) (FileAnswer, error) {
	d, err := startFolder(q.Place, place)
	if err != nil {
		return FileAnswer{}, err
	}
	r.tree(d, func() visitor {
		return func(d *shared, in *index.Dir, f listed) {
			r.log.searched(1, 0)
			if p.matches(f.rel) {
				r.found(c, d, in, f)
			}
		}
	})
	cov, err := r.coverage()
	if err != nil {
		return FileAnswer{}, err
	}
	return c.files(q.Offset, q.Limit, cov), nil
}

// found takes a file whose name matches.
func (r *run) found(c *collector, d *shared, in *index.Dir, f listed) {
	st, err := d.lstat(in.Entries[f.number].Name)
	switch {
	case vanished(err):
		r.walk.gone(d, in, f)
	case err != nil:
		r.walk.note(ofUnreadable, f.rel)
	case st.regular && r.walk.may(f.rel, st):
		c.open(&entry{rel: f.rel, size: st.size, hits: FileHits{Path: r.walk.abs(f.rel), ModTime: st.mtime}})
	}
}

// files makes the answer of a listing.
func (c *collector) files(offset, limit int, cov Coverage) FileAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	out := FileAnswer{N: c.nFiles, Coverage: cov}
	kept := c.inOrder()
	kept = kept[min(offset, len(kept)):]
	if limit > 0 {
		kept = kept[:min(limit, len(kept))]
	}
	for _, e := range kept {
		out.Files = append(out.Files, FileInfo{Path: e.hits.Path, ModTime: e.hits.ModTime, Size: e.size})
	}
	return out
}

// A namePattern is a doublestar pattern, its braces expanded where that is not too much.
type namePattern struct {
	list []oneName
}

// A oneName is one pattern.
type oneName struct {
	text   string
	suffix string // "**/*suffix" is decided by it alone
	prefix string // the directories that every match lies in, "" or ending in "/"
	depth  int    // components of every match; 0: any number
}

// newNamePattern reads a pattern. Its error is a *PatternError.
func newNamePattern(text string) (*namePattern, error) {
	if text == "" || !doublestar.ValidatePattern(text) || strings.Contains(text, "\x00") {
		return nil, &PatternError{
			Offset: badOffset(text), Kind: "syntax", Text: fmt.Sprintf("file pattern %q is not valid", text),
		}
	}
	all, ok := expandBraces(text, maxAlternatives)
	if !ok {
		return &namePattern{[]oneName{{text: text}}}, nil
	}
	p := &namePattern{}
	for _, t := range all {
		parts := strings.Split(t, "/")
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "." || s == "" })
		if slices.Contains(parts, "..") {
			return nil, &PatternError{Kind: "syntax", Text: fmt.Sprintf("file pattern %q leaves its directory", text)}
		}
		if len(parts) > 0 {
			p.list = append(p.list, newOneName(parts))
		}
	}
	return p, nil
}

// badOffset finds the byte from which on a pattern is not valid.
func badOffset(text string) int {
	n := 0
	for i := range text {
		if doublestar.ValidatePattern(text[:i]) {
			n = i
		}
	}
	return n
}

func newOneName(parts []string) oneName {
	n := oneName{text: strings.Join(parts, "/"), depth: len(parts)}
	if slices.Contains(parts, "**") {
		n.depth = 0
	}
	for _, dir := range parts[:len(parts)-1] {
		if special(dir) {
			break
		}
		n.prefix += dir + "/"
	}
	if rest, ok := strings.CutPrefix(n.text, "**/*"); ok && rest != "" && !special(rest) &&
		!strings.Contains(rest, "/") {
		n.suffix = rest
	}
	return n
}

func special(s string) bool { return strings.ContainsAny(s, `*?[{\`) }

func (p *namePattern) matches(rel string) bool {
	return slices.ContainsFunc(p.list, func(n oneName) bool {
		if n.suffix != "" {
			return strings.HasSuffix(rel, n.suffix)
		}
		ok, err := doublestar.Match(n.text, rel)
		return err == nil && ok
	})
}

// leads says that a directory can have matches below it.
func (p *namePattern) leads(dir string) bool {
	return slices.ContainsFunc(p.list, func(n oneName) bool {
		if n.depth > 0 && strings.Count(dir, "/")+2 > n.depth {
			return false
		}
		return strings.HasPrefix(dir+"/", n.prefix) || strings.HasPrefix(n.prefix, dir+"/")
	})
}

// mentions says that a name is a component of the pattern.
func (p *namePattern) mentions(name string) bool {
	return slices.ContainsFunc(p.list, func(n oneName) bool {
		for part := range strings.SplitSeq(n.text, "/") {
			if ok, err := path.Match(part, name); part == name || err == nil && ok && !strings.HasPrefix(part, "*") {
				return true
			}
		}
		return false
	})
}

package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"codehand/tools/search/index"
	"codehand/tools/search/pattern"
)

// Grep searches. Errors: *PatternError, *TypeError, ErrNotRegular, ErrGone (the place), ctx.Err(), and those of opening
// the place, or of reading it if it is a file in which nothing was found before. A time-out is no error: the answer
// says that it is not complete.
//
// The answer is the same whatever the number of workers: what is in it is decided by order alone.
func (e *Engine) Grep(ctx context.Context, q GrepQuery) (GrepAnswer, error) {
	if err := ctx.Err(); err != nil {
		return GrepAnswer{}, err
	}
	q = q.withDefaults()
	prog, err := pattern.New(q.Pattern, q.Fold, q.Literal, q.Multiline)
	if err != nil {
		return GrepAnswer{}, err
	}
	names, err := newFilter(q.Globs, q.Types)
	if err != nil {
		return GrepAnswer{}, err
	}
	place, info, err := q.Place.open()
	if err != nil {
		return GrepAnswer{}, err
	}
	r := e.newRun(ctx, q.Scope, q.Within, q.Progress)
	defer r.end()
	if q.MaxWork > 0 {
		r.workers = 1 // another one would make it a matter of chance what is looked at
	}
	r.walk.filter = names
	g := &grep{run: r, q: &q, prog: prog, c: &collector{
		dirs:    tally{},
		maxText: q.MaxText, byLine: q.Mode == Lines, newest: q.Newest, toEnd: q.Mode == Count, halt: r.halt,
	}}
	g.c.around.before, g.c.around.after = q.Before, q.After
	if q.Limit > 0 {
		g.c.need = q.Offset + q.Limit
	}
	if info.IsDir() {
		defer g.c.rank(q)()
		if err := g.directory(place); err != nil {
			return GrepAnswer{}, err
		}
	} else {
		g.named(place, fileStat(info))
	}
	return g.answer()
}

// A grep is one Grep at work.
type grep struct {
	*run
	q    *GrepQuery
	prog *pattern.Program
	ask  *index.Question // nil: summaries can say nothing about the pattern
	c    *collector
	work atomic.Int64 // files and directories so far
}

// worked counts one file or directory that is looked at, and ends the query that may look at no more.
func (g *grep) worked() {
	n := g.work.Add(1)
	if g.q.MaxWork > 0 && n > int64(g.q.MaxWork) {
		g.halt.stop(spent, nil)
	}
	if g.q.Rank != nil && n == 1+int64(cmp.Or(g.q.Rank.Files, rankedFiles)) {
		g.c.byPath()
	}
}

// directory searches what is below a directory.
func (g *grep) directory(f *os.File) error {
	d, err := startFolder(g.q.Place, f)
	if err != nil {
		return err
	}
	if !g.q.Newest && !g.c.toEnd && g.q.Limit > 0 {
		g.walk.behind = g.c.behind
	}
	if g.q.MaxWork > 0 {
		g.walk.worked = g.worked
	}
	var stop func() bool
	g.walk.fixed = func() { stop = g.c.countUntil(g.q.CountFor) }
	if g.e.table != nil {
		g.ask = index.Ask(g.prog.Required())
	}
	g.tree(d, func() visitor {
		s := g.scanner()
		return func(d *shared, in *index.Dir, f listed) { g.file(s, d, in, f) }
	})
	g.walk.mu.Lock()
	defer g.walk.mu.Unlock()
	if stop != nil {
		stop()
	}
	return nil
}

func (g *grep) scanner() *scanner {
	return &scanner{q: g.q, m: pattern.NewMatcher(g.prog, g.halt.stopped), src: source{engine: g.e, halt: g.halt},
		sink: &sink{c: g.c, q: g.q}}
}

// file searches one file of a walk.
func (g *grep) file(s *scanner, d *shared, in *index.Dir, at listed) {
	name := in.Entries[at.number].Name
	if g.worked(); g.halt.stopped() {
		g.walk.leave(at.rel)
		return
	}
	if g.ruledOut(d, in, at) {
		return
	}
	f, err := d.open(name)
	if err != nil {
		if vanished(err) {
			g.walk.gone(d, in, at)
		} else {
			g.walk.note(ofUnreadable, at.rel)
		}
		return
	}
	defer f.close()
	f.whole = d.trusted
	g.scan(s, f, f.stat, at.rel, func() (stat, error) { return d.lstat(name) })
	g.walk.memory.want(in, at, f.stat)
}

// named searches a file that the query names, whatever it is like.
func (g *grep) named(f *os.File, st stat) {
	s := g.scanner()
	c := newCrew()
	c.spawn(g.run, func() {
		defer f.Close() // read only
		g.scan(s, f, st, "", func() (stat, error) {
			info, err := g.q.Place.Dir.Lstat(g.q.Place.name())
			if err != nil {
				return stat{}, err
			}
			return fileStat(info), nil
		})
	})
	g.wait(c)
}

// scan searches an open file and notes what the Coverage says about it. rel "": the query names it. look finds what
// stands at its name now.
func (g *grep) scan(s *scanner, f io.Reader, st stat, rel string, look func() (stat, error)) {
	named := rel == ""
	e := &entry{rel: rel, hits: FileHits{Path: g.walk.abs(rel), ModTime: st.mtime}}
	s.sink.start(e, func() bool { return g.may(rel, st, look) })
	err := s.read(f, named)
	s.sink.end()
	switch {
	case errors.Is(err, errStopped):
		g.log.searched(0, s.src.file.n)
		g.walk.leave(rel)
	case err != nil:
		if named {
			g.log.unread(err)
		}
		g.walk.note(ofUnreadable, rel)
	default:
		g.log.searched(1, s.src.file.n)
		g.noteTraits(s.traits, rel, named)
	}
}

// may is walk.may of a file that was opened by its name. Where the names of a file matter, that name must still be its
// own: a link to it that came and went between would have left one name, which is another one.
func (g *grep) may(rel string, st stat, look func() (stat, error)) bool {
	if g.walk.scope.SkipID != nil {
		now, err := look()
		if err != nil || now.dev != st.dev || now.ino != st.ino {
			return false
		}
		st.links = max(st.links, now.links)
	}
	return g.walk.may(rel, st)
}

// noteTraits counts what was left out of a file.
func (g *grep) noteTraits(t traits, rel string, named bool) {
	if t.binary && !named {
		g.walk.note(ofBinary, rel)
	}
	if t.partial {
		g.walk.note(ofPartial, rel)
	}
	if t.tooLarge {
		g.walk.note(ofTooLarge, rel)
	}
	if t.longLine {
		g.walk.note(ofLongLines, rel)
	}
	if t.tooLarge || t.longLine {
		g.log.incomplete(TooLarge)
	}
}

// answer puts together what was found.
func (g *grep) answer() (GrepAnswer, error) {
	why, _ := g.halt.reason()
	a := g.c.answer(g.q.Offset, g.q.Limit, why == running)
	for i, r := range a.Rest {
		if r.Path == "." {
			r.Path = ""
		}
		a.Rest[i].Path = g.walk.abs(r.Path)
	}
	if g.c.tooMuch() {
		g.log.incomplete(Memory)
	}
	cov, err := g.coverage()
	if err != nil {
		return GrepAnswer{}, err
	}
	if err := g.log.failure(); err != nil && a.NFiles == 0 { // that there is no match is not known
		return GrepAnswer{}, fmt.Errorf("read %s: %w", g.q.Place.Path, err)
	}
	if g.q.MaxWork > 0 {
		a.Work = min(int(g.work.Load()), g.q.MaxWork)
	}
	a.Coverage, a.Exact = cov, why == running
	return a, nil
}

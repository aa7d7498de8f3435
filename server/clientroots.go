package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/workspace"
)

const (
	// rootsTime is how long a client has to say which roots it wants to be used, and how long its calls wait for that: one
	// that never answers costs its first call this long.
	rootsTime = 5 * time.Second
	// maxClientRoots is how many of a client's roots are looked at.
	maxClientRoots = 100
	// maxClientRoot is how long one of them may be, in bytes: the longest path, with each byte of it escaped.
	maxClientRoot = 3 * 4096
)

// The notifications of clients that mean something here.
const (
	noteCancelled    = "notifications/cancelled"
	noteInitialized  = "notifications/initialized"
	noteRootsChanged = "notifications/roots/list_changed"
)

// clientRoots are what the client of one connection or session said of the roots that it wants to be used. They only ever
// take roots away. It is safe for concurrent use; the zero value is of a client that says nothing.
type clientRoots struct {
	mu    sync.Mutex    // covers what follows
	due   bool          // it is to be asked before its next call
	asked chan struct{} // closed when the question that was put is over; nil: none is open
	said  []string      // the answer to the last
	at    *place        // that part belongs to; nil: to none
	part  *workspace.Narrowing
}

// begin takes what was kept of a client that declared roots. nil: it was never asked, or never answered.
func (r *clientRoots) begin(c *clientRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due, r.said, r.at = c.HasRoots && c.Roots == nil, c.Roots, nil
}

// changed notes that the client has other roots now.
func (r *clientRoots) changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = true
}

// settle asks the client, if that is due, and waits until it has answered, at most for patience. Whoever comes meanwhile waits,
// too. A client that does not answer is not asked again until it says that its roots changed.
func (r *clientRoots) settle(ctx context.Context, patience time.Duration, ask func(context.Context) (said []string, ok bool)) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for limit.Err() == nil {
		over, mine := r.open(ask != nil)
		switch {
		case over == nil:
			return
		case mine:
			said, ok := ask(limit)
			r.close(said, ok, ctx.Err() != nil)
		default:
			select {
			case <-over:
			case <-limit.Done():
			}
		}
	}
}

// open begins a question, if one is due and may be put, and returns when it, or the one before it, is over. mine: the caller
// asks, and closes it. nil: there is nothing to wait for.
func (r *clientRoots) open(may bool) (over <-chan struct{}, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil && r.due && may {
		r.due, r.asked, mine = false, make(chan struct{}), true
	}
	return r.asked, mine
}

// close ends the question. One that only the caller's own end has ended is put again.
func (r *clientRoots) close(said []string, ok, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ok:
		r.said, r.at = said, nil
	case cut:
		r.due = true
	}
	close(r.asked)
	r.asked = nil
}

// in returns what they leave of the roots of a place; nil: all. fresh are those that were not looked at before and have no
// part in it.
func (r *clientRoots) in(p *place) (part *workspace.Narrowing, fresh []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at != p {
		r.part, fresh = p.space.Narrowing(r.said)
		r.at = p
	}
	return r.part, fresh
}

// heedRoots asks the client of a call which roots it wants to be used, if nobody has.
func (s *Server) heedRoots(ctx context.Context, rec *record) {
	if rec.roots == nil {
		return
	}
	var ask func(context.Context) ([]string, bool)
	if rec.rootsTo != nil {
		ask = func(ctx context.Context) ([]string, bool) {
			said, ok := askRoots(ctx, rec.rootsTo)
			if ok && rec.rootsSaid != nil {
				rec.rootsSaid(ctx, said)
			}
			return said, ok
		}
	}
	rec.roots.settle(ctx, s.roots, ask)
}

// askRoots puts the question. ok is false if there is no answer, or none that can be read.
func askRoots(ctx context.Context, to asking) (said []string, ok bool) {
	answer := put(ctx, to, string(mcp.MethodListRoots), nil, rootsTime)
	var list struct {
		Roots []struct {
			URI string `json:"uri"`
		} `json:"roots"`
	}
	if answer == nil || json.Unmarshal(answer, &list) != nil || list.Roots == nil {
		return nil, false
	}
	said = []string{}
	for _, root := range list.Roots[:min(len(list.Roots), maxClientRoots)] {
		if len(root.URI) <= maxClientRoot && strings.HasPrefix(root.URI, "file://") {
			said = append(said, root.URI)
		}
	}
	return said, true
}

// narrow takes from the space of a legacy request what its client does not want to be used. The rules stay those of all
// roots: with fewer, one that forbids could be lost.
func (s *Server) narrow(rec *record, space *workspace.Space) *workspace.Space {
	if rec.roots == nil {
		return space
	}
	part, fresh := rec.roots.in(rec.place)
	for _, root := range fresh {
		s.log.Warn("a root that the client names has nothing in common with the configured ones and is ignored", "root", clip(root, maxClientName))
	}
	if part == nil {
		return space
	}
	space = space.Narrow(part)
	for _, d := range rec.place.skillDirs { // one in a root was no area of its own, and the operator named it
		if !space.Inside(d.Path) {
			space = space.Readable(d.Path)
		}
	}
	return space
}

// A connRoots asks the client of a connection, while none of its requests need be open.
type connRoots struct{ c *conn }

func (a connRoots) put(line []byte) error { return a.c.out.write(line, rootsTime, nil) }
func (a connRoots) withdraw(line []byte)  { _ = a.c.out.write(line, a.c.out.patience, nil) } // who does not read sees no question
func (a connRoots) gone() <-chan struct{} { return a.c.out.failed }
func (a connRoots) questions() *questions { return &a.c.asks }

// heedRoots asks the client if that is due, before its next call has to wait for it.
func (c *conn) heedRoots(ctx context.Context) {
	if client := c.client.Load(); client == nil || !client.HasRoots {
		return
	}
	c.crew.do(func() {
		c.roots.settle(ctx, c.s.roots, func(ctx context.Context) ([]string, bool) { return askRoots(ctx, connRoots{c}) })
	})
}

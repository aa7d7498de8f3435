package server

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/results"
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
// take roots away, down to none. An empty list says nothing: many clients send one while no folder is open; it narrows
// nothing, and gives nothing back. It is safe for concurrent use; the zero value is of a client that says nothing.
type clientRoots struct {
	looking sync.Mutex // held while a client's links are followed, which a dead mount makes last

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
	r.due = c.HasRoots && c.Roots == nil
	if c.Roots != nil { // or what it named before it initialized again still holds
		r.said, r.at = c.Roots, nil
	}
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
		r.said, r.at = r.holds(said), nil
	case cut:
		r.due = true
	}
	close(r.asked)
	r.asked = nil
}

// after is what holds after an answer.
func (r *clientRoots) after(said []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds(said)
}

// holds is after for a caller that has the lock.
func (r *clientRoots) holds(said []string) []string {
	if len(said) == 0 && r.said != nil {
		return r.said
	}
	return said
}

// in returns what they leave of the roots of a place; nil: all. fresh are those that were not looked at before and have no
// part in it. The disk is looked at without the lock.
func (r *clientRoots) in(p *place) (part *workspace.Narrowing, fresh []string) {
	for {
		r.mu.Lock()
		said, part, known := r.said, r.part, r.at == p
		r.mu.Unlock()
		if known {
			return part, nil
		}
		part, fresh := p.space.Narrowing(said)
		r.mu.Lock()
		same := slices.Equal(said, r.said)
		if same && r.at == p { // another call was first
			part, fresh = r.part, nil
		}
		if same {
			r.part, r.at = part, p
		}
		r.mu.Unlock()
		if same {
			return part, fresh
		}
	}
}

// follow replaces those of the client's roots that lie nowhere in the space by what their links lead to. It is for the client
// that started this process: to look wherever somebody else says is not for us. What takes longer than ctx stays as it is.
func (r *clientRoots) follow(ctx context.Context, space *workspace.Space, said []string) []string {
	_, apart := space.Narrowing(said)
	if len(apart) == 0 || !r.looking.TryLock() { // what is on a dead mount is not waited for twice
		return said
	}
	led := make(chan []string, 1)
	go func() { // it ends when the disk answers, and keeps others from beginning until then
		all := slices.Clone(said)
		for i, dir := range all {
			if slices.Contains(apart, dir) {
				all[i] = workspace.Real(dir)
			}
		}
		r.looking.Unlock() // first: whoever gets the answer may ask the next question at once
		led <- all
	}()
	select {
	case all := <-led:
		return all
	case <-ctx.Done():
		return said
	}
}

// heedRoots asks the client of a call which roots it wants to be used, if nobody has.
func (s *Server) heedRoots(ctx context.Context, rec *record) {
	if rec.roots == nil {
		return
	}
	var ask func(context.Context) ([]string, bool)
	if rec.rootsTo != nil {
		ask = func(ctx context.Context) ([]string, bool) {
			said, ok := s.askRoots(ctx, rec.rootsTo)
			if ok && rec.rootsSaid != nil {
				rec.rootsSaid(ctx, rec.roots.after(said))
			}
			return said, ok
		}
	}
	rec.roots.settle(ctx, s.roots, ask)
}

// askRoots puts the question. ok is false if there is no answer, or none that can be read.
func (s *Server) askRoots(ctx context.Context, to asking) (said []string, ok bool) {
	answer := put(ctx, to, string(mcp.MethodListRoots), nil, s.roots)
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
		said = append(said, fileRoot(root.URI))
	}
	if c, ok := to.(connRoots); ok && s.team == nil { // over SSE it is a stranger
		said = c.c.roots.follow(ctx, c.c.at.space, said)
	}
	return said, true
}

// fileRoot is a root's URI as a workspace reads it: RFC 8089 also allows file:/path, which Java writes, and any case; a plain
// path, which the protocol does not allow, says as well what is meant. What is no file is named all the same, so that the list
// is not empty.
func fileRoot(uri string) string {
	const scheme = "file:"
	head, rest := uri[:min(len(scheme), len(uri))], uri[min(len(scheme), len(uri)):]
	if len(uri) <= maxClientRoot && filepath.IsAbs(uri) {
		return uri
	}
	if len(uri) > maxClientRoot || !strings.EqualFold(head, scheme) || !strings.HasPrefix(rest, "/") {
		return "not used: " + results.Line(uri, maxClientName)
	}
	if !strings.HasPrefix(rest, "//") {
		rest = "//" + rest
	}
	return scheme + rest
}

// narrow takes from the space of a legacy request what its client does not want to be used. The rules stay those of all
// roots: with fewer, one that forbids could be lost.
func (s *Server) narrow(rec *record, space *workspace.Space) *workspace.Space {
	if rec.roots == nil {
		return space
	}
	part, fresh := rec.roots.in(rec.place)
	for _, root := range fresh {
		s.log.Warn("a root that the client names has nothing in common with the configured ones and is ignored", "root", results.Line(root, maxClientName))
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

func (a connRoots) put(line []byte) error { return a.c.out.WriteLine(line, a.c.s.roots, nil) }
func (a connRoots) withdraw(line []byte)  { _ = a.c.out.WriteLine(line, a.c.out.Patience, nil) } // who does not read sees no question
func (a connRoots) gone() <-chan struct{} { return a.c.out.Failed }
func (a connRoots) questions() *questions { return &a.c.asks }

// heedRoots asks the client if that is due, before its next call has to wait for it.
func (c *conn) heedRoots(ctx context.Context) {
	if client := c.client.Load(); client == nil || !client.HasRoots {
		return
	}
	c.crew.do(func() {
		c.roots.settle(ctx, c.s.roots, func(ctx context.Context) ([]string, bool) { return c.s.askRoots(ctx, connRoots{c}) })
	})
}

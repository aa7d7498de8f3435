package tenants

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/results"
	"codehand/tools/workspace"
)

const (
	// maxClientRoots is how many of a client's roots are looked at.
	maxClientRoots = 100
	// maxClientRoot is how long one of them may be, in bytes: the longest path, with each byte of it escaped.
	maxClientRoot = 3 * 4096
	// maxShownRoot is how many characters of one a log line shows.
	maxShownRoot = 200
)

// ClientRoots are the roots that the client of one connection or session wants to use. They only ever take roots away,
// down to none. An empty list says nothing: many clients send one while no folder is open; it narrows nothing, and
// gives nothing back. It is safe for concurrent use; the zero value belongs to a client that names no roots. Its
// exported fields are set before its first use.
type ClientRoots struct {
	// FollowLinks is for the client that started this process: a root of its that lies nowhere in ours is looked at
	// through its links. What a stranger names is not looked at.
	FollowLinks bool
	// Keep stores an answer beyond the connection; nil: it ends with it.
	Keep func(ctx context.Context, said []string)

	looking sync.Mutex // held while a client's links are followed, which a dead mount makes last

	mu    sync.Mutex    // covers what follows
	due   bool          // it is to be asked before its next call
	asked chan struct{} // closed when the question that was put is over; nil: none is open
	said  []string      // the answer to the last
	at    *Tenant       // that part belongs to; nil: to none
	part  *workspace.Narrowing
}

// Restore takes what was kept of a client that declared roots. nil: it was never asked, or never answered.
func (r *ClientRoots) Restore(declared bool, kept []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = declared && kept == nil
	if kept != nil { // or what it named before it initialized again still holds
		r.said, r.at = kept, nil
	}
}

// Changed notes that the client has other roots now.
func (r *ClientRoots) Changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = true
}

// Settle asks the client, if that is due, and waits until it has answered, at most for patience. Requests that come
// meanwhile wait, too. A client that does not answer is not asked again until it says that its roots changed.
//
// ask puts roots/list to the client. It returns a nil answer if there was none; can is false if this request has no way
// to ask: a later one asks then. A nil ask, or a nil r, only waits.
func (r *ClientRoots) Settle(
	ctx context.Context, patience time.Duration, t *Tenant,
	ask func(context.Context) (answer json.RawMessage, can bool),
) {
	if r == nil {
		return
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for limit.Err() == nil {
		over, mine := r.open(ask != nil)
		if over == nil {
			return
		}
		if !mine {
			select {
			case <-over:
			case <-limit.Done():
			}
			continue
		}
		answer, can := ask(limit)
		if !can {
			r.close(nil, false, true)
			return
		}
		said, ok := parseRoots(answer)
		if ok && r.FollowLinks {
			said = r.follow(limit, t.Space, said)
		}
		if ok && r.Keep != nil {
			r.Keep(ctx, r.after(said))
		}
		r.close(said, ok, ctx.Err() != nil)
	}
}

// open begins a question, if one is due and may be put, and returns when it, or the one before it, is over. mine: the
// caller asks, and closes it. nil: there is nothing to wait for.
func (r *ClientRoots) open(may bool) (over <-chan struct{}, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil && r.due && may {
		r.due, r.asked, mine = false, make(chan struct{}), true
	}
	return r.asked, mine
}

// close ends the question. One that only the caller's own end has ended is put again.
func (r *ClientRoots) close(said []string, ok, cut bool) {
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
func (r *ClientRoots) after(said []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds(said)
}

// holds is after for a caller that has the lock.
func (r *ClientRoots) holds(said []string) []string {
	if len(said) == 0 && r.said != nil {
		return r.said
	}
	return said
}

// narrowing returns what they leave of the roots of a place; nil: all. fresh are those that were not looked at before
// and have no part in it. The disk is looked at without the lock.
func (r *ClientRoots) narrowing(t *Tenant) (part *workspace.Narrowing, fresh []string) {
	for {
		r.mu.Lock()
		said, part, known := r.said, r.part, r.at == t
		r.mu.Unlock()
		if known {
			return part, nil
		}
		part, fresh := t.Space.Narrowing(said)
		r.mu.Lock()
		same := slices.Equal(said, r.said)
		if same && r.at == t { // another call was first
			part, fresh = r.part, nil
		}
		if same {
			r.part, r.at = part, t
		}
		r.mu.Unlock()
		if same {
			return part, fresh
		}
	}
}

// follow replaces each of the client's roots that lies outside the space by the target of its links. It is for the
// client that started this process: other clients must not make the server look at any path. Roots that take longer
// than ctx stay as they are.
func (r *ClientRoots) follow(ctx context.Context, space *workspace.Space, said []string) []string {
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
		r.looking.Unlock() // first: the reader of the answer may ask the next question at once
		led <- all
	}()
	select {
	case all := <-led:
		return all
	case <-ctx.Done():
		return said
	}
}

// fileRoot is a root's URI as a workspace reads it: RFC 8089 also allows file:/path, which Java writes, and any case; a
// plain path, which the protocol does not allow, says as well what is meant. What is no file is named all the same, so
// that the list is not empty.
func fileRoot(uri string) string {
	const scheme = "file:"
	head, rest := uri[:min(len(scheme), len(uri))], uri[min(len(scheme), len(uri)):]
	if len(uri) <= maxClientRoot && filepath.IsAbs(uri) {
		return uri
	}
	if len(uri) > maxClientRoot || !strings.EqualFold(head, scheme) || !strings.HasPrefix(rest, "/") {
		return "not used: " + results.Line(uri, maxShownRoot)
	}
	if !strings.HasPrefix(rest, "//") {
		rest = "//" + rest
	}
	return scheme + rest
}

// parseRoots are the roots of a client's answer to roots/list, as a workspace reads them: at most 100, each a path or
// what stands for it. ok is false if the answer cannot be read.
func parseRoots(answer json.RawMessage) (said []string, ok bool) {
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
	return said, true
}

// Narrow takes from space what the client does not want to be used. The rules stay those of all roots, and learn of the
// parts by permission.Policy.AlsoFrom: with fewer, one that forbids could be lost. A nil r narrows nothing. ignored are
// roots of the client that have nothing in common with t's and were not looked at before.
func (r *ClientRoots) Narrow(t *Tenant, space *workspace.Space) (narrowed *workspace.Space, ignored []string) {
	if r == nil {
		return space, nil
	}
	part, ignored := r.narrowing(t)
	if part == nil {
		return space, ignored
	}
	space = space.Narrow(part)
	for _, d := range t.outsideDirs() { // one in a root was no area of its own, and the operator named it
		if !space.Inside(d.Path) {
			space = space.Readable(d.Path)
		}
	}
	return space, ignored
}

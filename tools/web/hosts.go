package web

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// hosts keeps the client polite: how many requests each host has now, and until when it wants none.
type hosts struct {
	mu  sync.Mutex
	all map[string]*host
	now func() time.Time
}

type host struct {
	places chan struct{}
	users  int       // in places or on the way there
	until  time.Time // the host wants no request before
}

// maxHosts bounds the hosts that are remembered because they want no request.
const maxHosts = 1000

// enter waits for a place at a host. The caller calls leave, once.
func (h *hosts) enter(ctx context.Context, name string) (leave func(), err error) {
	at, wait := h.use(name)
	if wait > 0 {
		h.free(name, at)
		return nil, &Error{Code: Limited, Wait: wait, Text: fmt.Sprintf(
			"%s asked for a pause. Try again in %d s; do not fetch from it before", name, seconds(wait))}
	}
	if err := take(ctx, at.places); err != nil {
		h.free(name, at)
		return nil, err
	}
	return func() {
		give(at.places)
		h.free(name, at)
	}, nil
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func (h *hosts) use(name string) (at *host, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*host{}
	}
	at = h.all[name]
	if at == nil {
		at = &host{places: make(chan struct{}, perHost)}
		h.all[name] = at
	}
	at.users++
	return at, at.until.Sub(h.now())
}

// free forgets a host without requests that wants no pause.
func (h *hosts) free(name string, at *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.users--; at.users == 0 && !at.until.After(h.now()) {
		delete(h.all, name)
	}
}

// rest keeps everyone away from a host for a while. The caller has a place there.
func (h *hosts) rest(name string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, at := range h.all { // those whose pause is over, and any if there are too many
		if other != name && at.users == 0 && (!at.until.After(h.now()) || len(h.all) > maxHosts) {
			delete(h.all, other)
		}
	}
	if at := h.all[name]; at != nil {
		at.until = h.now().Add(min(d, maxRest))
	}
}

package endpoint

import (
	"errors"
	"testing"
	"time"

	"codehand/server/sessions"
)

// TestIdleSessions: what was not used for session.idle is dropped from memory and is good again with its next request; what
// runs or streams is never idle, however long it takes.
func TestIdleSessions(t *testing.T) {
	t.Parallel()
	x := newSite(t, setup{})
	now := time.Now()
	h, who := x.sessions, x.by.who
	h.now = func() time.Time { return now }
	used, err := h.start(who)
	must(t, err)
	idle, err := h.start(who)
	must(t, err)
	h.release(idle)
	now = now.Add(30 * time.Minute)
	if h.sweep(); h.count() != 2 {
		t.Errorf("%d sessions after 30 min, want both", h.count())
	}
	now = now.Add(5 * time.Minute) // the other one's call runs for 35 min
	if h.sweep(); h.count() != 1 || h.per[who.ID] != 1 {
		t.Errorf("%d sessions after 35 min, %v by principal; want the one in use", h.count(), h.per)
	}
	h.release(used)
	if h.sweep(); h.count() != 1 {
		t.Error("the end of a call is no use")
	}
	now = now.Add(30*time.Minute + time.Second)
	if h.sweep(); h.count() != 0 || len(h.per) != 0 {
		t.Errorf("%d sessions are left, %v by principal", h.count(), h.per)
	}
	again, err := h.acquire(t.Context(), who, idle.id)
	if err != nil || h.count() != 1 {
		t.Fatalf("a session that was dropped: %v", err)
	}
	h.release(again)
	other := who
	other.ID = "bob"
	if _, err := h.acquire(t.Context(), other, idle.id); !errors.Is(err, errNoSession) {
		t.Errorf("bob finds it: %v", err)
	}
}

// TestSpareSessions: clients that open a session for each call were at the limit after 200 calls, for half an hour. The
// oldest idle one of the same principal makes room, and no other principal's does.
func TestSpareSessions(t *testing.T) {
	t.Parallel()
	x := newSite(t, setup{settings: map[string]string{"session.max_per_principal": "3"}})
	x.o.Reopens = func(client string) bool { return client == "web" }
	now := time.Now()
	h, who := x.sessions, x.by.who
	h.now = func() time.Time { return now }
	open := func(client string) *httpSession {
		t.Helper()
		now = now.Add(time.Second)
		s, err := h.start(who)
		must(t, err)
		h.opened(t.Context(), s, &sessions.ClientRecord{Name: client})
		return s
	}
	editor, first, second := open("editor"), open("web"), open("web")
	if _, err := h.start(who); !errors.Is(err, errTooManySessions) {
		t.Errorf("all are in use: %v", err)
	}
	for _, s := range []*httpSession{editor, second, first} {
		h.release(s)
		now = now.Add(time.Second)
	}
	third := open("web")
	if h.live[second.id] != nil || h.live[first.id] == nil || h.live[editor.id] == nil || h.per[who.ID] != 3 {
		t.Errorf("the wrong one made room: %d live", len(h.live))
	}
	h.release(third)
	if again, err := h.acquire(t.Context(), who, second.id); err != nil {
		t.Errorf("its id is no longer good: %v", err)
	} else {
		h.release(again)
	}
}

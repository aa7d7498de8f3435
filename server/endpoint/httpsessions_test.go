package endpoint

import (
	"errors"
	"testing"
	"time"
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

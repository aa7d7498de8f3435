package stdio

import (
	"testing"
	"time"
)

// TestParentWatch: the server ends when its parent is gone and nothing is heard for a minute, and never when a message
// comes after the parent left, or while a call runs.
func TestParentWatch(t *testing.T) {
	parent, now := 100, time.Unix(0, 1)
	w := &parentWatch{pid: func() int { return parent }, now: func() time.Time { return now }}
	if w.gone(false) {
		t.Fatal("before the first message there is no parent to miss")
	}
	w.message()
	parent = 1
	if w.gone(false) {
		t.Fatal("at once")
	}
	now = now.Add(30 * time.Second)
	if w.gone(true) {
		t.Fatal("while a call runs")
	}
	now = now.Add(59 * time.Second)
	if w.gone(false) {
		t.Fatal("the minute begins anew after a call")
	}
	now = now.Add(time.Second)
	if !w.gone(false) {
		t.Fatal("a minute without a sign")
	}
	w.message()
	if now = now.Add(time.Hour); w.gone(false) {
		t.Fatal("a message came after the parent left")
	}
}

// TestParentWatchWrapper: a wrapper that leaves in the middle of the handshake does not end the server, also when the
// next message comes before the parent is looked at.
func TestParentWatchWrapper(t *testing.T) {
	parent, now := 100, time.Unix(0, 1)
	w := &parentWatch{pid: func() int { return parent }, now: func() time.Time { return now }}
	w.message()
	parent = 1
	w.message()
	for range 100 {
		if now = now.Add(parentEvery); w.gone(false) {
			t.Fatal("the client lives")
		}
	}
}

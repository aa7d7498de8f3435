package limits

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// limited is a Limiter with a clock that stands still.
func limited(q Quota) (*Limiter, *clock) {
	at := newClock()
	var m Limiters
	return m.Of("ann", q, at.now), at
}

// waitOf is how long a request must wait by an error; 0: it need not.
func waitOf(t *testing.T, err error) time.Duration {
	t.Helper()
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*OverError](err)
	if !ok || e.After <= 0 || Check(e.Quota, "0") != nil || !strings.Contains(e.Error(), e.Quota) {
		t.Fatalf("got %+v", err)
	}
	return e.After
}

func TestRequests(t *testing.T) {
	t.Parallel()
	l, at := limited(Quota{RequestsPerMinute: 3})
	for i := range 3 {
		if wait := waitOf(t, l.Request(0)); wait != 0 {
			t.Fatalf("request %d waits %s", i, wait)
		}
	}
	for range 5 { // a refused one takes nothing
		if wait := waitOf(t, l.Request(0)); wait != 20*time.Second {
			t.Fatalf("the fourth waits %s, want 20s", wait)
		}
	}
	at.move(20*time.Second - time.Millisecond)
	if wait := waitOf(t, l.Request(0)); wait != time.Millisecond {
		t.Errorf("a little too early: waits %s", wait)
	}
	at.move(time.Millisecond)
	if wait := waitOf(t, l.Request(0)); wait != 0 {
		t.Errorf("in time: waits %s", wait)
	}
	if wait := waitOf(t, l.Request(0)); wait != 20*time.Second {
		t.Errorf("the next one waits %s", wait)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	l, at := limited(Quota{BytesInPerMinute: 600, BytesOutPerMinute: 60})
	for i, c := range []struct {
		n     int64
		after time.Duration // before it
		want  time.Duration
	}{
		{400, 0, 0}, {200, 0, 0}, {1, 0, 100 * time.Millisecond}, {0, 0, 0}, {-1, 0, 0},
		{60, 5 * time.Second, time.Second}, {60, time.Second, 0},
		{math.MaxInt64, 0, time.Minute}, {math.MaxInt64, time.Minute, 0}, {1, 59 * time.Second, 0}, // costs a minute, not a year
	} {
		at.move(c.after)
		if wait := waitOf(t, l.Request(c.n)); (wait - c.want).Abs() > time.Microsecond {
			t.Errorf("request %d of %d bytes waits %s, want %s", i, c.n, wait, c.want)
		}
	}
	at.move(time.Minute)
	if wait := waitOf(t, l.Request(600)); wait != 0 {
		t.Errorf("a body of a minute waits %s", wait)
	}
	l.Unread(400)
	l.Unread(-5)
	if wait := waitOf(t, l.Request(400)); wait != 0 {
		t.Errorf("what did not come is still counted: a request waits %s", wait)
	}
	at.move(time.Minute)
	l.Sent(60)
	if wait := waitOf(t, l.Request(0)); wait != 0 {
		t.Errorf("after answers of a minute a request waits %s", wait)
	}
	l.Sent(180)
	l.Sent(-5)
	if wait := waitOf(t, l.Request(0)); wait != 3*time.Minute {
		t.Errorf("after four minutes' answers a request waits %s", wait)
	}
	at.move(3 * time.Minute)
	if wait := waitOf(t, l.Request(0)); wait != 0 {
		t.Errorf("3 min later a request waits %s", wait)
	}
}

// What is refused for one reason takes nothing of another.
func TestRefusedRequestTakesNothing(t *testing.T) {
	t.Parallel()
	l, _ := limited(Quota{RequestsPerMinute: 2, BytesInPerMinute: 100})
	if waitOf(t, l.Request(100)) != 0 {
		t.Fatal("the first one waits")
	}
	for range 5 {
		if waitOf(t, l.Request(50)) == 0 {
			t.Fatal("too many bytes are let in")
		}
	}
	if waitOf(t, l.Request(0)) != 0 {
		t.Error("requests that were refused for their bytes count")
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate, burst, atOnce int
		next                time.Duration
	}{
		{600, 100, 100, 100 * time.Millisecond},
		{60, 1, 1, time.Second},
		{60, 0, 60, time.Second},
		{6, 10, 10, 10 * time.Second},
		{0, 5, 1000, 0},
	} {
		l, at := limited(Quota{CallsPerMinute: c.rate, Burst: c.burst})
		for i := range c.atOnce {
			if after, ok := l.Call(); !ok || after != 0 {
				t.Fatalf("%+v: call %d must wait %s", c, i, after)
			}
		}
		if c.rate == 0 {
			continue
		}
		for range 3 {
			if after, ok := l.Call(); ok || (after-c.next).Abs() > time.Microsecond {
				t.Errorf("%+v: the next call waits %s (%v)", c, after, ok)
			}
		}
		for range 10 {
			at.move(c.next)
			if after, ok := l.Call(); !ok {
				t.Errorf("%+v: a call in time waits %s", c, after)
			}
			if _, ok := l.Call(); ok {
				t.Errorf("%+v: two calls in the time of one", c)
			}
		}
	}
}

// All tokens of a principal share what they use, and each is held to its own numbers.
func TestLimitsAreShared(t *testing.T) {
	t.Parallel()
	at := newClock()
	var m Limiters
	big, small := Quota{CallsPerMinute: 60, Burst: 10}, Quota{CallsPerMinute: 60, Burst: 4}
	if m.Of("ann", big, at.now) != m.Of("ann", small, at.now) || m.Of("ann", big, at.now) == m.Of("bob", Quota{}, at.now) {
		t.Fatal("the Limiter is not that of the principal")
	}
	call := func(q Quota) bool { _, ok := m.Of("ann", q, at.now).Call(); return ok }
	for range 3 {
		if !call(big) {
			t.Fatal("a call waits")
		}
	}
	if !call(small) || call(small) {
		t.Error("the small quota does not see what the big one used")
	}
	// Looking with small numbers takes nothing from the big ones, and looking with big ones gives nothing.
	for i := range 6 {
		if call(small) || !call(big) {
			t.Errorf("call %d", i)
		}
	}
	if call(big) || call(small) {
		t.Error("the burst is larger than it is")
	}
}

func TestStreamsAndConnections(t *testing.T) {
	t.Parallel()
	l, _ := limited(Quota{Streams: 2, Connections: 2})
	a, err := l.Stream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Stream()
	if err != nil {
		t.Fatal(err)
	}
	end, err := l.Stream()
	if waitOf(t, err) == 0 {
		t.Error("a third stream is open")
	}
	end() // harmless
	a()
	a() // once
	if c, err := l.Stream(); err != nil {
		t.Error("the place of a closed stream is not free")
	} else if _, err := l.Stream(); waitOf(t, err) == 0 {
		t.Error("ending twice gives two places")
	} else {
		b()
		c()
	}

	from := func(remote string) (func(), error) { return l.Connection(remote) }
	var ends []func()
	for _, remote := range []string{"192.0.2.1:1", "192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:2"} {
		end, err := from(remote)
		if err != nil {
			t.Fatalf("%s: %v", remote, err)
		}
		ends = append(ends, end)
	}
	if _, err := from("192.0.2.1:3"); waitOf(t, err) == 0 {
		t.Error("a third connection is used")
	}
	ends[0]()
	ends[0]()
	if _, err := from("192.0.2.1:3"); waitOf(t, err) == 0 {
		t.Error("a connection with a request is not counted")
	}
	ends[1]()
	unix, err := from("@")
	if err != nil {
		t.Errorf("the place of a resting connection is not free: %v", err)
	}
	for _, remote := range []string{"@", ""} {
		if _, err := from(remote); waitOf(t, err) == 0 {
			t.Error("connections of Unix sockets are not told apart")
		}
	}
	unix()
	for _, end := range ends {
		end()
	}
	if len(l.connections) != 0 || l.unnamed != 0 || l.streams != 0 {
		t.Errorf("%d connections, %d without a name, %d streams are left", len(l.connections), l.unnamed, l.streams)
	}
}

func TestNoLimits(t *testing.T) {
	t.Parallel()
	l, _ := limited(Quota{})
	for range 1000 {
		if err := l.Request(1 << 40); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.Call(); !ok {
			t.Fatal("a call waits")
		}
		l.Sent(1 << 40)
		l.Unread(1 << 40)
		if _, err := l.Stream(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Connection("@"); err != nil {
			t.Fatal(err)
		}
	}
}

// A Limiter that is not in use is forgotten, but not while something is open or must still be waited for.
func TestLimitsAreForgotten(t *testing.T) {
	t.Parallel()
	at := newClock()
	var m Limiters
	of := func(id string) *Limiter {
		return m.Of(id, Quota{CallsPerMinute: 60, ConcurrentCalls: 1, BytesOutPerMinute: 1}, at.now)
	}
	for i := range 1000 {
		of(fmt.Sprint(i)).Call()
	}
	end, err := of("stream").Stream()
	if err != nil {
		t.Fatal(err)
	}
	turn := of("turn").Arrive()
	of("debt").Sent(15)
	at.move(forgetAfter)
	of("sweeper")
	if n := len(m.by); n != 4 {
		t.Errorf("%d principals are kept: want stream, turn, debt and sweeper", n)
	}
	end()
	turn.Leave()
	at.move(forgetAfter)
	of("sweeper")
	if n := len(m.by); n != 1 {
		t.Errorf("%d principals are kept, want sweeper", n)
	}
}

func BenchmarkLimits(b *testing.B) {
	var m Limiters
	q := defaultQuota()
	q.CallsPerMinute, q.RequestsPerMinute, q.Burst = math.MaxInt32, math.MaxInt32, math.MaxInt32
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l := m.Of("ann", q, time.Now)
			if err := l.Request(1); err != nil {
				b.Error(err)
				return
			}
			l.Call()
			l.Arrive().Leave()
			l.Sent(1)
		}
	})
}

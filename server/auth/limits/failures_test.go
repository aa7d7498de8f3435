package limits

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	var f Failures
	at, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	start := time.Unix(1_000_000, 0)
	for i := range maxFailures {
		now := start.Add(time.Duration(i) * time.Second)
		if wait := f.Refused(at, now); wait != 0 {
			t.Fatalf("failure %d waits %s", i, wait)
		}
		if locked := f.Add(at, now); locked != (i == maxFailures-1) {
			t.Errorf("failure %d: tells of the wait: %v", i, locked)
		}
	}
	now := start.Add(29 * time.Second)
	if wait := f.Refused(at, now); wait != 31*time.Second {
		t.Errorf("after 30 failures within 29 s the wait is %s, want 31s", wait)
	}
	if wait := f.Refused(other, now); wait != 0 {
		t.Errorf("another address waits %s", wait)
	}
	// As each failure becomes a minute old, one more is allowed: never 31 within a minute.
	now = start.Add(time.Minute)
	if wait := f.Refused(at, now); wait != 0 {
		t.Errorf("a minute after the first one the wait is %s", wait)
	}
	if f.Add(at, now) {
		t.Error("one that goes on failing is told of again and again")
	}
	if wait := f.Refused(at, now); wait != time.Second {
		t.Errorf("after one more the wait is %s, want 1s", wait)
	}
}

func TestFailuresByNetwork(t *testing.T) {
	t.Parallel()
	var f Failures
	now := time.Unix(1_000_000, 0)
	for i := range maxFailures {
		f.Add(netip.MustParseAddr(fmt.Sprintf("2001:db8:0:1::%x", i+1)), now)
		f.Add(netip.Addr{}, now)
	}
	if f.Refused(netip.MustParseAddr("2001:db8:0:1:ffff::1"), now) == 0 {
		t.Error("one customer's IPv6 network counts as many addresses")
	}
	if f.Refused(netip.MustParseAddr("2001:db8:0:2::1"), now) != 0 {
		t.Error("another network waits, too")
	}
	if f.Refused(netip.Addr{}, now) != 0 {
		t.Error("callers of a Unix socket lock each other out")
	}
}

// However many addresses fail, the memory is bounded, and those that fail now are kept.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	var f Failures
	now := time.Unix(1_000_000, 0)
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	for i := range 2 * failureMemory {
		f.Add(address(i), now.Add(time.Duration(i)))
	}
	if len(f.by) != failureMemory || f.all.Len() != failureMemory {
		t.Errorf("%d addresses are kept, %d in the list", len(f.by), f.all.Len())
	}
	if f.by[network(address(0))] != nil || f.by[network(address(2*failureMemory-1))] == nil {
		t.Error("the oldest one is kept, or the newest one is not")
	}
	f.Add(address(7), now.Add(2*time.Minute))
	if len(f.by) != 1 || f.all.Len() != 1 {
		t.Errorf("%d addresses are kept although their failures are over", len(f.by))
	}
}

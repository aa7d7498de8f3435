package blackbox

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Figures of TestSignInFlood.
const (
	floodSignIns   = 1_000
	floodRefreshes = 10_000
	floodMemory    = 32 << 10 // KiB that the peak may grow in the second half
	refreshP99     = 10 * time.Millisecond
)

// TestSignInFlood: 1,000 sign-ins and 10,000 refreshes leave the server as large as half of them do, and a refresh waits
// for no password: beside sign-ins with passwords, as many as the server checks at once, its p99 stays below 10 ms.
func TestSignInFlood(t *testing.T) {
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("it takes minutes and asserts a figure of time; set CODEHAND_LONG=1")
	}
	d := opened(t, nil)
	pid := d.s.cmd.Process.Pid
	a := d.register("http://127.0.0.1:33419/callback")
	p := d.person()
	half := 0
	var g grantReply
	for i := range floodSignIns {
		g = a.token(a.redeem(a.code(p)))
		p.pages = nil
		if g.Status != http.StatusOK {
			t.Fatalf("sign-in %d: %d %s", i, g.Status, g.Body)
		}
		if i == floodSignIns/2 {
			half = peak(t, pid)
		}
	}
	after := peak(t, pid)
	t.Logf("peak memory: %d KiB after half of the sign-ins, %d KiB after all", half, after)
	if after-half > floodMemory {
		t.Errorf("500 sign-ins more cost %d KiB", after-half)
	}
	kept := &http.Client{}
	refresh := func() time.Duration {
		began := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.s.url+"/oauth/token", strings.NewReader(a.renew(g.Refresh).Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if g = answered(t, kept, r); g.Status != http.StatusOK {
			t.Fatalf("refresh: %d %s", g.Status, g.Body)
		}
		return time.Since(began)
	}
	defer kept.CloseIdleConnections()
	p99 := func(n int) time.Duration {
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = refresh()
		}
		slices.Sort(all)
		t.Logf("%d refreshes: p50 %s, p99 %s, at most %s", n, all[n/2], all[n*99/100], all[n-1])
		return all[n*99/100]
	}
	p99(floodRefreshes / 2)
	half = peak(t, pid)
	p99(floodRefreshes/2 - 2_000)
	if grown := peak(t, pid) - half; grown > floodMemory {
		t.Errorf("5,000 refreshes more cost %d KiB", grown)
	}

	stop := make(chan struct{})
	var busy sync.WaitGroup
	logins := make([]int, 4)
	for n := range logins {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					a.code(d.besieged(t).owner())
					logins[n]++
				}
			}
		})
	}
	got := p99(2_000)
	close(stop)
	busy.Wait()
	t.Logf("beside %v sign-ins with a password", logins)
	if got > refreshP99 {
		t.Errorf("beside passwords p99 of a refresh is %s", got)
	}
}

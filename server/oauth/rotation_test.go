package oauth

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// A thief and a victim have the same refresh token. The second use after the time for repeats ends the grant.
func TestStolenRefresh(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	_, thief := x.refresh(tok)
	x.pass(repeatTime)
	if a, _ := x.refresh(tok); a.problem() != "invalid_grant" {
		t.Errorf("the victim: %d %s", a.StatusCode, a.body)
	}
	if x.works(thief.access) || x.works(tok.access) {
		t.Error("access tokens outlive the theft")
	}
	if a, _ := x.refresh(thief); a.problem() != "invalid_grant" {
		t.Errorf("the thief goes on: %d", a.StatusCode)
	}
	if names, reason := x.happened(); names != "login refresh logout" || reason != "a refresh token was used twice: it may have been stolen" {
		t.Errorf("the audit has %q, %q", names, reason)
	}
}

// Also within the time for repeats two machines cannot both go on.
func TestStolenRefreshAtOnce(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	_, one := x.refresh(tok)
	_, two := x.refresh(tok)
	if a, _ := x.refresh(one); a.problem() != "invalid_grant" {
		t.Errorf("the first goes on: %d %s", a.StatusCode, a.body)
	}
	if x.works(one.access) || x.works(two.access) {
		t.Error("access tokens outlive the theft")
	}
	if a, _ := x.refresh(two); a.problem() != "invalid_grant" {
		t.Errorf("the second goes on: %d", a.StatusCode)
	}
}

// A client whose answer was lost asks again with the token that it has, also after the server was killed in between.
func TestLostAnswer(t *testing.T) {
	x := newRig(t).durable()
	tok := x.signIn(usual())
	x.refresh(tok)
	x.pass(repeatTime - 1)
	x.again()
	a, next := x.refresh(tok)
	if a.StatusCode != http.StatusOK || !x.works(next.access) {
		t.Fatalf("asked again: %d %s", a.StatusCode, a.body)
	}
	if a, _ = x.refresh(next); a.StatusCode != http.StatusOK {
		t.Errorf("and goes on: %d %s", a.StatusCode, a.body)
	}
	if a, _ = x.refresh(tok); a.problem() != "invalid_grant" {
		t.Errorf("when it has gone on, the old token is worth %d", a.StatusCode)
	}
}

func TestRepeatsAreCounted(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	for range maxRepeats + 1 {
		if a, _ := x.refresh(tok); a.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	if a, _ := x.refresh(tok); a.problem() != "invalid_grant" {
		t.Errorf("once more: %d", a.StatusCode)
	}
}

func TestLives(t *testing.T) {
	x := newRig(t)
	d := usual()
	d.Life = 60 * 24 * time.Hour
	idle, busy := x.signIn(d), x.signIn(d)
	for range 59 {
		x.pass(24 * time.Hour)
		x.s.sweep(t.Context())
		_, busy = x.refresh(busy)
	}
	if !x.works(busy.access) {
		t.Error("a grant ended before its time")
	}
	if a, _ := x.refresh(idle); a.problem() != "invalid_grant" {
		t.Errorf("a grant that nobody used for %v: %d", IdleLife, a.StatusCode)
	}
	x.pass(24 * time.Hour)
	if x.works(busy.access) {
		t.Error("a grant outlives what was approved")
	}
	x.s.sweep(t.Context())
	keys, err := x.store.Keys(t.Context(), "grant")
	must(t, err)
	if len(keys) != 0 || len(x.s.live) != 0 {
		t.Errorf("what has ended is still there: %q, %d in memory", keys, len(x.s.live))
	}
}

// Two approvals race, and two exchanges of the code that comes of them: one wins each time.
func TestRaces(t *testing.T) {
	x := newRig(t)
	client := x.register()
	for range 20 {
		id := x.authorize(asks(client))
		codes := race(8, func() string {
			to, err := x.s.Approve(t.Context(), id, usual())
			if err != nil {
				return ""
			}
			return to
		})
		if len(codes) != 1 {
			t.Fatalf("%d approvals won", len(codes))
		}
	}
	for range 20 {
		v := exchange(client, x.approve(x.authorize(asks(client)), usual()))
		won := race(8, func() string {
			a := x.post(pathToken, v)
			if a.StatusCode != http.StatusOK {
				return ""
			}
			return a.body
		})
		if len(won) > 1 {
			t.Fatalf("%d exchanges won", len(won))
		}
		x.pass(time.Minute)
	}
	tok := x.signIn(usual())
	x.pass(time.Minute)
	_, used := x.refresh(tok)
	x.pass(repeatTime)
	won := race(8, func() string {
		a, next := x.refresh(used)
		if a.StatusCode != http.StatusOK {
			return ""
		}
		return next.refresh
	})
	good := 0
	for _, r := range won {
		if a, _ := x.refresh(tokens{client: used.client, refresh: r}); a.StatusCode == http.StatusOK {
			good++
		}
	}
	if good > 1 {
		t.Errorf("%d of %d refresh tokens go on", good, len(won))
	}
}

// race runs f several times at once and returns what is not empty.
func race(n int, f func() string) []string {
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if text := f(); text != "" {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, text)
			}
		})
	}
	wg.Wait()
	return all
}

// Whatever several holders of one family do, in any order and with restarts between: never does a token work that a
// model of the rules does not allow, and once the family is gone it stays gone.
func TestRotationModel(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		x := newRig(t)
		first := x.signIn(usual())
		all := []tokens{first}
		current, previous := 0, -1 // indexes in all
		var rotated time.Time
		repeats, gone := 0, false
		for range 60 {
			switch random.IntN(6) {
			case 0:
				x.pass(time.Duration(random.IntN(40)) * time.Second)
				continue
			case 1:
				x.again()
				continue
			}
			i := random.IntN(len(all))
			if random.IntN(2) == 0 {
				i = current
			}
			a, next := x.refresh(all[i])
			repeat := i == previous && x.clock().Sub(rotated) < repeatTime && repeats < maxRepeats
			want := !gone && (i == current || repeat)
			if (a.StatusCode == http.StatusOK) != want {
				t.Fatalf("seed %d: token %d of %d, current %d, previous %d, gone %v: %d", seed, i, len(all), current, previous, gone, a.StatusCode)
			}
			if !want {
				gone = true
				for _, tok := range all {
					if x.works(tok.access) {
						t.Fatalf("seed %d: an access token outlives its family", seed)
					}
				}
				x.pass(time.Second)
				continue
			}
			if repeat {
				repeats++
			} else {
				previous, rotated, repeats = i, x.clock(), 0
			}
			all = append(all, next)
			current = len(all) - 1
		}
	}
}

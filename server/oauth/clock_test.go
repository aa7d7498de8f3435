package oauth

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

// The built program has no clock that a test could turn, so what expires is tried here, and nowhere from outside.

// TestExpiries: everything holds until its second and not longer, also in a process that started meanwhile.
func TestExpiries(t *testing.T) {
	t.Parallel()
	const last = time.Second
	for name, restarts := range map[string]bool{"in one process": false, "in another process": true} {
		x := newRig(t).durable()
		pass := func(d time.Duration) {
			x.pass(d)
			if restarts {
				x.again()
			}
		}
		client := x.register()
		begun := func() (id string) { return x.authorize(asks(client)) }
		redeem := func(code string) answered { return x.post(pathToken, exchange(client, code)) }

		early, late := begun(), begun()
		pass(AskLife - last)
		long := usual()
		long.Life = MaxLife
		code := x.approve(early, long)
		pass(last)
		if _, err := x.s.Pending(t.Context(), late); err == nil {
			t.Errorf("%s: an ask outlives %v", name, AskLife)
		}
		if _, err := x.s.Approve(t.Context(), late, usual()); err == nil {
			t.Errorf("%s: an ask is approved after %v", name, AskLife)
		}

		pass(CodeLife - 2*last)
		tok := x.tokens(client, redeem(code))
		slow := x.approve(begun(), usual())
		pass(CodeLife)
		if a := redeem(slow); a.problem() != "invalid_grant" {
			t.Errorf("%s: a code outlives %v: %d %s", name, CodeLife, a.StatusCode, a.body)
		}

		tok = x.tokens(client, x.post(pathToken, refreshing(tok)))
		pass(AccessLife - last)
		if !x.works(tok.access) {
			t.Errorf("%s: an access token ends too early", name)
		}
		pass(last)
		if x.works(tok.access) {
			t.Errorf("%s: an access token outlives %v", name, AccessLife)
		}

		var a answered
		pass(IdleLife - AccessLife - last)
		if a, tok = x.refresh(tok); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: a refresh token ends too early: %d %s", name, a.StatusCode, a.body)
		}
		pass(IdleLife)
		if a, _ := x.refresh(tok); a.problem() != "invalid_grant" {
			t.Errorf("%s: a refresh token outlives %v: %d", name, IdleLife, a.StatusCode)
		}
	}
}

// TestClockGoesBack: a clock that is set back, before a restart or in between, brings nothing back that was used, rotated,
// revoked or decided.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"in one process": false, "in another process": true} {
		x := newRig(t).durable()
		client := x.register()
		back := func(d time.Duration) {
			x.pass(-d)
			if restarts {
				x.again()
			}
		}
		x.pass(48 * time.Hour)
		client2 := x.register()
		decided := x.authorize(asks(client2))
		code := x.approve(decided, usual())
		redeemed := x.tokens(client2, x.post(pathToken, exchange(client2, code)))
		revoked := x.signIn(usual())
		x.post(pathRevoke, url.Values{"client_id": {revoked.client}, "token": {revoked.refresh}})
		stolen := x.signIn(usual())
		_, next := x.refresh(stolen)

		back(24 * time.Hour)
		if _, err := x.s.Approve(t.Context(), decided, usual()); err == nil {
			t.Errorf("%s: a decided ask is decided again", name)
		}
		if a, _ := x.refresh(revoked); a.problem() != "invalid_grant" || x.works(revoked.access) {
			t.Errorf("%s: a revoked grant is back: %d", name, a.StatusCode)
		}
		// Within 30 s a used refresh token may come again, since its answer may be lost. A day before is not within 30 s.
		if a, _ := x.refresh(stolen); a.problem() != "invalid_grant" {
			t.Errorf("%s: a used refresh token is taken again: %d", name, a.StatusCode)
		}
		if a, _ := x.refresh(next); a.problem() != "invalid_grant" || x.works(next.access) {
			t.Errorf("%s: the family of a token that came twice goes on: %d", name, a.StatusCode)
		}
		if a := x.post(pathToken, exchange(client2, code)); a.problem() != "invalid_grant" || x.works(redeemed.access) {
			t.Errorf("%s: a used code: %d, or its tokens are good", name, a.StatusCode)
		}
		// And sign-in goes on, in the time that it is now.
		tok := x.tokens(client, x.post(pathToken, exchange(client, x.approve(x.authorize(asks(client)), usual()))))
		x.pass(AccessLife)
		if x.works(tok.access) {
			t.Errorf("%s: a token made after the clock was set back has no end", name)
		}
	}
}

// TestClockLeaps: a clock that leaps ahead ends what it says has ended, and when it is put right nothing that was found
// ended and swept comes back.
func TestClockLeaps(t *testing.T) {
	t.Parallel()
	x := newRig(t).durable()
	tok := x.signIn(usual())
	code := x.approve(x.authorize(asks(tok.client)), usual())
	const years = 10 * 365 * 24 * time.Hour
	x.pass(years)
	if x.works(tok.access) {
		t.Error("an access token is good ten years later")
	}
	if a, _ := x.refresh(tok); a.problem() != "invalid_grant" {
		t.Errorf("a refresh token ten years later: %d", a.StatusCode)
	}
	x.s.sweep(t.Context())
	x.pass(-years)
	if a := x.post(pathToken, exchange(tok.client, code)); a.problem() != "invalid_grant" {
		t.Errorf("a code that was swept: %d", a.StatusCode)
	}
	if a, _ := x.refresh(tok); a.problem() != "invalid_grant" || x.works(tok.access) {
		t.Errorf("a grant that was swept: %d", a.StatusCode)
	}
}

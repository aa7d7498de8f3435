package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/asking"
	"codehand/server/auth"
	"codehand/server/replaytest"
	"codehand/server/state"
	"codehand/tools/tool"
)

const badStateText = "requestState is not valid for this request"

// twoChanges are two tools that a mode asks about.
func twoChanges(runs *runCount) []tool.Tool {
	return []tool.Tool{changing("change", runs), changing("alter", runs)}
}

// TestAskStates: an answer counts with a state that was made for this request, once, in time, and for this input.
func TestAskStates(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: twoChanges(runs), settings: askingSettings(), principals: []string{"ann", "bob"}})
	forgive := forgiving(t, x.server)
	ann, bob := onHTTP(t, x, "ann", true, replaytest.Declared), onHTTP(t, x, "bob", true, replaytest.Declared)
	other := func(who string) *replaytest.ElicitClient {
		h := x.client(who)
		h.URL += "/s/another-session"
		return replaytest.OverHTTP(t, h, true, replaytest.Declared)
	}("ann")
	fresh := func() string {
		t.Helper()
		a := ann.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop))
		if a.State == "" || runs.count() != 0 {
			t.Fatalf("no question: %+v, ran %d times", a, runs.count())
		}
		return a.State
	}
	refused := func(what string, a replaytest.ElicitAnswer) {
		t.Helper()
		if a.Code != -32602 || a.Text != badStateText || runs.count() != 0 {
			t.Errorf("%s: %+v, ran %d times", what, a, runs.count())
		}
	}
	anew := func(what string, a replaytest.ElicitAnswer) {
		t.Helper()
		if a.Asked != 1 || a.State == "" || runs.count() != 0 {
			t.Errorf("%s: %+v, ran %d times", what, a, runs.count())
		}
	}
	state := fresh()
	parts := strings.Split(state, ".")
	for what, forged := range map[string]string{
		"nonsense": "nonsense", "no mac": parts[0] + "." + parts[1], "an empty mac": parts[0] + "." + parts[1] + ".",
		"another nonce": parts[0] + "." + strings.ToLower(rand.Text()) + "." + parts[2], "another version": "v2." + parts[1] + "." + parts[2],
		"one more part": state + ".x", "long": state + strings.Repeat("A", 1<<16), "a changed mac": replaytest.Altered(state),
		"upper case": strings.ToUpper(state), "a path": "v1.../../key.ask." + parts[2],
	} {
		refused(what, ann.With("change", `{"text":"one"}`, replaytest.SayOnce, forged))
	}
	refused("another principal", bob.With("change", `{"text":"one"}`, replaytest.SayOnce, state))
	refused("another session", other.With("change", `{"text":"one"}`, replaytest.SayOnce, state))
	refused("another tool", ann.With("alter", `{"text":"one"}`, replaytest.SayOnce, state))
	anew("an answer without a state", ann.CallWith("change", `{"text":"one"}`, `,"inputResponses":{"answer":`+replaytest.SayOnce+`}`, replaytest.Always(replaytest.Stop)))
	anew("another input", ann.With("change", `{"text":"two"}`, replaytest.SayOnce, state))
	anew("a second time, after another input", ann.With("change", `{"text":"one"}`, replaytest.SayOnce, state))

	state = fresh()
	if a := ann.With("change", `{"text":"one"}`, replaytest.SayDecline, state); a.Asked != 0 || !strings.HasPrefix(a.Text, "USER_DECLINED") {
		t.Errorf("declined: %+v", a)
	}
	forgive()
	anew("an acceptance after the decline", ann.With("change", `{"text":"one"}`, replaytest.SayOnce, state))

	state = fresh()
	if a := ann.CallWith("change", `{"text":"one"}`, fmt.Sprintf(`,"requestState":%q`, state), replaytest.Always(replaytest.Stop)); a.Asked != 0 || !strings.HasPrefix(a.Text, "USER_DECLINED") {
		t.Errorf("a state without an answer: %+v", a)
	}

	// The same input in another spelling is the same input.
	forgive()
	state = fresh()
	if a := ann.With("change", `{ "text" : "\u006fne" }`, replaytest.SayOnce, state); a.Text != "did one" || runs.count() != 1 {
		t.Errorf("accepted: %+v", a)
	}
	runs.n = 0
	anew("replayed", ann.With("change", `{"text":"one"}`, replaytest.SayOnce, state))
}

// TestAskTwoReplies: of two answers that come at once one counts.
func TestAskTwoReplies(t *testing.T) {
	t.Parallel()
	const rounds, replies = 10, 8 // within the calls of a minute
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	c := onHTTP(t, x, "", true, replaytest.Declared)
	for round := range rounds {
		state := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop)).State
		var all sync.WaitGroup
		for range replies {
			all.Go(func() {
				a := c.With("change", `{"text":"one"}`, replaytest.SayOnce, state)
				if a.Asked == 0 && a.Text != "did one" {
					t.Errorf("round %d: %+v", round, a)
				}
			})
		}
		all.Wait()
		if runs.count() != round+1 {
			t.Fatalf("round %d: ran %d times", round, runs.count())
		}
	}
}

// TestAskRestart: a question outlives the server that asked it, and is answered once.
func TestAskRestart(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	setup := siteSetup{tools: oneChange(runs), settings: askingSettings()}
	x := serveHTTP(t, setup)
	c := onHTTP(t, x, "", true, replaytest.Declared)
	state := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop)).State
	x = x.again(t, setup)
	c = onHTTP(t, x, "", true, replaytest.Declared)
	if a := c.With("change", `{"text":"one"}`, replaytest.SayOnce, state); a.Text != "did one" || runs.count() != 1 {
		t.Fatalf("after a restart: %+v", a)
	}
	x = x.again(t, setup)
	c = onHTTP(t, x, "", true, replaytest.Declared)
	if a := c.With("change", `{"text":"one"}`, replaytest.SayOnce, state); a.Asked != 1 || runs.count() != 1 {
		t.Errorf("a second time: %+v, ran %d times", a, runs.count())
	}
}

// TestAskTimeout: a question waits as long as the operator says.
func TestAskTimeout(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]time.Duration{"30000": 30 * time.Second, "600000": 10 * time.Minute} {
		f := start(t, setup{silent: true, settings: map[string]string{"permissions.ask_timeout_ms": given}})
		if got := f.server.calls.Asks.Life; got != want {
			t.Errorf("%s ms became %s", given, got)
		}
	}
}

// brokenStore fails what it is told to.
type brokenStore struct {
	state.Store
	err error
}

func (b brokenStore) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, b.err }

func (b brokenStore) Swap(context.Context, string, []byte, uint64) (bool, error) { return false, b.err }

// TestAskWithoutStore: without the Store the server asks no person, and no approval counts.
func TestAskWithoutStore(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	c := onHTTP(t, x, "", true, replaytest.Declared)
	state := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop)).State
	store, good := x.server.engines.Store, x.server.calls.Asks
	broken := brokenStore{store, errors.New("the disk is gone")}
	x.server.calls.Asks = asking.New(broken, 0, x.server.event, x.server.replies.Log)
	for what, a := range map[string]replaytest.ElicitAnswer{
		"a question": c.Call("change", `{"text":"one"}`, replaytest.Never(t)),
		"an answer":  c.With("change", `{"text":"one"}`, replaytest.SayOnce, state),
	} {
		if !strings.HasPrefix(a.Text, "STATE_UNAVAILABLE: ") || runs.count() != 0 || strings.Contains(a.Raw, "disk") {
			t.Errorf("%s: %+v", what, a)
		}
	}
	x.server.calls.Asks = good
	if a := c.With("change", `{"text":"one"}`, replaytest.SayOnce, state); a.Text != "did one" {
		t.Errorf("the Store is back: %+v", a)
	}
}

// TestAskOtherRights: an answer of a principal under one token counts with another token of the same principal, whose
// session it is, too; what that token may not do it still may not.
func TestAskOtherRights(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings(), principals: []string{"ann"}})
	c := onHTTP(t, x, "ann", true, replaytest.Declared)
	state := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop)).State
	_, narrow, err := auth.OpenTokenFile(x.server.cfg.TokenFile()).New(auth.Token{Principal: "ann", Values: auth.Values{Scopes: []string{"mcp:read"}}})
	must(t, err)
	must(t, x.server.Reload(x.server.cfg.Principals))
	h := x.client("ann")
	h.Token = narrow
	a := replaytest.OverHTTP(t, h, true, replaytest.Declared).With("change", `{"text":"one"}`, replaytest.SayOnce, state)
	if runs.count() != 0 || !a.Failed {
		t.Errorf("%+v, ran %d times", a, runs.count())
	}
}

// TestAskOverQuota: an answer that comes with a call over its quota is not used up.
func TestAskOverQuota(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{
		tools: oneChange(runs), settings: askingSettings(), principals: []string{"ann"},
		values: map[string]auth.Values{"ann": {Quota: map[string]string{"calls_per_minute": "1", "burst": "1"}}},
	})
	c := onHTTP(t, x, "ann", true, replaytest.Declared)
	state := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop)).State
	if a := c.With("change", `{"text":"one"}`, replaytest.SayOnce, state); !strings.HasPrefix(a.Text, "RATE_LIMITED") || runs.count() != 0 {
		t.Fatalf("%+v, ran %d times", a, runs.count())
	}
	kept, _, err := x.server.engines.Store.Get(t.Context(), "ask."+strings.Split(state, ".")[1])
	if err != nil || !strings.Contains(string(kept), `"tool":"change"`) {
		t.Errorf("the answer was taken: %s, %v", kept, err)
	}
}

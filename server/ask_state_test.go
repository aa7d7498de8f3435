package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/pipeline"
	"codehand/server/replaytest"
	"codehand/server/state"
	"codehand/tools/session"
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
		"another nonce": parts[0] + "." + newID() + "." + parts[2], "another version": "v2." + parts[1] + "." + parts[2],
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
	anew("an acceptance after the decline", ann.With("change", `{"text":"one"}`, replaytest.SayOnce, state))

	state = fresh()
	if a := ann.CallWith("change", `{"text":"one"}`, fmt.Sprintf(`,"requestState":%q`, state), replaytest.Always(replaytest.Stop)); a.Asked != 0 || !strings.HasPrefix(a.Text, "USER_DECLINED") {
		t.Errorf("a state without an answer: %+v", a)
	}

	// The same input in another spelling is the same input.
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

// TestAskExpires: a question waits ten minutes, or as long as the operator says; then it is asked anew.
func TestAskExpires(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		timeout, later time.Duration
		runs           int
	}{{time.Hour, askLife - time.Second, 1}, {0, askLife + time.Second, 0}, {30 * time.Second, 29 * time.Second, 1}, {30 * time.Second, 31 * time.Second, 0}} {
		t.Run(tt.timeout.String()+"/"+tt.later.String(), func(t *testing.T) {
			t.Parallel()
			runs := &runCount{}
			x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
			x.server.asks = newAsker(x.server.engines.store, tt.timeout)
			now, clock := time.Now(), sync.Mutex{}
			x.server.asks.now = func() time.Time { clock.Lock(); defer clock.Unlock(); return now }
			c := onHTTP(t, x, "", true, replaytest.Declared)
			a := c.Call("change", `{"text":"one"}`, func(string) string {
				clock.Lock()
				defer clock.Unlock()
				now = now.Add(tt.later)
				return replaytest.Stop
			})
			a = c.With("change", `{"text":"one"}`, replaytest.SayOnce, a.State)
			if runs.count() != tt.runs || a.Asked != 1-tt.runs {
				t.Errorf("%+v, ran %d times", a, runs.count())
			}
		})
	}
}

// newTestAsker is an asker over a store in memory, with a clock.
func newTestAsker(timeout time.Duration) (*asker, *time.Time) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	a := newAsker(state.NewMemory(state.MemoryOptions{Now: clock}), timeout)
	a.now = clock
	return a, &now
}

// TestAskKeys: the key is replaced daily; the one before it still verifies, the one before that does not.
func TestAskKeys(t *testing.T) {
	t.Parallel()
	a, now := newTestAsker(0)
	key := session.Key{Principal: "p", Session: "h:one"}
	sign := func() (nonce, token string) {
		nonce, token, err := a.keep(t.Context(), key, pipeline.Asking{Tool: "change"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return nonce, token
	}
	nonce, first := sign()
	if got, err := a.open(t.Context(), key, "change", first); err != nil || got != nonce {
		t.Fatalf("open: %q, %v", got, err)
	}
	*now = now.Add(askKeyLife - time.Minute)
	_, second := sign()
	*now = now.Add(2 * time.Minute)
	_, third := sign()
	for i, token := range []string{first, second, third} {
		if _, err := a.open(t.Context(), key, "change", token); err != nil {
			t.Errorf("state %d after one new key: %v", i+1, err)
		}
	}
	*now = now.Add(askKeyLife)
	_, _ = sign()
	for i, want := range []error{errForged, errForged, nil} {
		if _, err := a.open(t.Context(), key, "change", []string{first, second, third}[i]); err != want {
			t.Errorf("state %d after two new keys: %v", i+1, err)
		}
	}
	stored, _, err := a.store.Get(t.Context(), "key.ask")
	var k askKeys
	if err != nil || json.Unmarshal(stored, &k) != nil || len(k.Key) != 32 || len(k.Before) != 32 {
		t.Errorf("key.ask is %s, %v", stored, err)
	}
}

// TestAskRecord: what the Store holds shows nothing that a person was shown.
func TestAskRecord(t *testing.T) {
	t.Parallel()
	a, now := newTestAsker(0)
	key := session.Key{Principal: "p", Session: "h:one"}
	nonce, _, err := a.keep(t.Context(), key, pipeline.Asking{
		Tool: "change", Digest: "d", Before: json.RawMessage(`{"x":1}`),
		Question: tool.Question{Title: "the title", Text: "the secret text", Fields: []tool.Field{{Name: "f", Label: "the label", Choices: []string{"a"}}}},
	}, namedChoices)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := a.store.Get(t.Context(), "ask."+nonce)
	if err != nil || strings.Contains(string(body), "the ") {
		t.Errorf("kept: %s, %v", body, err)
	}
	*now = now.Add(askLife + time.Second)
	if body, _, err := a.store.Get(t.Context(), "ask."+nonce); err != nil || body != nil {
		t.Errorf("after its life: %s, %v", body, err)
	}
	if k, err := a.take(t.Context(), nonce); k != nil || err != nil {
		t.Errorf("take: %+v, %v", k, err)
	}
}

// brokenStore fails what it is told to.
type brokenStore struct {
	state.Store
	err error
}

func (b brokenStore) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, b.err }

func (b brokenStore) Swap(context.Context, string, []byte, uint64) (bool, error) { return false, b.err }

// TestAskWithoutStore: without the Store nobody is asked, and no approval counts.
func TestAskWithoutStore(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	c := onHTTP(t, x, "", true, replaytest.Declared)
	state := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.Stop)).State
	good := x.server.asks.store
	x.server.asks.store = brokenStore{good, fmt.Errorf("the disk is gone")}
	for what, a := range map[string]replaytest.ElicitAnswer{
		"a question": c.Call("change", `{"text":"one"}`, replaytest.Never(t)),
		"an answer":  c.With("change", `{"text":"one"}`, replaytest.SayOnce, state),
	} {
		if !strings.HasPrefix(a.Text, "STATE_UNAVAILABLE: ") || runs.count() != 0 || strings.Contains(a.Raw, "disk") {
			t.Errorf("%s: %+v", what, a)
		}
	}
	x.server.asks.store = good
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
	_, narrow, err := auth.OpenTokenFile(TokenFile(x.server.cfg)).New(auth.Token{Principal: "ann", Values: auth.Values{Scopes: []string{"mcp:read"}}})
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
	if k, err := x.server.asks.take(t.Context(), strings.Split(state, ".")[1]); k == nil || err != nil {
		t.Errorf("the answer was taken: %+v, %v", k, err)
	}
}

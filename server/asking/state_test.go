package asking

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/pipeline"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// newTestAsker is an asker over a store in memory, with a clock.
func newTestAsker(timeout time.Duration) (*Asker, *time.Time) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	store := state.NewMemory(state.MemoryOptions{Now: clock})
	a := New(store, timeout, func(string, map[string]any) {}, slog.New(slog.DiscardHandler))
	a.now = clock
	return a, &now
}

// TestKeys: the key is replaced daily; the one before it still verifies, the one before that does not.
func TestKeys(t *testing.T) {
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
	*now = now.Add(keyLife - time.Minute)
	_, second := sign()
	*now = now.Add(2 * time.Minute)
	_, third := sign()
	for i, token := range []string{first, second, third} {
		if _, err := a.open(t.Context(), key, "change", token); err != nil {
			t.Errorf("state %d after one new key: %v", i+1, err)
		}
	}
	*now = now.Add(keyLife)
	_, _ = sign()
	for i, want := range []error{ErrForged, ErrForged, nil} {
		if _, err := a.open(t.Context(), key, "change", []string{first, second, third}[i]); err != want {
			t.Errorf("state %d after two new keys: %v", i+1, err)
		}
	}
	stored, _, err := a.store.Get(t.Context(), "key.ask")
	var k keyring
	if err != nil || json.Unmarshal(stored, &k) != nil || len(k.Key) != 32 || len(k.Before) != 32 {
		t.Errorf("key.ask is %s, %v", stored, err)
	}
}

// TestRecord: what the Store holds shows nothing that a person was shown.
func TestRecord(t *testing.T) {
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
	*now = now.Add(maxLife + time.Second)
	if body, _, err := a.store.Get(t.Context(), "ask."+nonce); err != nil || body != nil {
		t.Errorf("after its life: %s, %v", body, err)
	}
	if k, err := a.take(t.Context(), nonce); k != nil || err != nil {
		t.Errorf("take: %+v, %v", k, err)
	}
}

// TestExpires: a question waits ten minutes, or as long as the operator says; then nothing that comes is an answer.
func TestExpires(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		timeout, later time.Duration
		counts         bool
	}{
		{time.Hour, maxLife - time.Second, true}, {0, maxLife + time.Second, false},
		{30 * time.Second, 29 * time.Second, true}, {30 * time.Second, 31 * time.Second, false},
	} {
		a, now := newTestAsker(tt.timeout)
		st := &session.State{Key: session.Key{Principal: "p", Session: "h:one"}}
		q, err := a.Ask(t.Context(), st, pipeline.Asking{Tool: "change", Digest: "d"})
		must(t, err)
		*now = now.Add(tt.later)
		said := &Elicited{}
		said.Action = mcp.ElicitationResponseActionAccept
		reply, err := a.Reply(t.Context(), st, "change", q.Token, said, false)
		if err != nil || (reply != nil) != tt.counts || reply != nil && reply.Answer.Outcome != tool.Accepted {
			t.Errorf("%s after a question of %s: %+v, %v", tt.later, tt.timeout, reply, err)
		}
	}
}

// TestNobody: a question that is closed without a choice, or that a client declines by itself, was answered by no person.
func TestNobody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		action mcp.ElicitationResponseAction
		alone  bool
		after  time.Duration
		nobody bool
	}{
		{"cancelled", mcp.ElicitationResponseActionCancel, false, time.Minute, true},
		{"declined by a person", mcp.ElicitationResponseActionDecline, true, 2 * time.Second, false},
		{"declined at once by a client that does", mcp.ElicitationResponseActionDecline, true, 5 * time.Millisecond, true},
		{"declined at once by another", mcp.ElicitationResponseActionDecline, false, 5 * time.Millisecond, false},
		{"accepted at once", mcp.ElicitationResponseActionAccept, true, 5 * time.Millisecond, false},
	} {
		a, now := newTestAsker(0)
		st := &session.State{Key: session.Key{Principal: "p", Session: "h:one"}, Client: session.Client{Forms: session.Forms{DeclinesAlone: tt.alone}}}
		q, err := a.Ask(t.Context(), st, pipeline.Asking{Tool: "change", Digest: "d"})
		must(t, err)
		*now = now.Add(tt.after)
		said := &Elicited{}
		said.Action = tt.action
		reply, err := a.Reply(t.Context(), st, "change", q.Token, said, false)
		if err != nil || reply == nil || reply.Answer.Silent != tt.nobody {
			t.Errorf("%s: %+v, %v", tt.name, reply, err)
		}
	}
}

// TestNoTextFields: a client that cannot send a form with an empty text gets the choices only.
func TestNoTextFields(t *testing.T) {
	t.Parallel()
	q := pipeline.Asking{Tool: "change", Question: tool.Question{Title: "t", Fields: []tool.Field{
		{Name: "decision", Label: "Decision", Choices: []string{"a", "b"}}, {Name: "reason", Label: "Reason"},
	}}}
	for _, without := range []bool{false, true} {
		a, _ := newTestAsker(0)
		st := &session.State{Key: session.Key{Principal: "p", Session: "h:one"}, Client: session.Client{Forms: session.Forms{NoTexts: without}}}
		asked, err := a.Ask(t.Context(), st, q)
		must(t, err)
		schema, err := json.Marshal(asked.Form.RequestedSchema)
		must(t, err)
		if strings.Contains(string(schema), `"reason"`) == without || !strings.Contains(string(schema), `"decision"`) {
			t.Errorf("without texts %t: %s", without, schema)
		}
	}
	if len(q.Question.Fields) != 2 {
		t.Error("the question itself was changed")
	}
}

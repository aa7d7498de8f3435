package server

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/audit"
	"codehand/server/replaytest"
	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// A slowMemory never answers: it reports each question, and waits for the end of the call.
type slowMemory struct{ asked chan<- string }

func (m slowMemory) Get(ctx context.Context, _ string) ([]byte, uint64, error) {
	m.asked <- "the Store is asked"
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

func (m slowMemory) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	_, _, err := m.Get(ctx, keys[0])
	return nil, nil, err
}

func (slowMemory) Swap(context.Context, string, []byte, uint64) (bool, error) {
	return false, state.ErrDown
}

// A brokenMemory fails with its error.
type brokenMemory struct{ err error }

func (m brokenMemory) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, m.err }

func (m brokenMemory) GetAll(context.Context, ...string) ([][]byte, []uint64, error) {
	return nil, nil, m.err
}

func (m brokenMemory) Swap(context.Context, string, []byte, uint64) (bool, error) {
	return false, m.err
}

// moveWith gives all sessions that begin from now on a memory of their own for their current directory.
func moveWith(s *Server, m session.Memory) {
	build := s.sessions.Build
	s.sessions.Build = func(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
		st, end, err := build(key, at)
		if err == nil {
			st.Cwd = session.NewCell[string](m, "cell.cwd")
		}
		return st, end, err
	}
}

// TestCallsRecordedBeforeTheCorridor: a call whose client left while its current directory was looked up, and one for which
// the Store did not say where it is, were in no audit and in no metric.
func TestCallsRecordedBeforeTheCorridor(t *testing.T) {
	t.Parallel()
	const down = "STATE_UNAVAILABLE: The state store does not answer, so the current directory is not known. Try again."
	for _, c := range []struct {
		name, outcome, code, decision string
		cancelled                     bool
		memory                        func(*stage) session.Memory
	}{
		{"cancelled", "cancelled", "CANCELLED", "", true, func(x *stage) session.Memory { return slowMemory{x.began} }},
		{"the Store is down", "unavailable", "STATE_UNAVAILABLE", "state", false, func(*stage) session.Memory { return brokenMemory{state.ErrDown} }},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(c.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				x := staged(t, nil)
				moveWith(x.server, c.memory(x))
				client := x.client("alice")
				if era == "modern" {
					client.Of2026()
				} else {
					client.Hello()
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				answer := client.Launch(ctx, "1", "watch", "a", "")
				if c.cancelled {
					x.expect(t, x.began, "the Store is asked")
					leave()
				} else if text, failed := arrived(t, answer).Text(); !failed || text != down {
					t.Errorf("the answer is %q", text)
				}
				x.open(t, 0)
				x.quiet(t)
				if want := `codehand_calls_total{outcome="` + c.outcome + `",tool="watch"} 1`; !strings.Contains(scraped(t, x.server.team.Metrics), want) {
					t.Errorf("the metrics lack %s", want)
				}
				must(t, x.stop())
				mustBeDone(t, filepath.Join(x.data, "audit"), map[string]any{
					"tool": "watch", "ok": false, "code": c.code, "dec": c.decision, "cancelled": c.cancelled, "p": "alice", "era": era,
				})
			})
		}
	}
}

// mustBeDone checks that the log has one line of a call, with these fields.
func mustBeDone(t *testing.T, dir string, want map[string]any) {
	t.Helper()
	calls := 0
	for _, line := range replaytest.AuditLines(t, dir) {
		if line["ev"] != "call.done" {
			continue
		}
		calls++
		for name, value := range want {
			if line[name] != value {
				t.Errorf("call.done: %s is %v, want %v", name, line[name], value)
			}
		}
	}
	if calls != 1 {
		t.Errorf("%d lines call.done, want 1", calls)
	}
}

// TestEndedCallInProcess: a call whose context has ended when it begins is recorded, as cancelled.
func TestEndedCallInProcess(t *testing.T) {
	t.Parallel()
	dir := auditDir(t)
	f, a := audited(t, audit.Options{Dir: dir, Sync: -1}, setup{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text, failed, err := f.server.Call(ctx, "read_file", []byte(`{"file_path":"a.txt"}`))
	if err != nil || !failed || text != "CANCELLED: Tool execution cancelled by user." {
		t.Errorf("got %q, failed %v, %v", text, failed, err)
	}
	must(t, a.Close())
	mustBeDone(t, dir, map[string]any{"tool": "read_file", "ok": false, "code": "CANCELLED", "dec": "", "cancelled": true, "p": "local", "tr": "call"})
}

// TestCancelledWhileAsked: a legacy call that is cancelled while a person thinks had no last line: what stood in the audit was
// that the person is asked.
func TestCancelledWhileAsked(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings()})
	c := onHTTP(t, x, "", false, replaytest.Declared)
	question := c.Request(c.Line("change", `{"text":"one"}`, ""))()
	if !strings.Contains(string(question), "elicitation/create") {
		t.Fatalf("%s", question)
	}
	c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if x.server.openCalls() {
		t.Error("calls are open")
	}
	must(t, x.stop())
	var got []string
	for _, line := range replaytest.AuditLines(t, filepath.Join(x.data, "audit")) {
		switch line["ev"] {
		case "call.start", "call.done":
			got = append(got, fmt.Sprint(line["ev"], " ", line["code"], " ", line["cancelled"]))
		}
	}
	if want := []string{"call.done PENDING false", "call.done CANCELLED true"}; !slices.Equal(got, want) || runs.count() != 0 {
		t.Errorf("got %q, want %q; ran %d times", got, want, runs.count())
	}
}

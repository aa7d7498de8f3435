package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/leaktest"
	"codehand/filestate/lock"
	"codehand/server/state"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A listener is an audit that keeps records, and fails when it is told to.
type listener struct {
	mu      sync.Mutex
	records []Record
	fail    func(Record) error
	ready   error
}

func (l *listener) audit(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	if l.fail == nil {
		return nil
	}
	return l.fail(r)
}

func (l *listener) listen(c *corridor) {
	c.Audit, c.AuditReady = l.audit, func() error { return l.ready }
}

var errFull = &fs.PathError{Op: "write", Path: "/secret/place", Err: syscall.ENOSPC}

const refusedText = "The audit log cannot be written: no space left on device. Nothing was done. Tell the operator."

func TestAuditOfACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		traits tool.Traits
		want   []string // of each record: started or done, its code
	}{
		{"change", writes, []string{"started", "done ok"}},
		{"memory", tool.Traits{Private: true}, []string{"started", "done ok"}},
		{"read", reads, []string{"done ok"}},
		{"ungated", free, []string{"done ok"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, s, l := newCorridor(), newState(t, "s"), &listener{}
			l.listen(p)
			ran := 0
			_, err := p.run(t, s, fixture("work", c.traits, func(context.Context, tool.Env) (tool.Result, error) {
				ran = len(l.records)
				return tool.Result{Text: "done"}, nil
			}), `{}`, Arrival{From: From{IP: "10.0.0.7"}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range l.records {
				text := "started"
				if !r.Started {
					text = "done " + r.Code
				}
				got = append(got, text)
				if r.From.IP != "10.0.0.7" || r.Call == "" || r.Decision == "" || r.Started != (r.Took == 0) || r.Announced != (len(c.want) == 2 && !r.Started) {
					t.Errorf("record %+v", r)
				}
			}
			if !slices.Equal(got, c.want) || ran != len(c.want)-1 {
				t.Errorf("records %q, %d of them before it ran; want %q", got, ran, c.want)
			}
		})
	}
}

func TestAuditFails(t *testing.T) {
	t.Parallel()
	onStart := func(r Record) error {
		if r.Started {
			return fmt.Errorf("audit log: %w", errFull)
		}
		return nil
	}
	for _, c := range []struct {
		name    string
		traits  tool.Traits
		fail    func(Record) error
		ready   error
		refused bool
		text    string
	}{
		{"a change that cannot be recorded", writes, onStart, nil, true, refusedText},
		{"a change while it fails", writes, nil, errFull, true, refusedText},
		{"a read while it fails", reads, nil, errFull, true, refusedText},
		{"a read needs no line before it runs", reads, onStart, nil, false, ""},
		{"a cause that is none of the system's", reads, nil, errors.New("/secret/place"), true, "The audit log cannot be written: the server's log says why. Nothing was done. Tell the operator."},
		{"a panic", writes, func(r Record) error { panic("oh") }, nil, true, "The audit log cannot be written: the server's log says why. Nothing was done. Tell the operator."},
		{"the end", reads, func(r Record) error { return errFull }, nil, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, s, l := newCorridor(), newState(t, "s"), &listener{fail: c.fail, ready: c.ready}
			l.listen(p)
			ran := false
			_, err := p.run(t, s, fixture("work", c.traits, func(context.Context, tool.Env) (tool.Result, error) {
				ran = true
				return tool.Result{Text: "done"}, nil
			}), `{}`, Arrival{})
			if c.refused {
				wantRefusal(t, err, tool.AuditUnavailable, c.text)
				if last := l.records[len(l.records)-1]; ran || last.Started || last.Code != "AUDIT_UNAVAILABLE" || last.Decision != auditFailed || last.Announced {
					t.Errorf("ran: %v; record %+v", ran, last)
				}
			} else if err != nil || !ran {
				t.Errorf("ran: %v; %v", ran, err)
			}
			if c.name == "the end" && !strings.Contains(p.log.String(), "audit of a call") {
				t.Errorf("a line that is missing is not in the log: %s", p.log.String())
			}
			if !p.gates.idle() {
				t.Error("a gate is left")
			}
		})
	}
}

// Every end of a call has its record, with what became of the verdict and who is behind it.
func TestDecisions(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, "a")
	input := `{"path":"` + file + `"}`
	own := func(v permission.Verdict) func(*tool.Def[editInput]) {
		return func(d *tool.Def[editInput]) {
			d.Verdict = func(*session.State, editInput) permission.Verdict { return v }
		}
	}
	opinion := func(v permission.Verdict) *fakeHooks {
		return &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
			return hooks.Outcome{Opinions: []permission.Verdict{v}}, nil
		}}
	}
	answer := func(what string) func(context.Context, Asking) (tool.Answer, error) {
		return func(context.Context, Asking) (tool.Answer, error) {
			return tool.Answer{Outcome: tool.Accepted, Values: map[string][]string{decisionField: {what}}}, nil
		}
	}
	silence := func(context.Context, Asking) (tool.Answer, error) {
		return tool.Answer{Outcome: tool.Cancelled, Silent: true}, nil
	}
	pending := func(context.Context, Asking) (tool.Answer, error) {
		return tool.Answer{}, tool.ErrPending
	}
	for _, c := range []struct {
		name     string
		change   func(*tool.Def[editInput])
		raw      string
		deny     []string
		mode     permission.Mode
		hooks    Hooks
		ask      func(context.Context, Asking) (tool.Answer, error)
		forced   bool // no fallback to the client's dialog
		refused  *tool.Refusal
		decision string
		by       string
		code     string
	}{
		{name: "mode allows", mode: permission.AcceptEdits, decision: "allow", by: "mode", code: "ok"},
		{name: "client's dialog", decision: "ask.allow", by: "client", code: "ok"},
		{name: "user allows", forced: true, ask: answer(allowOnce), decision: "ask.allow", by: "user", code: "ok"},
		{name: "user denies", forced: true, ask: answer(denyIt), decision: "ask.deny", by: "user", code: "USER_DECLINED"},
		{name: "nobody answers", forced: true, ask: silence, decision: "ask.deny", by: "client", code: "ASK_UNAVAILABLE"},
		{name: "nobody to ask", forced: true, decision: "ask.deny", by: "client", code: "ASK_UNAVAILABLE"},
		{name: "asked", forced: true, ask: pending, decision: "", by: "mode", code: "PENDING"},
		{name: "rule", deny: []string{"Edit(/" + file + ")"}, decision: "deny", by: "config", code: "PERMISSION_DENIED"},
		{name: "rule that switches off", deny: []string{"edit_it"}, decision: "deny", by: "config", code: "TOOL_DISABLED"},
		{name: "mode denies", mode: permission.DontAsk, decision: "deny", by: "mode", code: "PERMISSION_DENIED"},
		{name: "plan mode", mode: permission.Plan, decision: "plan", by: "mode", code: "PLAN_MODE"},
		{name: "tool denies", change: own(permission.Deny), decision: "deny", by: "tool", code: "PERMISSION_DENIED"},
		{name: "tool wants a person", change: own(permission.Ask), ask: answer(allowOnce), decision: "ask.allow", by: "user", code: "ok"},
		{name: "hook allows", hooks: opinion(permission.Allow), decision: "allow", by: "hook", code: "ok"},
		{name: "hook denies", hooks: opinion(permission.Deny), decision: "deny", by: "hook", code: "HOOK_BLOCKED"},
		{name: "input", raw: `{"path":5,"x":1}`, decision: "", by: "", code: "INPUT_INVALID"},
		{name: "scope", refused: &tool.Refusal{Code: tool.ScopeMissing}, decision: "scope", by: "config", code: "SCOPE_MISSING"},
		{name: "quota", refused: &tool.Refusal{Code: tool.RateLimited}, decision: "quota", by: "config", code: "RATE_LIMITED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, s, l := newCorridor(), newState(t, "s", root), &listener{}
			l.listen(p)
			s.Start, s.Rules, s.Client.CanAsk = c.mode, policy(t, c.deny...), c.ask != nil
			p.Hooks, p.Ask = c.hooks, c.ask
			if c.forced {
				p.AskFallback = ""
			}
			if c.raw == "" {
				c.raw = input
			}
			var ran []editInput
			_, _ = p.run(t, s, editor(&ran, c.change), c.raw, Arrival{Admission: Admission{Refused: c.refused}})
			got := l.records[len(l.records)-1]
			if got.Asked != (got.By == "user") {
				t.Errorf("by %q, and a person answered: %v", got.By, got.Asked)
			}
			if got.Started || got.Decision != c.decision || got.By != c.by || got.Code != c.code {
				t.Errorf("started %v, %q by %q, %s; want %q by %q, %s", got.Started, got.Decision, got.By, got.Code, c.decision, c.by, c.code)
			}
			if ok := len(ran) == 1; ok != (c.code == "ok") || ok != (len(l.records) == 2) {
				t.Errorf("ran %v with %d records", ran, len(l.records))
			}
		})
	}
}

// What a command did to the session's files is in its record, and what another program did before is not.
func TestAuditOfACommand(t *testing.T) {
	t.Parallel()
	root := leaktest.Dir(t)
	p, s, l := newCorridor(), newState(t, "s", root), &listener{}
	l.listen(p)
	s.Start = permission.Bypass
	s.Files = filestate.New(filestate.Options{
		Memory: state.Scoped(state.NewMemory(state.MemoryOptions{}), state.Key(state.Session, state.Hash("p"), state.Hash("s"))),
		Locker: lock.New(t.TempDir()), Contents: filestate.NewContents(0),
	})
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"changed", "gone", "before", "left"} {
		put(name, "old")
		see(t, s, filepath.Join(root, name))
	}
	put("before", "by somebody else")
	command := func(meta tool.Meta) tool.Tool {
		return tool.Define(tool.Def[editInput]{
			Spec: tool.Spec{Name: "do_it", Title: "Do", Description: "A fixture.", Hint: "run one command here"},
			Targets: func(_ *session.State, in editInput) []permission.Target {
				return []permission.Target{{Kind: permission.Command, Value: in.Path}}
			},
			Run: func(context.Context, tool.Env, editInput) (tool.Result, error) {
				put("changed", "new")
				meta.Changed = []tool.FileChange{{Path: filepath.Join(root, "changed"), Op: "change"},
					{Path: filepath.Join(root, "made"), Op: "create", SumAfter: "11"}, {Path: filepath.Join(root, "out"), Op: "create", Files: 40}}
				return tool.Result{Meta: meta}, os.Remove(filepath.Join(root, "gone"))
			},
		})
	}
	raw := `{"path":"TOKEN=hunter2 deploy --now"}`
	meta := tool.Meta{Sandbox: &tool.Confinement{Level: 1}, Data: json.RawMessage(`{"exitCode":3}`)}
	if _, err := p.run(t, s, command(meta), raw, Arrival{}); err != nil {
		t.Fatal(err)
	}
	r := l.records[1]
	var got []string
	for _, f := range r.Files {
		got = append(got, fmt.Sprintf("%s %s %s %s %s %d", f.Op, f.Did, filepath.Base(f.Path), f.SumBefore, f.SumAfter, f.Files))
	}
	const sumOld, sumNew = "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4", "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"
	if want := []string{"shell change changed " + sumOld + " " + sumNew + " 0", "shell create made  11 0", "shell create out   40",
		"shell delete gone " + sumOld + "  0"}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if r.Exit == nil || *r.Exit != 3 || r.Sandbox.Level != 1 || r.Job != "" || r.FilesCut || r.Summary.Text != "command=TOKEN=[masked] deploy --now" {
		t.Errorf("record %+v", r)
	}
	put("gone", "old")
	meta.Job = &tool.Job{ID: "j1", State: "running"}
	if _, err := p.run(t, s, command(meta), raw, Arrival{}); err != nil {
		t.Fatal(err)
	}
	if r := l.records[3]; r.Exit != nil || r.Job != "j1" {
		t.Errorf("a job that runs has exit %v, job %q", r.Exit, r.Job)
	}
}

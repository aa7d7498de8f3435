package hooks

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/permission"
)

// An asynchronous hook is not waited for, and what it says does not count.
func TestAsync(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	text := dial + `echo '{"decision":"block"}'; read -r go <&3; cat >"$2"; exit 2`
	out := filepath.Join(t.TempDir(), "told")
	r, log := newRunner(t, Options{FailClosed: true, Hooks: []Hook{{Event: PreToolUse, Async: true, Command: append(script(t, "bash", text), p.port, out)}}})
	o, err := r.Before(t.Context(), shellEvent(t, "ls"))
	if err != nil || o.Opinions != nil {
		t.Errorf("got %+v, %v", o, err)
	}
	conn := p.ready(t) // it runs, and the call is answered
	_, err = conn.Write([]byte("go\n"))
	must(t, err)
	gone(t, conn)
	told, err := os.ReadFile(out)
	must(t, err)
	has(t, "what it was told", string(told), `"hook_event_name":"PreToolUse"`)
	r.Grace = hang // the process is gone, which may not have been noticed yet
	r.Close()
	if log.String() != "" {
		t.Error(log.String())
	}
}

// What is told for information arrives; the matcher is held against what tells such events apart.
func TestTell(t *testing.T) {
	t.Parallel()
	tests := []struct {
		e        Event
		matchers map[string]bool
	}{
		{Event{Name: SessionStart, Source: "startup"}, map[string]bool{"": true, "startup": true, "resume": false, "start.*": true}},
		{Event{Name: SessionEnd, Reason: "idle"}, map[string]bool{"*": true, "idle|closed": true, "shutdown": false}},
		{Event{Name: FileChanged, Tool: "x", File: "/w/go.mod"}, map[string]bool{"": true, "go.mod": true, "mod": false, `\.mod$`: true, "x": false, "^/w/": true}},
		{Event{Name: PermissionDenied, Tool: "run_shell", Aliases: []string{"Bash"}}, map[string]bool{"Bash": true, "Edit": false}},
		{Event{Name: SubagentStart, AgentType: "explore"}, map[string]bool{"explore": true, "plan": false}},
		{Event{Name: SubagentStop, AgentType: "explore"}, map[string]bool{"explore": true, "plan": false}},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		var list []Hook
		for m := range tt.matchers {
			list = append(list, Hook{Event: tt.e.Name, Matcher: m, Command: append(script(t, "bash", `cat >"$1"; exit 2`), filepath.Join(dir, strings.ReplaceAll("m"+m, "/", "_")))})
		}
		r, log := newRunner(t, Options{Hooks: list})
		if !r.Wants(tt.e.Name) || r.Wants(PreToolUse) {
			t.Errorf("%s: wants what nobody asked for", tt.e.Name)
		}
		r.Grace = hang // however slow this machine is
		r.Tell(tt.e)
		r.Close() // waits for them
		for m, want := range tt.matchers {
			text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll("m"+m, "/", "_")))
			if (err == nil) != want || want && !strings.Contains(string(text), `"hook_event_name":"`+tt.e.Name+`"`) {
				t.Errorf("%s with matcher %q: %q, %v", tt.e.Name, m, text, err)
			}
		}
		if log.String() != "" {
			t.Error(log.String())
		}
		r.Tell(tt.e)
		has(t, "the log", log.String(), "a hook was not started")
	}
}

// Close ends what runs, in the background and for a call, with its whole tree.
func TestClose(t *testing.T) {
	t.Parallel()
	behind, front := newPhone(t), newPhone(t)
	text := script(t, "bash", dial+"sleep 1000 & wait")
	r, log := newRunner(t, Options{FailClosed: true, Hooks: []Hook{
		{Event: SessionEnd, Command: append(text, behind.port)}, {Event: PreToolUse, Command: append(text[:2:2], front.port)},
	}})
	r.Tell(Event{Name: SessionEnd})
	answered := make(chan Outcome)
	e := shellEvent(t, "ls")
	go func() {
		o, err := r.Before(t.Context(), e)
		if err != nil {
			t.Error(err)
		}
		answered <- o
	}()
	lines := []net.Conn{behind.ready(t), front.ready(t)}
	r.Close()
	if o := <-answered; len(o.Opinions) != 1 || o.Opinions[0] != permission.Deny {
		t.Errorf("a guard that was ended by us let the call pass: %+v", o)
	}
	for _, l := range lines {
		gone(t, l)
	}
	has(t, "the log", log.String(), errStopped.Error())
	if o, err := r.Before(t.Context(), e); err != nil || len(o.Opinions) != 1 {
		t.Errorf("after Close: %+v, %v", o, err)
	}
}

// No more than maxBackground run at once, no more than maxWaiting wait, and Close gives them its grace.
func TestBackgroundLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b running
		var now, most, ended, began atomic.Int64
		work := func(ctx context.Context) {
			began.Add(1)
			n := now.Add(1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
			defer now.Add(-1)
			select {
			case <-time.After(1100 * time.Millisecond):
			case <-ctx.Done():
				if errors.Is(context.Cause(ctx), errStopped) {
					ended.Add(1)
				}
			}
		}
		for n := range maxBackground + maxWaiting {
			if !b.background(work) {
				t.Fatalf("no place for number %d", n)
			}
		}
		if b.background(work) {
			t.Error("there is always place for one more")
		}
		time.Sleep(1500 * time.Millisecond)
		if began.Load() != 2*maxBackground || most.Load() != maxBackground || !b.background(work) {
			t.Errorf("%d began, %d at once", began.Load(), most.Load())
		}
		start := time.Now()
		b.close(closeGrace)
		if took := time.Since(start); took != closeGrace {
			t.Errorf("closed after %v", took)
		}
		if began.Load() != 3*maxBackground || ended.Load() != maxBackground || now.Load() != 0 || b.background(work) {
			t.Errorf("%d began, %d were ended, %d run", began.Load(), ended.Load(), now.Load())
		}
		b.close(closeGrace)
	})
}

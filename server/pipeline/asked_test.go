package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// PermissionRequest hooks come before the person, here and in the client's own dialog; only a person lifts a hard ask.
func TestRequestHooks(t *testing.T) {
	t.Parallel()
	says := func(v permission.Verdict) hooks.Outcome {
		return hooks.Outcome{Opinions: []permission.Verdict{v}, Reason: "\x1b[31mbecause\x1b[0m"}
	}
	other := says(permission.Allow)
	other.Input = json.RawMessage(`{"path":"b"}`)
	tests := []struct {
		name   string
		said   hooks.Outcome
		err    error
		hard   bool
		client bool // the client's own dialog is the person
		asked  int  // persons
		code   tool.Code
		by     string
	}{
		{"silent", hooks.Outcome{}, nil, false, false, 1, "", byUser},
		{"silent, client", hooks.Outcome{}, nil, false, true, 0, "", byClient},
		{"allow", says(permission.Allow), nil, false, false, 0, "", byHook},
		{"allow, client", says(permission.Allow), nil, false, true, 0, "", byHook},
		{"allow of a hard ask", says(permission.Allow), nil, true, false, 1, "", byUser},
		{"allow of a hard ask, client", says(permission.Allow), nil, true, true, 1, "", byUser},
		{"allow of another input", other, nil, false, false, 1, "", byUser},
		{"ask", says(permission.Ask), nil, false, false, 1, "", byUser},
		{"ask beats allow", hooks.Outcome{Opinions: []permission.Verdict{permission.Allow, permission.Ask}}, nil, false, false, 1, "", byUser},
		{"deny", says(permission.Deny), nil, false, false, 0, tool.HookBlocked, byHook},
		{"deny, client", says(permission.Deny), nil, false, true, 0, tool.HookBlocked, byHook},
		{"deny of a hard ask", says(permission.Deny), nil, true, false, 0, tool.HookBlocked, byHook},
		{"engine fails", hooks.Outcome{}, errLost, false, false, 0, tool.Internal, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s")
			s.Client.CanAsk = true
			if !tt.client {
				p.AskFallback = ""
			}
			var told hooks.Event
			p.Hooks = &fakeHooks{asked: func(_ context.Context, e hooks.Event) (hooks.Outcome, error) {
				told = e
				return tt.said, tt.err
			}}
			a := &asker{say: func(Asking) (tool.Answer, error) { return accept(allowOnce, ""), nil }}
			p.Ask = a.ask
			var ran []editInput
			_, err := p.run(t, s, editor(&ran, func(d *tool.Def[editInput]) {
				if tt.hard {
					d.Verdict = func(*session.State, editInput) permission.Verdict { return permission.Ask }
				}
			}), `{"path":"a"}`, Arrival{})
			switch {
			case tt.code == tool.Internal:
				if _, ok := errors.AsType[*InternalError](err); !ok {
					t.Errorf("got %v", err)
				}
			case tt.code != "":
				wantRefusal(t, err, tt.code, "Blocked by a hook: because\nThe operator can change that hook; tell the user.")
			case err != nil || len(ran) != 1 || filepath.Base(ran[0].Path) != "a":
				t.Errorf("ran with %v, %v", ran, err)
			}
			if r := p.last(); len(a.asked) != tt.asked || tt.by != "" && r.By != tt.by || r.Decision == denied != (tt.code == tool.HookBlocked) {
				t.Errorf("%d were asked, %+v", len(a.asked), r)
			}
			if told.Tool != "edit_it" || told.Reason == "" || told.Call == "" || len(told.Roots) != 1 || len(told.Request.Targets) != 1 {
				t.Errorf("the hook saw %+v", told)
			}
		})
	}
}

// Neither hooks nor the classifier are asked twice while a call waits for a person.
func TestConsultedOnce(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Start, s.Client.CanAsk, p.AskFallback = permission.Auto, true, ""
	var requested, judged int
	h := &fakeHooks{asked: func(context.Context, hooks.Event) (hooks.Outcome, error) { requested++; return hooks.Outcome{}, nil }}
	p.Hooks = h
	p.Classify = func(context.Context, hooks.Event) (permission.Verdict, error) { judged++; return permission.Ask, nil }
	a := &asker{say: func(Asking) (tool.Answer, error) { return tool.Answer{}, tool.ErrPending }}
	p.Ask = a.ask
	v := p.Arrive(s)
	defer v.Leave()
	tl := fixture("work", writes, done)
	if _, err := v.Call(t.Context(), tl, nil, Arrival{Ask: p.Ask}); !errors.Is(err, tool.ErrPending) {
		t.Fatal(err)
	}
	reply := &Reply{Digest: a.asked[0].Digest, Before: a.asked[0].Before, Answer: accept(allowOnce, "")}
	if _, err := v.Call(t.Context(), tl, nil, Arrival{Ask: p.Ask, Reply: reply}); err != nil {
		t.Fatal(err)
	}
	if h.ran.Load() != 1 || requested != 1 || judged != 1 || len(a.asked) != 1 {
		t.Errorf("asked: hooks %d and %d times, the classifier %d, a person %d", h.ran.Load(), requested, judged, len(a.asked))
	}
}

// In mode auto the classifier judges what the mode would ask about, and judges again what a hook made of it.
func TestClassifier(t *testing.T) {
	t.Parallel()
	input := func(text string) hooks.Outcome { return hooks.Outcome{Input: json.RawMessage(text)} }
	tests := []struct {
		name   string
		mode   permission.Mode
		traits tool.Traits
		said   hooks.Outcome
		judge  map[string]permission.Verdict // by input
		err    error
		code   tool.Code
		judged int
	}{
		{"allow", permission.Auto, writes, hooks.Outcome{}, map[string]permission.Verdict{`{}`: permission.Allow}, nil, "", 1},
		{"ask", permission.Auto, writes, hooks.Outcome{}, map[string]permission.Verdict{`{}`: permission.Ask}, nil, tool.AskUnavailable, 1},
		{"deny", permission.Auto, writes, hooks.Outcome{}, nil, nil, tool.PermissionDenied, 1},
		{"a reader", permission.Auto, reads, hooks.Outcome{}, nil, nil, "", 0},
		{"another mode", permission.Default, writes, hooks.Outcome{}, nil, nil, tool.AskUnavailable, 0},
		{"another input, judged again", permission.Auto, writes, input(`{"a":1}`), map[string]permission.Verdict{`{}`: permission.Allow}, nil, tool.PermissionDenied, 2},
		{"another input that may", permission.Auto, writes, input(`{"a":1}`), map[string]permission.Verdict{`{"a":1}`: permission.Allow}, nil, "", 2},
		{"a hook asks", permission.Auto, writes, hooks.Outcome{Opinions: []permission.Verdict{permission.Ask}}, map[string]permission.Verdict{`{}`: permission.Allow}, nil, tool.AskUnavailable, 1},
		{"it fails", permission.Auto, writes, hooks.Outcome{}, nil, errLost, tool.Internal, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s")
			s.Start, p.AskFallback = tt.mode, ""
			p.Hooks = &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) { return tt.said, nil }}
			judged := 0
			p.Classify = func(_ context.Context, e hooks.Event) (permission.Verdict, error) {
				judged++
				return tt.judge[string(e.Input)], tt.err
			}
			_, err := p.run(t, s, fixture("work", tt.traits, done), "", Arrival{})
			switch {
			case tt.code == tool.Internal:
				if _, ok := errors.AsType[*InternalError](err); !ok {
					t.Errorf("got %v", err)
				}
			case tt.code != "":
				wantRefusal(t, err, tt.code, "")
			case err != nil:
				t.Error(err)
			}
			if judged != tt.judged {
				t.Errorf("judged %d times, want %d", judged, tt.judged)
			}
		})
	}
}

// A hook's no does not wait for the classifier, and a panic of one is the call's error.
func TestClassifierIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Start = permission.Auto
	p.Hooks = &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
		return hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}, Reason: "no"}, nil
	}}
	p.Classify = func(ctx context.Context, _ hooks.Event) (permission.Verdict, error) {
		<-ctx.Done()
		return permission.Ask, ctx.Err()
	}
	_, err := p.run(t, s, fixture("work", writes, done), "", Arrival{})
	wantRefusal(t, err, tool.HookBlocked, "Blocked by a hook: no\nThe operator can change that hook; tell the user.")
	p.Hooks = nil
	p.Classify = func(context.Context, hooks.Event) (permission.Verdict, error) { panic("broken") }
	_, err = p.run(t, s, fixture("work", writes, done), "", Arrival{})
	if e, ok := errors.AsType[*InternalError](err); !ok || !strings.Contains(e.Err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
}

// Hooks learn of calls that were not permitted, no matter what denied them.
func TestDeniedIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  func(p *corridor, s *session.State)
		want string // reason; "": nothing is told
	}{
		"rule":      {func(_ *corridor, s *session.State) { s.Rules = policy(t, "Edit(a)") }, "rule Edit(a), user config line 12"},
		"nobody":    {func(p *corridor, _ *session.State) { p.AskFallback = "" }, "needs a person's approval"},
		"hook":      {func(p *corridor, _ *session.State) { p.Hooks.(*fakeHooks).before = denying }, ""},
		"plan mode": {func(_ *corridor, s *session.State) { s.Start = permission.Plan }, ""},
		"permitted": {func(*corridor, *session.State) {}, ""},
	} {
		p, s := newCorridor(), newState(t, "s")
		h := &fakeHooks{}
		p.Hooks = h
		tt.set(p, s)
		var ran []editInput
		_, err := p.run(t, s, editor(&ran, nil), `{"path":"a"}`, Arrival{})
		if (err == nil) != (name == "permitted") || (len(h.told) == 1) != (tt.want != "") {
			t.Errorf("%s: %v, told %+v", name, err, h.told)
			continue
		}
		if tt.want != "" && (h.told[0].Name != hooks.PermissionDenied || !strings.Contains(h.told[0].Reason, tt.want) || h.told[0].Tool != "edit_it") {
			t.Errorf("%s: told %+v", name, h.told[0])
		}
	}
}

func denying(context.Context, hooks.Event) (hooks.Outcome, error) {
	return hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}}, nil
}

// Hooks learn of files that a call has changed, and of those that it finds changed.
func TestChangedFileIsTold(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
	h := &fakeHooks{}
	p.Hooks = h
	path := s.Space.Abs("a")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	change := false
	var ran []editInput
	tl := editor(&ran, func(d *tool.Def[editInput]) {
		d.Run = func(context.Context, tool.Env, editInput) (tool.Result, error) {
			if !change {
				return tool.Result{Text: "read"}, nil
			}
			return tool.Result{Text: "edited", Meta: tool.Meta{Files: []tool.FileChange{{Path: path, Op: "change"}}}}, nil
		}
	})
	call := func(want int) {
		t.Helper()
		h.told = nil
		if _, err := p.run(t, s, tl, `{"path":"a"}`, Arrival{}); err != nil {
			t.Fatal(err)
		}
		if len(h.told) != want || want > 0 && (h.told[0].Name != hooks.FileChanged || h.told[0].File != path || h.told[0].Input != nil) {
			t.Errorf("told %+v", h.told)
		}
	}
	call(0) // never read
	see(t, s, path)
	call(0) // as it was read
	if err := os.WriteFile(path, []byte("one and more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call(1) // found changed
	see(t, s, path)
	change = true
	call(1) // changed
}

// What hooks say about a result stands behind it: an objection, then what they add, that of before first.
func TestHooksObject(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	said := hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}, Reason: "\x1b]0;title\a3 tests fail", Context: "see b.go\r\n"}
	p.Hooks = &fakeHooks{
		before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
			return hooks.Outcome{Context: "mind the \x1b[1mgap"}, nil
		},
		after: func(context.Context, hooks.Event) (hooks.Outcome, error) { return said, nil },
	}
	r, err := p.run(t, s, fixture("work", writes, done), "", Arrival{})
	if want := "done\n[a hook objects] 3 tests fail\nmind the gap\nsee b.go\n"; err != nil || r.Text != want {
		t.Errorf("got %q, want %q, %v", r.Text, want, err)
	}
	said = hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}}
	r, err = p.run(t, s, fixture("work", writes, done), "", Arrival{})
	if want := "done\n[a hook objects]\nmind the gap"; err != nil || r.Text != want {
		t.Errorf("got %q, want %q, %v", r.Text, want, err)
	}
	if slices.Contains([]string{byHook}, p.last().By) {
		t.Errorf("an objection decided about the call: %+v", p.last())
	}
}

package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// run sends one call through the pipeline.
func (c *corridor) run(t *testing.T, s *session.State, tl tool.Tool, raw string, a Arrival) (tool.Result, error) {
	t.Helper()
	v := c.Arrive(s)
	defer v.Leave()
	a.Ask = c.Ask
	return v.Call(t.Context(), tl, json.RawMessage(raw), a)
}

// unanswered is run for a call whose answer has not gone out when the next one arrives.
func (c *corridor) unanswered(t *testing.T, s *session.State, tl tool.Tool, raw string, a Arrival) (tool.Result, error) {
	t.Helper()
	v := c.Arrive(s)
	t.Cleanup(v.Leave)
	a.Ask = c.Ask
	return v.Call(t.Context(), tl, json.RawMessage(raw), a)
}

// An editInput is the input of the fixture that has one.
type editInput struct {
	Path string `json:"path" jsonschema:"The file."`
	Text string `json:"text,omitempty" jsonschema:"What to write."`
}

// editor is a tool with a path; ran gets the inputs that it ran with.
func editor(ran *[]editInput, change func(*tool.Def[editInput])) tool.Tool {
	d := tool.Def[editInput]{
		Spec:  tool.Spec{Name: "edit_it", Aliases: []string{"EditIt"}, Title: "Edit", Description: "A fixture.", Hint: "change one file here"},
		Paths: func(in *editInput) []*string { return []*string{&in.Path} },
		Check: func(in editInput) error {
			if in.Text == "no change" {
				return tool.Refuse(tool.NoChange, "Nothing would change.")
			}
			return nil
		},
		Activity: func(in editInput) string { return "Editing " + filepath.Base(in.Path) },
		Run: func(_ context.Context, _ tool.Env, in editInput) (tool.Result, error) {
			*ran = append(*ran, in)
			return tool.Result{Text: "edited"}, nil
		},
	}
	if change != nil {
		change(&d)
	}
	return tool.Define(d)
}

func TestCallRuns(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Client = session.Client{Name: "client", Version: "1.2", MaxRunes: 900}
	var env tool.Env
	files := []tool.FileChange{{Path: "/a", Op: "create", After: "v1"}}
	tl := fixture("work", writes, func(_ context.Context, e tool.Env) (tool.Result, error) {
		env = e
		e.Progress(1, 2, "half")
		return tool.Result{Text: "größer", Meta: tool.Meta{Files: files}}, nil
	})
	v := p.Arrive(s)
	defer v.Leave()
	var note string
	r, err := v.Call(t.Context(), tl, json.RawMessage(` {"b": 1} `), Arrival{Token: true, Via: "Work", Progress: func(_, _ float64, n string) { note = n }})
	if err != nil || r.Text != "größer" || note != "half" {
		t.Fatalf("got %+v, %v", r, err)
	}
	if !regexp.MustCompile(`^[a-z2-7]{16}$`).MatchString(env.CallID) || env.Limit != 900 || env.State.Key != s.Key || env.State.Space != s.Space || !env.AnswerBy.IsZero() {
		t.Errorf("Env = %+v", env)
	}
	if d := r.Meta.Decision; d == nil || d.Verdict != "ask" || d.Asked || r.Meta.Kept != nil {
		t.Errorf("Meta = %+v", r.Meta)
	}
	got := p.last()
	if got.Call != env.CallID || got.Key != s.Key || got.Client != "client" || got.ClientVersion != "1.2" || got.Tool != "work" ||
		got.Via != "Work" || got.Digest != digest([]byte(`{"b":1}`)) || got.Verdict != "ask" || got.Code != "ok" || got.Cancelled ||
		got.Runes != 6 || got.Kept != "" || !slices.Equal(got.Files, files) || got.Mode != "default" || got.Ref != "" || got.Time.IsZero() {
		t.Errorf("Record = %+v", got)
	}
	if strings.Contains(p.log.String(), "level=") {
		t.Errorf("a call that went well is in the log: %s", p.log.String())
	}
}

// TestRefusalLogged: the log names the code, whose call it was, and the cause if there is one.
func TestRefusalLogged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refused error
		want    string
	}{
		{tool.Refuse(tool.NoChange, "Nothing would change."), " code=NO_CHANGE\n"},
		{&tool.Refusal{Code: tool.WriteFailed, Cause: errLost}, " code=WRITE_FAILED cause=\"" + errLost.Error() + "\"\n"},
	} {
		p := newCorridor()
		tl := fixture("work", writes, func(context.Context, tool.Env) (tool.Result, error) { return tool.Result{}, c.refused })
		s := newState(t, "s")
		s.Key.Principal = "ann"
		v := p.Arrive(s)
		if _, err := v.Call(t.Context(), tl, json.RawMessage(`{}`), Arrival{}); err == nil {
			t.Fatal("no refusal")
		}
		v.Leave()
		if got := p.log.String(); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, c.want) || !strings.Contains(got, " principal=ann ") {
			t.Errorf("log = %q, want the end %q", got, c.want)
		}
	}
}

func TestCallBare(t *testing.T) {
	t.Parallel()
	// Without log, record, hooks, shelf and workspace a call still runs.
	p, s := &Pipeline{}, newState(t, "s")
	s.Space, s.Results = nil, nil
	v := p.Arrive(s)
	defer v.Leave()
	r, err := v.Call(t.Context(), fixture("read", reads, done), nil, Arrival{})
	if err != nil || r.Text != "done" {
		t.Errorf("got %+v, %v", r, err)
	}
	_, err = v.Call(t.Context(), tool.Tool{}, nil, Arrival{})
	if _, ok := errors.AsType[*InternalError](err); !ok {
		t.Errorf("the zero Tool: %v", err)
	}
}

func TestCallRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, "a")
	input := `{"path":"` + file + `"}`
	never := func(d *tool.Def[editInput]) {
		d.Available = func(*session.State) string { return "no back-end is configured." }
	}
	own := func(v permission.Verdict) func(*tool.Def[editInput]) {
		return func(d *tool.Def[editInput]) {
			d.Verdict = func(*session.State, editInput) permission.Verdict { return v }
		}
	}
	tests := []struct {
		name   string
		change func(*tool.Def[editInput])
		raw    string
		deny   []string
		mode   permission.Mode
		forced bool // no fallback to the client's dialog
		code   tool.Code
		text   string
	}{
		{"input", nil, `{"path":5,"x":1}`, nil, 0, false, tool.InputInvalid, ""},
		{"check", nil, `{"path":"a","text":"no change"}`, nil, 0, false, tool.NoChange, "Nothing would change."},
		{"not available", never, `{"path":5}`, nil, 0, false, tool.ToolDisabled, "edit_it is not available: no back-end is configured."},
		{"bare rule", nil, input, []string{"edit_it"}, 0, false, tool.ToolDisabled, "edit_it is not available: rule edit_it, user config line 12"},
		{
			"rule", nil, input, []string{"Edit(/" + file + ")"}, permission.Bypass, false, tool.PermissionDenied,
			"Permission denied: edit_it: rule Edit(/" + file + "), user config line 12. The operator can remove that rule.",
		},
		{
			"mode", nil, input, nil, permission.DontAsk, false, tool.PermissionDenied,
			"Permission denied: edit_it: mode dontAsk denies everything that needs approval. The operator can allow it with another permissions.mode.",
		},
		{
			"plan", nil, input, nil, permission.Plan, false, tool.PlanMode,
			"Blocked in plan mode: edit_it. Only read-only tools are allowed. Call enter_plan_mode to get a plan file, and exit_plan_mode when the plan is ready.",
		},
		{
			"nobody to ask", nil, input, nil, 0, true, tool.AskUnavailable,
			"Permission denied: edit_it needs a person's approval and this client cannot ask one. It is asked because: mode default asks before this. The operator can change permissions.mode or permissions.ask_fallback.",
		},
		{
			"hard ask", own(permission.Ask), input, nil, 0, false, tool.AskUnavailable,
			"Permission denied: edit_it needs a person's approval and this client cannot ask one. It is asked because: a person must approve it. The user can do it.",
		},
		{"tool denies", own(permission.Deny), input, nil, permission.Bypass, false, tool.PermissionDenied, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s", root)
			s.Start = tt.mode
			s.Rules = policy(t, tt.deny...)
			if tt.forced {
				p.AskFallback = ""
			}
			var ran []editInput
			_, err := p.run(t, s, editor(&ran, tt.change), tt.raw, Arrival{})
			wantRefusal(t, err, tt.code, tt.text)
			if got := p.last(); len(ran) > 0 || got.Code != string(tt.code) || got.Cancelled {
				t.Errorf("ran with %v, record %+v", ran, got)
			}
			if !p.gates.idle() {
				t.Error("a gate is left")
			}
		})
	}
}

func TestPlanMode(t *testing.T) {
	t.Parallel()
	root := leaktest.Dir(t)
	plan := filepath.Join(root, "plan.md")
	if err := errors.Join(os.WriteFile(plan, nil, 0o600), os.Symlink("plan.md", filepath.Join(root, "link.md"))); err != nil {
		t.Fatal(err)
	}
	p, s := newCorridor(), newState(t, "s", root)
	s.Start = permission.Bypass
	change := func(edit func(session.Plan) session.Plan) {
		t.Helper()
		if _, err := s.Plan.Change(t.Context(), func(old session.Plan) (session.Plan, error) { return edit(old), nil }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Mode.Change(t.Context(), func(permission.Mode) (permission.Mode, error) { return permission.Plan, nil }); err != nil {
		t.Fatal(err)
	}
	change(func(session.Plan) session.Plan { return session.Plan{Path: plan} })

	var ran []editInput
	edit := editor(&ran, nil)
	for _, path := range []string{plan, "./plan.md", "link.md"} {
		if _, err := p.run(t, s, edit, `{"path":"`+path+`"}`, Arrival{}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := p.run(t, s, edit, `{"path":"other.md"}`, Arrival{})
	wantRefusal(t, err, tool.PlanMode, "Blocked in plan mode: edit_it. Only read-only tools and the plan file "+plan+" are allowed. Call exit_plan_mode when the plan is ready.")
	_, err = p.run(t, s, fixture("work", writes, done), "", Arrival{})
	wantRefusal(t, err, tool.PlanMode, "")
	_, err = p.run(t, s, editor(&ran, func(d *tool.Def[editInput]) {
		d.Targets = func(*session.State, editInput) []permission.Target {
			return []permission.Target{{Kind: permission.Command, Value: "rm"}}
		}
	}), `{"path":"plan.md"}`, Arrival{})
	wantRefusal(t, err, tool.PlanMode, "") // the plan file, and more
	for _, traits := range []tool.Traits{reads, free, {Private: true}} {
		if _, err := p.run(t, s, fixture("fine", traits, done), "", Arrival{}); err != nil {
			t.Errorf("%+v: %v", traits, err)
		}
	}
	if len(ran) != 3 {
		t.Errorf("ran with %v", ran)
	}
}

// A lostMemory is a Store that does not answer.
type lostMemory struct{}

var errLost = errors.New("the store does not answer")

func (lostMemory) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, errLost }
func (lostMemory) GetAll(context.Context, ...string) ([][]byte, []uint64, error) {
	return nil, nil, errLost
}
func (lostMemory) Swap(context.Context, string, []byte, uint64) (bool, error) {
	return false, errLost
}

func TestStoreLost(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Start = permission.Bypass
	s.Mode = session.NewCell[permission.Mode](lostMemory{}, "mode")
	for _, traits := range []tool.Traits{writes, {Private: true}} {
		_, err := p.run(t, s, fixture("work", traits, done), "", Arrival{})
		r := wantRefusal(t, err, tool.StateUnavailable, "The state store does not answer, so changes are refused. Reading works. Try again.")
		if !errors.Is(r, errLost) {
			t.Error("the cause is not kept for the log")
		}
	}
	if _, err := p.run(t, s, fixture("read", reads, done), "", Arrival{}); err != nil {
		t.Errorf("reading: %v", err)
	}
	if got := p.last().Mode; got != "default" {
		t.Errorf("readers run in mode %s", got)
	}
	s.Start = permission.DontAsk
	if _, err := p.run(t, s, fixture("read", reads, done), "", Arrival{}); err != nil || p.last().Mode != "dontAsk" {
		t.Errorf("readers run in mode %s, %v", p.last().Mode, err)
	}
	// In plan mode the second cell is needed, too.
	s = newState(t, "s")
	s.Plan = session.NewCell[session.Plan](lostMemory{}, "plan")
	s.Start = permission.Plan
	_, err := p.run(t, s, fixture("work", writes, done), "", Arrival{})
	wantRefusal(t, err, tool.StateUnavailable, "")
}

func TestHooksBefore(t *testing.T) {
	t.Parallel()
	var ran []editInput
	edit := editor(&ran, nil)
	opinion := func(v permission.Verdict) hooks.Outcome {
		return hooks.Outcome{Opinions: []permission.Verdict{v}, Reason: "because."}
	}
	tests := []struct {
		name string
		said hooks.Outcome
		err  error
		code tool.Code // "": it runs
		text string
		with string // that it ran with
	}{
		{"nothing", hooks.Outcome{}, nil, "", "", "old"},
		{"allow", opinion(permission.Allow), nil, "", "", "old"},
		{"deny", opinion(permission.Deny), nil, tool.HookBlocked, "Blocked by a hook: because.\nThe operator can change that hook; tell the user.", ""},
		{"ask", opinion(permission.Ask), nil, tool.AskUnavailable, "", ""},
		{"deny beats allow", hooks.Outcome{Opinions: []permission.Verdict{permission.Allow, permission.Deny}}, nil, tool.HookBlocked, "", ""},
		// Nothing stood behind the colon, so models tried the same again.
		{"no reason", hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}, Reason: " \n"}, nil, tool.HookBlocked, "Blocked by a hook: it gave no reason\nThe operator can change that hook; tell the user.", ""},
		{"long reason", hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}, Reason: strings.Repeat("ö", 20_000)}, nil, tool.HookBlocked, "Blocked by a hook: " + strings.Repeat("ö", hooks.MaxText) + "\nThe operator can change that hook; tell the user.", ""},
		{"input", hooks.Outcome{Input: json.RawMessage(`{"path":"b","text":"new"}`)}, nil, "", "", "new"},
		{"bad input", hooks.Outcome{Input: json.RawMessage(`{"text":"new"}`)}, nil, tool.InputInvalid, "", ""},
		{"checked input", hooks.Outcome{Input: json.RawMessage(`{"path":"b","text":"no change"}`)}, nil, tool.NoChange, "", ""},
		{"denied input", hooks.Outcome{Input: json.RawMessage(`{"path":"secret"}`)}, nil, tool.PermissionDenied, "", ""},
		{"engine fails", hooks.Outcome{}, errLost, tool.Internal, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, s := newCorridor(), newState(t, "s")
			s.Rules = policy(t, "Edit(secret)")
			ran = nil
			h := &fakeHooks{before: func(_ context.Context, e hooks.Event) (hooks.Outcome, error) {
				if e.Tool != "edit_it" || !slices.Equal(e.Aliases, []string{"EditIt"}) || e.Cwd != s.Space.Cwd() || !strings.Contains(string(e.Input), s.Space.Abs("a")) {
					t.Errorf("Event = %+v, input %s", e, e.Input)
				}
				return tt.said, tt.err
			}}
			p.Hooks = h
			_, err := p.run(t, s, edit, `{"path":"a","text":"old"}`, Arrival{})
			switch {
			case tt.code == tool.Internal:
				if e, ok := errors.AsType[*InternalError](err); !ok || !errors.Is(e, errLost) || p.last().Ref != e.Ref || !strings.Contains(p.log.String(), e.Ref) {
					t.Errorf("got %v", err)
				}
			case tt.code != "":
				wantRefusal(t, err, tt.code, tt.text)
			case err != nil || len(ran) != 1 || ran[0].Text != tt.with:
				t.Errorf("ran with %v, %v", ran, err)
			}
			if h.ran.Load() != 1 || tt.code != "" && len(ran) > 0 {
				t.Errorf("hooks ran %d times, the tool with %v", h.ran.Load(), ran)
			}
		})
	}
}

// Hooks of another tool run for a tool that does the same, which they are told that it is.
func TestHooksOfAnotherTool(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Rules = policy(t)
	var ran []editInput
	tl := editor(&ran, func(d *tool.Def[editInput]) { d.Spec.Stands = []string{"Edit", "edit_file"} })
	h := &fakeHooks{before: func(_ context.Context, e hooks.Event) (hooks.Outcome, error) {
		if e.Tool != "edit_it" || !slices.Equal(e.Aliases, []string{"Edit", "edit_file", "EditIt"}) {
			t.Errorf("Event = %+v", e)
		}
		return hooks.Outcome{}, nil
	}}
	p.Hooks = h
	if _, _ = p.run(t, s, tl, `{"path":"a"}`, Arrival{}); h.ran.Load() != 1 {
		t.Errorf("hooks ran %d times", h.ran.Load())
	}
}

// A hook cannot lead a call out of plan mode by another input.
func TestHookInputInPlanMode(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Start = permission.Plan
	p.Hooks = &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
		return hooks.Outcome{Input: json.RawMessage(`{"path":"b","text":"write"}`)}, nil
	}}
	var ran []editInput
	tl := editor(&ran, func(d *tool.Def[editInput]) {
		d.Traits = func(_ *session.State, in editInput) tool.Traits { return tool.Traits{ReadOnly: in.Text != "write"} }
	})
	_, err := p.run(t, s, tl, `{"path":"a"}`, Arrival{})
	wantRefusal(t, err, tool.PlanMode, "")
	if len(ran) > 0 {
		t.Errorf("ran with %v", ran)
	}
}

func TestHooksAfter(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	text := func(s string) *string { return &s }
	tests := []struct {
		name   string
		said   hooks.Outcome
		err    error
		failed bool
		want   string
	}{
		{"nothing", hooks.Outcome{}, nil, false, "done"},
		{"context", hooks.Outcome{Context: "more"}, nil, false, "done\nmore"},
		{"output", hooks.Outcome{Output: text("other")}, nil, false, "other"},
		{"both", hooks.Outcome{Output: text("other\n"), Context: "more"}, nil, false, "other\nmore"},
		{"hidden", hooks.Outcome{Output: text("")}, nil, false, ""},
		{"long", hooks.Outcome{Output: text(strings.Repeat("ö", 20_000))}, nil, false, strings.Repeat("ö", hooks.MaxText)},
		{"fails", hooks.Outcome{Context: "more"}, errLost, false, "done"},
		{"lines like ours", hooks.Outcome{Context: "a\n\x1b[1m[a hook objects] b", Output: text("done\n<system-reminder>")}, nil, false,
			"done\n\\<system-reminder>\na\n\\[a hook objects] b"},
		{"after a refusal", hooks.Outcome{Context: "more"}, nil, true, "broken\nmore"},
	}
	for _, tt := range tests {
		var told hooks.Event
		p.Hooks = &fakeHooks{after: func(ctx context.Context, e hooks.Event) (hooks.Outcome, error) {
			if p.gates.idle() {
				t.Errorf("%s: the gate is open already", tt.name)
			}
			told = e
			return tt.said, tt.err
		}}
		r, err := p.run(t, s, fixture("work", writes, func(context.Context, tool.Env) (tool.Result, error) {
			if tt.failed {
				return tool.Result{}, tool.Refuse(tool.WriteFailed, "broken")
			}
			return tool.Result{Text: "done"}, nil
		}), "", Arrival{})
		got := r.Text
		if tt.failed {
			got = wantRefusal(t, err, tool.WriteFailed, "").Text
		}
		if got != tt.want || told.Failed != tt.failed || !strings.HasPrefix(tt.want, told.Response) && told.Response != "done" {
			t.Errorf("%s: got %.40q, the hook saw %+v", tt.name, got, told)
		}
	}
}

// TestReplacementKeepsNotes: a hook that changes a part of a text leaves the server's lines in it as they are, and what
// was disowned already.
func TestReplacementKeepsNotes(t *testing.T) {
	t.Parallel()
	const was = "secret\n\\[exit code 1: x]\n[exit code 1: no match]"
	got := replacement("masked\n\\[exit code 1: x]\n[exit code 1: no match]\n[exit code 2]", was)
	if want := "masked\n\\[exit code 1: x]\n[exit code 1: no match]\n\\[exit code 2]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// asker answers questions, and remembers what was asked.
type asker struct {
	asked []Asking
	say   func(Asking) (tool.Answer, error)
}

func (a *asker) ask(_ context.Context, q Asking) (tool.Answer, error) {
	a.asked = append(a.asked, q)
	return a.say(q)
}

func accept(decision, reason string) tool.Answer {
	a := tool.Answer{Outcome: tool.Accepted, Values: map[string][]string{}}
	if decision != "" {
		a.Values[decisionField] = []string{decision}
	}
	if reason != "" {
		a.Values[reasonField] = []string{reason}
	}
	return a
}

func TestAskPermission(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer tool.Answer
		err    error
		code   tool.Code // "": it runs
		text   string
	}{
		{"allowed", accept(allowOnce, ""), nil, "", ""},
		{"denied", accept(denyIt, ""), nil, tool.UserDeclined, "The user declined this action.\nIt was asked because: mode default asks before this."},
		{"denied with a reason", accept(denyIt, "too soon"), nil, tool.UserDeclined, "The user declined this action. They said: too soon\nIt was asked because: mode default asks before this."},
		{"something else", accept("sure", ""), nil, tool.UserDeclined, ""},
		{"nothing chosen", accept("", ""), nil, tool.UserDeclined, ""},
		{"declined", tool.Answer{Outcome: tool.Declined, Values: accept(allowOnce, "").Values}, nil, tool.UserDeclined, ""},
		{"cancelled", tool.Answer{Outcome: tool.Cancelled}, nil, tool.UserDeclined, ""},
		{"not asked", tool.Answer{}, nil, tool.AskUnavailable, ""},
		{"broken", tool.Answer{}, errLost, tool.Internal, ""},
	}
	for _, tt := range tests {
		p, s := newCorridor(), newState(t, "s")
		s.Client.CanAsk = true
		p.AskFallback = ""
		a := &asker{say: func(Asking) (tool.Answer, error) { return tt.answer, tt.err }}
		p.Ask = a.ask
		var ran []editInput
		r, err := p.run(t, s, editor(&ran, nil), `{"path":"a"}`, Arrival{})
		switch {
		case tt.code == tool.Internal:
			if e, ok := errors.AsType[*InternalError](err); !ok || e.Panic {
				t.Errorf("%s: %v", tt.name, err)
			}
		case tt.code != "":
			wantRefusal(t, err, tt.code, tt.text)
		case err != nil || len(ran) != 1 || r.Meta.Decision.Verdict != "allow" || !r.Meta.Decision.Asked || !p.last().Asked:
			t.Errorf("%s: ran with %v, %+v, %v", tt.name, ran, r.Meta.Decision, err)
		}
		q := a.asked[0].Question
		if len(a.asked) != 1 || q.Title != "Allow edit_it: "+s.Space.Abs("a") || len(q.Fields) != 2 {
			t.Errorf("%s: asked %+v", tt.name, a.asked)
		}
	}
	// A client that cannot ask is not asked, and a default ask is left to the client's dialog where that is set.
	p, s := newCorridor(), newState(t, "s")
	p.Ask = func(context.Context, Asking) (tool.Answer, error) {
		t.Error("somebody was asked")
		return tool.Answer{}, nil
	}
	if _, err := p.run(t, s, fixture("work", writes, done), "", Arrival{}); err != nil {
		t.Error(err)
	}
	p.AskFallback = ""
	_, err := p.run(t, s, fixture("work", writes, done), "", Arrival{})
	wantRefusal(t, err, tool.AskUnavailable, "")
}

// The question goes out as an answer, twice; the call comes back each time. No hook runs twice, and no person is
// asked the same thing again.
func TestAskPending(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Client.CanAsk = true
	p.AskFallback = ""
	h := &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
		return hooks.Outcome{Input: json.RawMessage(`{"path":"b"}`)}, nil
	}}
	p.Hooks = h
	a := &asker{say: func(Asking) (tool.Answer, error) { return tool.Answer{}, tool.ErrPending }}
	p.Ask = a.ask
	var ran []editInput
	var answer tool.Answer
	tl := editor(&ran, func(d *tool.Def[editInput]) {
		d.Question = func(context.Context, *session.State, editInput) (*tool.Question, error) {
			return &tool.Question{Title: "Which?"}, nil
		}
		run := d.Run
		d.Run = func(ctx context.Context, e tool.Env, in editInput) (tool.Result, error) {
			answer = e.Answer
			return run(ctx, e, in)
		}
	})
	reply := func(i int, a tool.Answer, asked []Asking) *Reply {
		return &Reply{Digest: asked[i].Digest, Answer: a, Before: asked[i].Before}
	}
	v := p.Arrive(s)
	defer v.Leave()
	raw := json.RawMessage(`{"path":"a"}`)
	if _, err := v.Call(t.Context(), tl, raw, Arrival{Ask: p.Ask}); !errors.Is(err, tool.ErrPending) || p.last().Code != "PENDING" {
		t.Fatalf("first: %v", err)
	}
	if _, err := v.Call(t.Context(), tl, raw, Arrival{Ask: p.Ask, Reply: reply(0, accept(allowOnce, ""), a.asked)}); !errors.Is(err, tool.ErrPending) {
		t.Fatalf("second: %v", err)
	}
	if a.asked[0].Question.Title != "Allow edit_it: "+s.Space.Abs("b") || a.asked[1].Question.Title != "Which?" {
		t.Fatalf("asked %+v", a.asked)
	}
	// A reply to another input does not count.
	if _, err := v.Call(t.Context(), tl, json.RawMessage(`{"path":"c"}`), Arrival{Ask: p.Ask, Reply: reply(1, accept("blue", ""), a.asked)}); !errors.Is(err, tool.ErrPending) {
		t.Fatalf("another input: %v", err)
	}
	if len(ran) > 0 || h.ran.Load() != 2 || a.asked[2].Question.Title != "Allow edit_it: "+s.Space.Abs("b") {
		t.Fatalf("ran with %v, hooks %d times, asked %+v", ran, h.ran.Load(), a.asked[2])
	}
	if _, err := v.Call(t.Context(), tl, raw, Arrival{Ask: p.Ask, Reply: reply(1, accept("blue", ""), a.asked)}); err != nil {
		t.Fatalf("third: %v", err)
	}
	if len(ran) != 1 || filepath.Base(ran[0].Path) != "b" || answer.Values[decisionField][0] != "blue" || h.ran.Load() != 2 || len(a.asked) != 3 {
		t.Errorf("ran with %v and %v, hooks %d times", ran, answer, h.ran.Load())
	}
	if !p.gates.idle() {
		t.Error("a gate is left")
	}
}

func TestToolQuestion(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	var ran []editInput
	got := tool.Answer{Outcome: tool.Declined}
	with := func(q *tool.Question, err error) tool.Tool {
		return editor(&ran, func(d *tool.Def[editInput]) {
			d.Question = func(context.Context, *session.State, editInput) (*tool.Question, error) { return q, err }
			d.Run = func(_ context.Context, e tool.Env, _ editInput) (tool.Result, error) {
				got = e.Answer
				return tool.Result{}, nil
			}
		})
	}
	// There is no person to ask: the tool decides what that means.
	if _, err := p.run(t, s, with(&tool.Question{Title: "?"}, nil), `{"path":"a"}`, Arrival{}); err != nil || got.Outcome != tool.Unanswered {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := p.run(t, s, with(nil, nil), `{"path":"a"}`, Arrival{}); err != nil {
		t.Error(err)
	}
	_, err := p.run(t, s, with(nil, tool.Refuse(tool.FileExists, "no")), `{"path":"a"}`, Arrival{})
	wantRefusal(t, err, tool.FileExists, "no")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := newCorridor(), newState(t, "s")
		s.Client.CanAsk = true
		hang := func(ctx context.Context) { <-ctx.Done() }
		ranWith := 0
		count := func(ctx context.Context, _ tool.Env) (tool.Result, error) { ranWith++; return done(ctx, tool.Env{}) }
		tests := []struct {
			name string
			set  func()
			tool tool.Tool
			want tool.Code // "": the result as usual
			text string
		}{
			{"hooks", func() {
				p.Hooks = &fakeHooks{before: func(ctx context.Context, _ hooks.Event) (hooks.Outcome, error) {
					hang(ctx)
					return hooks.Outcome{}, ctx.Err()
				}}
			}, fixture("x", writes, count), tool.Interrupted, "Tool execution cancelled by user."},
			{"question", func() {
				p.AskFallback = ""
				p.Ask = func(ctx context.Context, _ Asking) (tool.Answer, error) {
					hang(ctx)
					return tool.Answer{}, ctx.Err()
				}
			}, fixture("x", writes, count), tool.Interrupted, "Tool execution cancelled by user."},
			{"running", nil, fixture("x", writes, func(ctx context.Context, _ tool.Env) (tool.Result, error) {
				hang(ctx)
				return tool.Result{}, ctx.Err()
			}), tool.Interrupted, "Tool execution cancelled by user."},
			{"running, with output", nil, fixture("x", writes, func(ctx context.Context, _ tool.Env) (tool.Result, error) {
				hang(ctx)
				return tool.Result{}, &tool.Refusal{Code: tool.Interrupted, Text: "Tool execution cancelled by user.\npart", Cause: ctx.Err()}
			}), tool.Interrupted, "Tool execution cancelled by user.\npart"},
			{"change has begun", nil, fixture("x", writes, func(ctx context.Context, _ tool.Env) (tool.Result, error) {
				hang(ctx)
				return tool.Result{Text: "changed", Meta: tool.Meta{Files: []tool.FileChange{{Path: "/a", Op: "change"}}}}, nil
			}), "", "changed"},
			{"after", func() {
				p.Hooks = &fakeHooks{after: func(ctx context.Context, _ hooks.Event) (hooks.Outcome, error) {
					time.Sleep(time.Minute)
					return hooks.Outcome{Context: "hooked"}, ctx.Err()
				}}
			}, fixture("x", writes, count), "", "done\nhooked"},
		}
		for _, tt := range tests {
			p.Hooks, p.Ask, p.AskFallback = nil, nil, AskClient
			if tt.set != nil {
				tt.set()
			}
			g := send(t, p, s, tt.tool, Arrival{})
			synctest.Wait()
			g.cancel()
			<-g.done
			if tt.want != "" {
				wantRefusal(t, g.err, tt.want, tt.text)
			} else if g.err != nil || g.result.Text != tt.text {
				t.Errorf("%s: %+v, %v", tt.name, g.result, g.err)
			}
			r := p.last()
			if !r.Cancelled || tt.name == "change has begun" && len(r.Files) != 1 {
				t.Errorf("%s: record %+v", tt.name, r)
			}
		}
		if ranWith != 1 {
			t.Errorf("ran %d times", ranWith)
		}
		// Cancelled before it began.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, traits := range []tool.Traits{reads, writes, free} {
			v := p.Arrive(s)
			_, err := v.Call(ctx, fixture("x", traits, count), nil, Arrival{})
			wantRefusal(t, err, tool.Interrupted, "")
			v.Leave()
		}
		// An error that has nothing to do with the cancel is not hidden by it.
		g := send(t, p, s, fixture("x", writes, func(ctx context.Context, _ tool.Env) (tool.Result, error) {
			hang(ctx)
			return tool.Result{}, fs.ErrPermission
		}), Arrival{})
		synctest.Wait()
		g.cancel()
		<-g.done
		if e, ok := errors.AsType[*InternalError](g.err); !ok || !errors.Is(e, fs.ErrPermission) {
			t.Errorf("got %v", g.err)
		}
		if ranWith != 1 || !p.gates.idle() {
			t.Errorf("ran %d times, or a gate is left", ranWith)
		}
	})
}

func TestBound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("one line of text\n", 1000)
	say := func(spec tool.Spec, refused bool) tool.Tool {
		spec.Title, spec.Description = spec.Name, "A fixture."
		spec.Traits = reads
		return made(spec, func(context.Context, tool.Env) (tool.Result, error) {
			if refused {
				return tool.Result{}, tool.Refuse(tool.FileChanged, "%s", long)
			}
			return tool.Result{Text: long}, nil
		})
	}
	tests := []struct {
		name   string
		spec   tool.Spec
		client session.Client
		failed bool
		limit  int // runes that may be shown; 0: all
	}{
		{"fits", tool.Spec{Name: "x"}, session.Client{}, false, 0},
		{"tool", tool.Spec{Name: "x", MaxRunes: 2000}, session.Client{MaxRunes: 5000}, false, 2000},
		{"client", tool.Spec{Name: "x", MaxRunes: 5000}, session.Client{MaxRunes: 2000}, false, 2000},
		{"lines", tool.Spec{Name: "x"}, session.Client{MaxLines: 20}, false, 20 * 17},
		{"bytes", tool.Spec{Name: "x"}, session.Client{MaxBytes: 3000}, false, 3000},
		{"refusal", tool.Spec{Name: "x", MaxRunes: 2000}, session.Client{}, true, 2000},
		{"pages by itself", tool.Spec{Name: "x", MaxRunes: tool.Unbounded}, session.Client{MaxRunes: 2000}, false, 0},
	}
	for _, tt := range tests {
		p, s := newCorridor(), newState(t, "s")
		s.Client = tt.client
		r, err := p.run(t, s, say(tt.spec, tt.failed), "", Arrival{})
		text, meta := r.Text, r.Meta
		if tt.failed {
			refused := wantRefusal(t, err, tool.FileChanged, "")
			text, meta = refused.Error(), refused.Meta
		}
		if tt.limit == 0 {
			if text != long || meta.Kept != nil {
				t.Errorf("%s: cut to %d, %+v", tt.name, len(text), meta.Kept)
			}
			continue
		}
		k := meta.Kept
		if k == nil || len(text)-len(k.Path) > tt.limit+200 || k.Bytes != int64(len(long)) || k.Lines != 1000 || p.last().Kept != k.Path {
			t.Errorf("%s: %d characters, %+v", tt.name, len(text), k)
			continue
		}
		whole, err := os.ReadFile(k.Path)
		if err != nil || string(whole) != long || !strings.HasSuffix(k.Path, p.last().Call+"-x.txt") || !strings.Contains(strings.SplitN(text, "\n", 2)[0], k.Path) {
			t.Errorf("%s: kept %d bytes at %s, %v", tt.name, len(whole), k.Path, err)
		}
	}
}

// A tool may return one refusal again and again; what the pipeline adds must not gather on it.
func TestRefusalIsCopied(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) { return hooks.Outcome{Context: "more"}, nil }}
	same := &tool.Refusal{Code: tool.FileNotFound, Text: "gone"}
	tl := fixture("x", reads, func(context.Context, tool.Env) (tool.Result, error) { return tool.Result{}, same })
	for range 2 {
		_, err := p.run(t, s, tl, "", Arrival{})
		r := wantRefusal(t, err, tool.FileNotFound, "gone\nmore")
		if r.Meta.Decision == nil {
			t.Error("the refusal does not say what was decided")
		}
	}
	if same.Text != "gone" || same.Meta.Decision != nil {
		t.Errorf("the tool's refusal is now %+v", same)
	}
}

func TestRecordNeverBreaksACall(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	p.Record = func(Record) { panic("listener") }
	r, err := p.run(t, s, fixture("x", reads, done), "", Arrival{})
	if err != nil || r.Text != "done" || !strings.Contains(p.log.String(), "listener") {
		t.Errorf("got %+v, %v", r, err)
	}
	// What failed in its work is a result, and the record has its code.
	p = newCorridor()
	_, err = p.run(t, s, fixture("x", reads, func(context.Context, tool.Env) (tool.Result, error) {
		return tool.Result{Text: "exit 1", Failed: tool.CommandFailed}, nil
	}), "", Arrival{})
	if err != nil || p.last().Code != "COMMAND_FAILED" {
		t.Errorf("%v, record %+v", err, p.last())
	}
}

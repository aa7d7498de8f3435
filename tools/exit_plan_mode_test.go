package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The fields of the question about a plan, and the choices that it gives.
const (
	fieldDecision = "decision"
	fieldFeedback = "feedback"
	saysAccept    = "approve, accept edits"
	saysAsk       = "approve, ask for edits"
	saysKeep      = "keep planning"
)

// enter enters plan mode and returns the plan file.
func (r *rig) enter() string {
	r.t.Helper()
	m := regexp.MustCompile(`(?m) Plan file: (/.+\.md)$`).FindStringSubmatch(r.okRaw("enter_plan_mode", `{}`))
	if m == nil {
		r.t.Fatal("no plan file is named")
	}
	return m[1]
}

func (r *rig) okRaw(name, args string) string {
	r.t.Helper()
	res, text := r.do(name, args)
	if res.Failed != "" {
		r.t.Fatalf("%s %s failed:\n%s", name, args, text)
	}
	return text
}

// mode is what is in force now.
func (r *rig) mode() permission.Mode {
	r.t.Helper()
	mode, _, err := r.InForce(r.t.Context(), time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return mode
}

// present asks for the approval of plan, has the person do something meanwhile, and brings the answer.
func (r *rig) present(plan string, meanwhile func(), outcome tool.Outcome, values map[string][]string) string {
	r.t.Helper()
	raw, err := json.Marshal(map[string]string{"plan": plan})
	if err != nil {
		r.t.Fatal(err)
	}
	call, err := exitPlanMode.Bind(r.State, raw)
	if err != nil {
		r.t.Fatal(err)
	}
	q, err := call.Question(r.t.Context(), r.State)
	if err != nil || q == nil {
		r.t.Fatalf("question %v, %v", q, err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	if _, err := call.Question(r.t.Context(), r.State); err != nil { // the pipeline asks again when the answer comes
		_, text := r.refused(tool.Result{}, err)
		return text
	}
	env := r.Env(call)
	env.Answer = tool.Answer{Outcome: outcome, Values: values, Seen: q.Seen}
	_, text := r.refused(call.Run(r.t.Context(), env))
	return text
}

func decision(choice string, feedback ...string) map[string][]string {
	v := map[string][]string{fieldDecision: {choice}}
	if feedback != nil {
		v[fieldFeedback] = feedback
	}
	return v
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a person decides about a plan, and what comes of it.
func TestExitPlanModeAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		start, highest permission.Mode
		outcome        tool.Outcome
		values         map[string][]string
		mode           permission.Mode
		says           string
	}{
		{"accept edits", permission.Default, permission.Bypass, tool.Accepted, decision(saysAccept), permission.AcceptEdits, "User has approved your plan. It is saved at P.\nThe mode is acceptEdits now.\n\n1. Think."},
		{"accept edits over the limit", permission.Default, permission.Default, tool.Accepted, decision(saysAccept), permission.Default, "User has approved your plan. It is saved at P.\nThe mode is default now.\n\n1. Think."},
		{"ask for edits", permission.Default, permission.Bypass, tool.Accepted, decision(saysAsk), permission.Default, "User has approved"},
		{"the mode before", permission.DontAsk, permission.Bypass, tool.Accepted, decision(saysAsk), permission.DontAsk, "User has approved"},
		{"from bypass to less", permission.Bypass, permission.Bypass, tool.Accepted, decision(saysAccept), permission.AcceptEdits, "User has approved"},
		{"with feedback", permission.Default, permission.Bypass, tool.Accepted, decision(saysAsk, "fine"), permission.Default, "User has approved your plan. It is saved at P. They said: fine\n"},
		{"keep planning", permission.Default, permission.Bypass, tool.Accepted, decision(saysKeep), permission.Plan, "The user wants to keep planning. Plan mode stays on. The plan is saved at P."},
		{"keep planning with feedback", permission.Default, permission.Bypass, tool.Accepted, decision(saysKeep, "test more"), permission.Plan, "The user wants to keep planning. They said: test more\n"},
		{"something else", permission.Default, permission.Bypass, tool.Accepted, decision("approve"), permission.Plan, "The user wants to keep planning."},
		{"nothing", permission.Default, permission.Bypass, tool.Accepted, nil, permission.Plan, "The user wants to keep planning."},
		{"both", permission.Default, permission.Bypass, tool.Accepted, map[string][]string{fieldDecision: {saysAccept, saysAsk}}, permission.Plan, "The user wants to keep planning."},
		{"declined", permission.Default, permission.Bypass, tool.Declined, decision(saysAccept), permission.Plan, "The user wants to keep planning."},
		{"cancelled", permission.Default, permission.Bypass, tool.Cancelled, decision(saysAccept), permission.Plan, "The user wants to keep planning."},
		{"started in plan mode", permission.Plan, permission.Bypass, tool.Accepted, decision(saysAsk), permission.Default, "User has approved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Client.CanAsk, r.Start, r.Highest = true, c.start, c.highest
			path := r.enter()
			if r.mode() != permission.Plan {
				t.Fatalf("the mode is %s", r.mode())
			}
			text := strings.ReplaceAll(r.present("1. Think.", nil, c.outcome, c.values), path, "P")
			if !strings.HasPrefix(text, c.says) {
				t.Errorf("got:\n%s\nwant:\n%s", text, c.says)
			}
			if r.mode() != c.mode {
				t.Errorf("the mode is %s, want %s", r.mode(), c.mode)
			}
			same(t, content(t, path), "1. Think.")
			if again := r.enter(); again != path || r.mode() != permission.Plan {
				t.Errorf("entering again gives %s in mode %s", again, r.mode())
			}
		})
	}
}

// What changes while a person thinks is seen when the answer comes.
func TestExitPlanModeMeanwhile(t *testing.T) {
	t.Parallel()
	newSession := func(t *testing.T) (*rig, string) {
		r := newRig(t)
		r.Client.CanAsk = true
		path := r.enter()
		write(t, path, "1. Think.\n")
		return r, path
	}
	t.Run("the person edits the plan", func(t *testing.T) {
		t.Parallel()
		for _, plan := range []string{"", "1. Think.\n", "another text"} {
			r, path := newSession(t)
			text := r.present(plan, func() { write(t, path, "1. Think twice.\n") }, tool.Accepted, decision(saysAsk))
			if !strings.HasPrefix(text, "User has approved your plan. It is saved at "+path+" (edited by the user).\n") || !strings.HasSuffix(text, "\n\n1. Think twice.\n") {
				t.Errorf("plan %q: %s", plan, text)
			}
			same(t, content(t, path), "1. Think twice.\n")
		}
	})
	t.Run("the person empties the plan", func(t *testing.T) {
		t.Parallel()
		r, path := newSession(t)
		text := r.present("1. Think.\n", func() { write(t, path, " ") }, tool.Accepted, decision(saysAccept))
		if !strings.HasPrefix(text, "The user wants to keep planning.") || r.mode() != permission.Plan {
			t.Errorf("mode %s: %s", r.mode(), text)
		}
	})
	t.Run("somebody leaves plan mode", func(t *testing.T) {
		t.Parallel()
		r, _ := newSession(t)
		text := r.present("x", func() {
			if _, err := planning.Leave(t.Context(), r.State, permission.Default); err != nil {
				t.Fatal(err)
			}
		}, tool.Accepted, decision(saysAccept))
		if !strings.HasPrefix(text, "NOT_IN_PLAN_MODE: ") || r.mode() != permission.Default {
			t.Errorf("mode %s: %s", r.mode(), text)
		}
	})
	t.Run("the operator lowers the limit", func(t *testing.T) {
		t.Parallel()
		r, path := newSession(t)
		text := r.present("x", func() { r.Highest = permission.Plan }, tool.Accepted, decision(saysAccept))
		same(t, text, "Plan mode stays on: the settings, or the user on the page, allow no other mode here. The plan is saved at "+path+".")
		if r.mode() != permission.Plan {
			t.Errorf("mode %s", r.mode())
		}
	})
}

// Without a person the operator's setting decides.
func TestExitPlanModeFallback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fallback, args string
		mode           permission.Mode
		says           string
	}{
		{"client", `{"plan":"1. Think."}`, permission.AcceptEdits, "Your client's dialog let this call through, which approves the plan; codehand itself asked nobody. It is saved at P.\nThe mode is acceptEdits now.\n\n1. Think."},
		{"client", `{}`, permission.Plan, `PLAN_TEXT_NEEDED: Pass the plan's text in "plan" so that it can be approved.`},
		{"auto", `{}`, permission.AcceptEdits, "The plan counts as approved: the operator has set plan.approval_fallback = \"auto\". Nobody was asked. It is saved at P.\nThe mode is acceptEdits now.\n\n0. Begin."},
		{"console", `{"plan":"1. Think."}`, permission.Plan, "Plan mode stays on: no one can approve the plan."},
		{"", `{"plan":"1. Think."}`, permission.Plan, "Plan mode stays on: no one can approve the plan."},
	} {
		t.Run(c.fallback+c.args, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.PlanFallback, r.Start = c.fallback, permission.AcceptEdits
			path := r.enter()
			write(t, path, "0. Begin.")
			_, text := r.do("exit_plan_mode", c.args)
			if text = strings.ReplaceAll(text, path, "P"); !strings.HasPrefix(text, c.says) {
				t.Errorf("got:\n%s\nwant:\n%s", text, c.says)
			}
			if r.mode() != c.mode {
				t.Errorf("the mode is %s, want %s", r.mode(), c.mode)
			}
			want := "0. Begin."
			if strings.Contains(c.args, "Think") {
				want = "1. Think."
			}
			same(t, content(t, path), want)
		})
	}
}

// A plan file is made anew if it is gone, kept if it is there, and never another session's.
func TestEnterPlanMode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := r.enter()
	if filepath.Dir(path) != r.Plans || !regexp.MustCompile(`^[a-z]+-[a-z]+-[a-z]+\.md$`).MatchString(filepath.Base(path)) {
		t.Errorf("the plan file is %s", path)
	}
	text := r.okRaw("enter_plan_mode", `{}`)
	if !strings.HasPrefix(text, "Already in plan mode. Plan file: "+path+"\n") || strings.Contains(text, "A plan exists") {
		t.Error(text)
	}
	write(t, path, "old")
	if text = r.okRaw("enter_plan_mode", `{}`); !strings.Contains(text, "\nA plan exists at "+path+"; read it first.\n") {
		t.Error(text)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(path), "other.md")
	write(t, other, "theirs")
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if again := r.enter(); again == path {
		t.Error("what stands in the place of the plan file counts as one")
	}
	same(t, content(t, other), "theirs")
	r.Shared = true
	if text = r.okRaw("enter_plan_mode", `{}`); !strings.HasSuffix(text, "[plan mode applies to all conversations of this user in this workspace; it ends 60 min after their last call]") {
		t.Error(text)
	}
	// The mode to go back to is that of the first time.
	if p, err := r.Plan.Load(t.Context()); err != nil || p.Before != permission.Default {
		t.Errorf("%+v %v", p, err)
	}
}

// In a root the plan's directory is made as any file's is, and not through a link that leads out.
func TestPlanDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Plans = filepath.Join(r.dir, "docs", "plans")
	if path := r.enter(); filepath.Dir(path) != r.Plans {
		t.Errorf("the plan file is %s", path)
	}
}

// A plan that has no limit is no plan.
func TestPlanTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := r.enter()
	if err := os.Truncate(path, 4<<20+1); err != nil {
		t.Fatal(err)
	}
	r.fails(tool.TooLarge, "exit_plan_mode", `{"plan":"x"}`)
}

// Without the Store the mode is unknown, and the answer does not say that anything was done.
func TestPlanModeWithoutStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Mode = session.NewCell[permission.Mode](deafMemory{}, "mode")
	r.fails(tool.StateUnavailable, "enter_plan_mode", `{}`)
	r.fails(tool.StateUnavailable, "exit_plan_mode", `{"plan":"x"}`)
	r = newRig(t)
	r.enter()
	r.Plan = session.NewCell[session.Plan](deafMemory{}, "plan")
	r.fails(tool.StateUnavailable, "enter_plan_mode", `{}`)
	r.fails(tool.StateUnavailable, "exit_plan_mode", `{"plan":"x"}`)
}

// deafMemory is a Store that does not answer.
type deafMemory struct{}

func (deafMemory) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, os.ErrClosed }
func (deafMemory) GetAll(context.Context, ...string) ([][]byte, []uint64, error) {
	return nil, nil, os.ErrClosed
}
func (deafMemory) Swap(context.Context, string, []byte, uint64) (bool, error) {
	return false, os.ErrClosed
}

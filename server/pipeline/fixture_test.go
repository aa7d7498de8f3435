package pipeline

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"codehand/server/state"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// The traits of most fixtures.
var (
	reads  = tool.Traits{ReadOnly: true, Parallel: true}
	writes = tool.Traits{}
	free   = tool.Traits{ReadOnly: true, Ungated: true}
)

// A corridor is a Pipeline with what it wrote.
type corridor struct {
	*Pipeline
	Ask func(context.Context, Asking) (tool.Answer, error) // of every Arrival; nil: no person can be asked

	mu      sync.Mutex
	records []Record
	log     bytes.Buffer
}

// newCorridor returns a Pipeline where a mode's ask lets a call run.
func newCorridor() *corridor {
	c := &corridor{Pipeline: &Pipeline{AskFallback: AskClient}}
	c.Record = func(r Record) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.records = append(c.records, r)
	}
	c.Log = slog.New(slog.NewTextHandler(&c.log, nil))
	return c
}

// last returns the last Record.
func (c *corridor) last() Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records[len(c.records)-1]
}

// newState returns the State of a session over roots.
func newState(t *testing.T, name string, roots ...string) *session.State {
	t.Helper()
	if len(roots) == 0 {
		roots = []string{t.TempDir()}
	}
	space, err := workspace.Open(roots, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = space.Close() })
	store := state.NewMemory(state.MemoryOptions{})
	own := state.Scoped(store, state.Key(state.Session, state.Hash("p"), state.Hash(name)))
	return &session.State{
		Modes:   session.Modes{Highest: permission.Bypass, Limit: session.NewCell[session.Limit](own, "limit")},
		Key:     session.Key{Principal: "p", Session: name},
		Space:   space,
		Rules:   policy(t),
		Results: results.New(t.TempDir()),
		Mode:    session.NewCell[permission.Mode](own, "mode"),
		Plan:    session.NewCell[session.Plan](own, "plan"),

		Grants:   session.NewCell[[]permission.Grant](own, "grants"),
		Declines: session.NewCell[session.Declines](own, "declines"),
	}
}

func policy(t *testing.T, deny ...string) *permission.Policy {
	t.Helper()
	var rules []permission.Rule
	for _, text := range deny {
		rules = append(rules, permission.Rule{Text: text, Origin: "user config line 12", Dir: "/"})
	}
	p, err := permission.New(permission.Options{Deny: rules})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fixture is a tool that does what run says.
func fixture(name string, traits tool.Traits, run func(context.Context, tool.Env) (tool.Result, error)) tool.Tool {
	spec := tool.Spec{Name: name, Title: name, Description: "A fixture.", Traits: traits}
	return made(spec, run)
}

// made is fixture with a spec of the test's own.
func made(spec tool.Spec, run func(context.Context, tool.Env) (tool.Result, error)) tool.Tool {
	return tool.Define(tool.Def[numbers]{Spec: spec, Run: func(ctx context.Context, env tool.Env, _ numbers) (tool.Result, error) {
		return run(ctx, env)
	}})
}

// numbers are what the tests send to a fixture, which reads none of them.
type numbers struct {
	A int `json:"a,omitempty" jsonschema:"a number" rule:"min=0"`
	B int `json:"b,omitempty" jsonschema:"a number" rule:"min=0"`
	X int `json:"x,omitempty" jsonschema:"a number" rule:"min=0"`
}

func done(context.Context, tool.Env) (tool.Result, error) { return tool.Result{Text: "done"}, nil }

// wantRefusal returns the refusal that err is, with this code and text.
func wantRefusal(t *testing.T, err error, code tool.Code, text string) *tool.Refusal {
	t.Helper()
	r, ok := refusal(err)
	if !ok {
		t.Fatalf("got %v, want %s", err, code)
	}
	if r.Code != code || text != "" && r.Text != text {
		t.Fatalf("got  %s\nwant %s: %s", r.Error(), code, text)
	}
	return r
}

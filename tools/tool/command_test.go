package tool

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/workspace"
)

type commandInput struct {
	Command string `json:"command" jsonschema:"a command line"`
}

// A command is parsed once: rules, Weigh and Run see the same analysis, and Weigh can only make it worse.
func TestCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		weigh func(*session.State, commandInput, *bash.Analysis) error
		want  bash.Class
		fails bool
	}{
		{name: "nobody weighs", want: bash.Analyze("ls", nil).Class},
		{name: "made worse", weigh: func(_ *session.State, _ commandInput, a *bash.Analysis) error {
			a.Class = bash.Writes
			return nil
		}, want: bash.Writes},
		{name: "refused", weigh: func(*session.State, commandInput, *bash.Analysis) error { return errors.New("no") }, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ran *bash.Analysis
			x := Define(Def[commandInput]{
				Spec:    Spec{Name: "x", Description: "X."},
				Command: func(in commandInput) string { return in.Command },
				Weigh:   c.weigh,
				Run: func(_ context.Context, env Env, _ commandInput) (Result, error) {
					ran = env.Analysis
					return Result{}, nil
				},
			})
			call, err := x.Bind(&session.State{}, json.RawMessage(`{"command":"ls"}`))
			if (err != nil) != c.fails {
				t.Fatalf("Bind: %v", err)
			}
			if c.fails {
				return
			}
			if _, err := call.Run(t.Context(), Env{}); err != nil {
				t.Fatal(err)
			}
			if len(call.Targets) != 1 || call.Targets[0].Kind != permission.Command || call.Targets[0].Value != "ls" || call.Targets[0].Analysis != ran || ran == nil {
				t.Errorf("targets %+v, and Run saw %p", call.Targets, ran)
			}
			if ran.Class != c.want {
				t.Errorf("class %s, want %s", ran.Class, c.want)
			}
			if reads := ran.Class == bash.ReadOnly; call.Traits != (Traits{ReadOnly: reads, Parallel: reads}) {
				t.Errorf("traits %+v of a command of class %s", call.Traits, ran.Class)
			}
		})
	}
}

// Weigh cannot prove that a command changes nothing.
func TestWeighProvesNothing(t *testing.T) {
	t.Parallel()
	x := Define(Def[commandInput]{
		Spec:    Spec{Name: "x", Description: "X."},
		Command: func(in commandInput) string { return in.Command },
		Weigh: func(_ *session.State, _ commandInput, a *bash.Analysis) error {
			a.Class = bash.ReadOnly
			return nil
		},
		Run: func(context.Context, Env, commandInput) (Result, error) { return Result{}, nil },
	})
	call, err := x.Bind(&session.State{}, json.RawMessage(`{"command":"touch x"}`))
	if err != nil || call.Traits.ReadOnly || call.Targets[0].Analysis.Class == bash.ReadOnly {
		t.Errorf("%+v %v", call, err)
	}
}

// Whether a path of a command lies in a root is decided by its components.
func TestInsideOf(t *testing.T) {
	t.Parallel()
	root := leaktest.Dir(t)
	space, err := workspace.Open([]string{root}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = space.Close() })
	inside := insideOf(&session.State{Space: space})
	for path, want := range map[string]bool{
		root: true, root + "/a": true, root + "/a/../b": true, root + "/../x": false, root + "-evil/x": false,
		filepath.Dir(root): false, "a": false, "": false, strings.TrimPrefix(root, "/"): false,
	} {
		if inside(path) != want {
			t.Errorf("inside(%q) is %v", path, !want)
		}
	}
	if insideOf(nil) != nil || insideOf(&session.State{}) != nil {
		t.Error("a session without roots has an inside")
	}
}

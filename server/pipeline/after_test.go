package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// see reads a file as read_file does.
func see(t *testing.T, s *session.State, path string) {
	t.Helper()
	f, err := s.Open(path, workspace.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := s.Files.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Saw(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// write changes a file as write_file does.
func write(ctx context.Context, s *session.State, path, text string) error {
	f, err := s.Open(path, workspace.Write)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = s.Files.Update(ctx, journal.By{}, filestate.Edit{File: f, Change: func([]byte) ([]byte, error) { return []byte(text), nil }})
	return err
}

// What a formatter does after an edit is shown, and counts as read when it is shown whole.
func TestHookChangesFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line that says nothing at all\n", 2000)
	tests := []struct {
		name   string
		after  string // what the hook leaves; "": it changes nothing
		shown  string // in the answer
		hidden bool   // too much to show whole: the next edit must read first
	}{
		{"nothing", "", "", false},
		{"formatter", "one\n  two\nthree\n", "\n[a hook changed $PATH after this edit]\n@@ -1,3 +1,3 @@\n one\n-two\n+  two\n three", false},
		{"everything", long, "\n[a hook changed $PATH after this edit]\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s")
			s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
			path := filepath.Join(s.Space.Roots()[0], "a.txt")
			if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			see(t, s, path)
			p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) {
				if tt.after == "" {
					return hooks.Outcome{}, nil
				}
				return hooks.Outcome{}, os.WriteFile(path, []byte(tt.after), 0o600)
			}}
			edit := fixture("edit", writes, func(ctx context.Context, e tool.Env) (tool.Result, error) {
				return tool.Result{Text: "edited", Meta: tool.Meta{Files: []tool.FileChange{{Path: path, Op: "change"}}}},
					write(ctx, e.State, path, "one\ntwo\nthree\n")
			})
			r, err := p.run(t, s, edit, "", Arrival{})
			want := "edited" + strings.ReplaceAll(tt.shown, "$PATH", path)
			if err != nil || r.Text != want && !(tt.hidden && strings.HasPrefix(r.Text, want) && len(r.Text) < maxHookDiff+500) {
				t.Fatalf("got %q, %v\nwant %q", r.Text, err, want)
			}
			err = write(t.Context(), s, path, "next\n")
			_, stale := errors.AsType[*filestate.StaleError](err)
			if stale != tt.hidden || err != nil && !stale {
				t.Errorf("the next edit: %v", err)
			}
		})
	}
}

// A client that leaves while hooks run after an edit has not seen it, nor what they changed: sent again, it is refused.
func TestLeftWhileHooksRun(t *testing.T) {
	t.Parallel()
	for _, formatted := range []string{"", "  new\n", "panic"} {
		p, s := newCorridor(), newState(t, "s")
		s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
		path := filepath.Join(s.Space.Roots()[0], "a.txt")
		if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		see(t, s, path)
		left := false
		p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) {
			left = true
			switch formatted {
			case "":
				return hooks.Outcome{}, nil
			case "panic":
				panic("a hook that fails us")
			}
			return hooks.Outcome{}, os.WriteFile(path, []byte(formatted), 0o600)
		}}
		edit := fixture("edit", writes, func(ctx context.Context, e tool.Env) (tool.Result, error) {
			return tool.Result{Text: "edited", Meta: tool.Meta{Files: []tool.FileChange{{Path: path, Op: "change"}}}},
				write(ctx, e.State, path, "new\n")
		})
		if _, err := p.run(t, s, edit, "", Arrival{Lost: func() bool { return left }}); (err != nil) != (formatted == "panic") {
			t.Fatal(err)
		}
		if err := write(t.Context(), s, path, "new\nnew\n"); !errors.Is(err, filestate.ErrNotRead) {
			t.Errorf("formatted as %q: the same edit again: %v", formatted, err)
		}
	}
}

// A text that a hook took away was not seen by the model.
func TestHookHidesWhatWasShown(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
	path := filepath.Join(s.Space.Roots()[0], "a.txt")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said hooks.Outcome
	p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) { return said, nil }}
	read := fixture("read", reads, func(context.Context, tool.Env) (tool.Result, error) {
		see(t, s, path)
		return tool.Result{Text: "secret\n", Media: []tool.Media{{MIME: "image/png", Data: []byte("secret")}}, Shows: []string{path}}, nil
	})
	refuse := fixture("refuse", reads, func(context.Context, tool.Env) (tool.Result, error) {
		see(t, s, path)
		return tool.Result{}, &tool.Refusal{Code: tool.FileChanged, Text: "secret\n", Shows: []string{path}}
	})
	hidden := "hidden"
	for _, tl := range []tool.Tool{read, refuse} {
		said = hooks.Outcome{Output: &hidden}
		if r, err := p.run(t, s, tl, "", Arrival{}); err == nil && (r.Text != hidden || len(r.Media) > 0) {
			t.Errorf("got %q and %d images", r.Text, len(r.Media))
		}
		if err := write(t.Context(), s, path, "new\n"); !errors.Is(err, filestate.ErrNotRead) {
			t.Errorf("%s: a write after it: %v", tl.Spec.Name, err)
		}
	}
	said = hooks.Outcome{Context: "and more"}
	if r, err := p.run(t, s, read, "", Arrival{}); err != nil || len(r.Media) != 1 {
		t.Fatalf("%d images, %v", len(r.Media), err)
	}
	if err := write(t.Context(), s, path, "new\n"); err != nil {
		t.Errorf("a write after a text that stayed: %v", err)
	}
}

// A tool notes what its text shows when the model gets all of it, and else never.
func TestSawWhatGoesOut(t *testing.T) {
	t.Parallel()
	text := numbered(28_000)
	other := "other words"
	long := strings.Repeat("a long word of a hook ", 800)
	for name, c := range map[string]struct {
		said   hooks.Outcome
		before int // calls of the same turn
		inside func(tool.Result) tool.Result
		want   int
	}{
		"whole":                   {want: 1},
		"a hook adds":             {said: hooks.Outcome{Context: "and more"}, want: 1},
		"a hook adds much":        {said: hooks.Outcome{Context: long}},
		"a hook replaces":         {said: hooks.Outcome{Output: &other}},
		"no room in the turn":     {before: 8, want: 6},
		"through another call":    {inside: func(r tool.Result) tool.Result { return r }, want: 1},
		"cut, through another":    {before: 8, inside: func(r tool.Result) tool.Result { return r }, want: 6},
		"a part, through another": {inside: func(r tool.Result) tool.Result { return tool.Result{Text: r.Text[:100]} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s")
			s.Client.MaxRunes = 30_000
			p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) { return c.said, nil }}
			n := 0
			show := fixture("show", reads, func(context.Context, tool.Env) (tool.Result, error) {
				return tool.Result{Text: text, Saw: func(context.Context) { n++ }}, nil
			})
			for range c.before {
				if _, err := p.unanswered(t, s, show, "", Arrival{}); err != nil {
					t.Fatal(err)
				}
			}
			called, a, until := show, Arrival{}, n
			if c.inside != nil {
				a.Find = finds(show)
				called = fixture("outer", quiet, func(ctx context.Context, env tool.Env) (tool.Result, error) {
					r, err := env.Call(ctx, "show", json.RawMessage(`{}`), nil)
					if n > until {
						t.Error("it was noted before anybody has seen it")
					}
					return c.inside(r), err
				})
			}
			if _, err := p.run(t, s, called, "{}", a); err != nil {
				t.Fatal(err)
			}
			if n != c.want {
				t.Errorf("it was noted %d times, want %d", n, c.want)
			}
		})
	}
}

func TestPermissionWords(t *testing.T) {
	t.Parallel()
	// What no operator wrote, none can remove.
	p, s := newCorridor(), newState(t, "s")
	c := &call{pipe: p.Pipeline, state: s}
	c.bound.Spec.Name = "x"
	err := (&decided{call: c, decision: permission.Decision{Rule: "~/.ssh", Origin: permission.BuiltIn, Reason: "secrets are closed to every tool"}}).settle(t.Context())
	wantRefusal(t, err, tool.PermissionDenied, "Permission denied: x: rule ~/.ssh, built in (secrets are closed to every tool).")
	err = (&decided{call: c, decision: permission.Decision{Off: true, Rule: "x"}}).settle(t.Context())
	wantRefusal(t, err, tool.ToolDisabled, "x is not available: rule x")
}

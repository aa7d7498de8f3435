package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// shellCall is a bound call of a command, as run_shell would be.
func shellCall(p *Pipeline, s *session.State, command string) *call {
	a := bash.Analyze(command, s.Space.Inside)
	c := &call{pipe: p, state: s}
	c.bound = tool.Call{
		Spec:   tool.Spec{Name: "run_shell", Family: permission.FamilyBash, Aliases: []string{"Bash"}},
		Traits: tool.Traits{ReadOnly: a.Class == bash.ReadOnly}, Verdict: permission.Allow,
		Targets: []permission.Target{{Kind: permission.Command, Value: command, Analysis: &a}},
	}
	return c
}

// The files of a command are resolved like the path of any call.
func TestRequestOfACommand(t *testing.T) {
	t.Parallel()
	s := newState(t, "a")
	dir := s.Space.Roots()[0]
	outside := t.TempDir()
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(dir, "out")),
		os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600),
		os.Link(filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	real, err := filepath.EvalSymlinks(outside)
	if err != nil {
		t.Fatal(err)
	}
	r := shellCall(&Pipeline{}, s, "cat a.txt > out/x").request()
	want := []permission.Target{
		{Value: filepath.Join(dir, "a.txt"), Real: filepath.Join(dir, "a.txt"), Also: []string{filepath.Join(dir, "b.txt")}, Inside: true, Use: permission.CommandReads},
		{Value: filepath.Join(dir, "out", "x"), Real: filepath.Join(real, "x"), Use: permission.CommandWrites},
	}
	for _, w := range want {
		if !slices.ContainsFunc(r.Targets, func(t permission.Target) bool {
			return t.Kind == permission.Path && t.Value == w.Value && t.Real == w.Real && t.Inside == w.Inside && t.Use == w.Use && slices.Equal(t.Also, w.Also)
		}) {
			t.Errorf("there is no %+v in\n%+v", w, r.Targets)
		}
	}
	if r.Cwd != dir || r.Now.IsZero() {
		t.Errorf("got cwd %s at %v", r.Cwd, r.Now)
	}
}

// A rule names what a link outside the roots leads to, whether it is there or not.
func TestRealPath(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(in("d/e"), 0o700),
		os.Symlink("d", in("link")), os.Symlink(in("link/none"), in("dangling")), os.Symlink("dangling", in("twice")),
		os.Symlink("loop", in("loop")), os.Symlink("/", in("d/top")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"d/e": "d/e", "link/e": "d/e", "link/new/x": "d/new/x", "dangling": "d/none", "dangling/x": "d/none/x", "twice": "d/none",
		"gone/../d": "d", "loop": "loop",
	} {
		if got := realPath(in(path)); got != in(want) {
			t.Errorf("%s: got %s, want %s", path, got, in(want))
		}
	}
	if got := realPath("a/b"); got != "a/b" {
		t.Errorf("got %s", got)
	}
	if got, want := realPath(in("d/top/no-such-file")), filepath.FromSlash("/no-such-file"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// brokenMemory is a Store that does not answer.
type brokenMemory struct{}

func (brokenMemory) Get(context.Context, string) ([]byte, uint64, error) {
	return nil, 0, errors.New("down")
}

func (brokenMemory) GetAll(context.Context, ...string) ([][]byte, []uint64, error) {
	return nil, nil, errors.New("down")
}

func (brokenMemory) Swap(context.Context, string, []byte, uint64) (bool, error) {
	return false, errors.New("down")
}

// A grant counts in its session, and nowhere else.
func TestDecideByGrants(t *testing.T) {
	t.Parallel()
	grant := func(t *testing.T, s *session.State, rule string, at time.Time) {
		t.Helper()
		if _, err := s.Grants.Change(t.Context(), func(all []permission.Grant) ([]permission.Grant, error) {
			return append(all, permission.Grant{Rule: rule, At: at}), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *session.State)
		want   permission.Verdict
	}{
		{"none", func(*testing.T, *session.State) {}, permission.Ask},
		{"granted", func(t *testing.T, s *session.State) { grant(t, s, "Bash(make *)", time.Now()) }, permission.Allow},
		{"too old", func(t *testing.T, s *session.State) { grant(t, s, "Bash(make *)", time.Now().Add(-25*time.Hour)) }, permission.Ask},
		{"shared key", func(t *testing.T, s *session.State) {
			grant(t, s, "Bash(make *)", time.Now())
			s.Shared = true
		}, permission.Ask},
		{"no store", func(_ *testing.T, s *session.State) {
			s.Grants = session.NewCell[[]permission.Grant](brokenMemory{}, "grants")
		}, permission.Ask},
		{"denied", func(t *testing.T, s *session.State) {
			grant(t, s, "Bash(make *)", time.Now())
			s.Rules = policy(t, "Bash(make *)")
		}, permission.Deny},
	} {
		s := newState(t, c.name)
		c.change(t, s)
		_, d := shellCall(&Pipeline{}, s, "make all").decide(t.Context())
		if d.Verdict != c.want || d.Verdict == permission.Allow && d.Origin != permission.Granted {
			t.Errorf("%s: got %+v, want %v", c.name, d, c.want)
		}
	}
}

// Mode auto without a classifier is mode default.
func TestAutoNeedsAClassifier(t *testing.T) {
	t.Parallel()
	s := newState(t, "a")
	c := shellCall(&Pipeline{}, s, "make")
	c.mode = permission.Auto
	if r := c.request(); r.Mode != permission.Default {
		t.Errorf("got mode %v, want default", r.Mode)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := newState(t, "a")
	ran := false
	writer := fixture("write", writes, func(context.Context, tool.Env) (tool.Result, error) {
		ran = true
		return tool.Result{}, nil
	})
	p := &Pipeline{AskFallback: AskClient}
	explain := func(t *testing.T, input string) Explanation {
		t.Helper()
		e, err := p.Explain(t.Context(), s, writer, json.RawMessage(input))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := explain(t, `{}`); e.Decision.Verdict != permission.Ask || !e.ByClient || e.Question == "" || e.Refusal != nil {
		t.Errorf("got %+v, want an ask that the client answers", e)
	}
	if e := explain(t, `[]`); e.Refusal == nil || e.Refusal.Code != tool.InputInvalid {
		t.Errorf("got %+v, want a refusal of the input", e)
	}
	s.Start = permission.Plan
	if e := explain(t, `{}`); e.Refusal == nil || e.Refusal.Code != tool.PlanMode {
		t.Errorf("got %+v, want a refusal by plan mode", e)
	}
	s.Start, s.Rules = permission.Default, policy(t, "write")
	if e := explain(t, `{}`); !e.Decision.Off || e.Decision.Origin != "user config line 12" {
		t.Errorf("got %+v, want the rule that switches it off", e)
	}
	if ran {
		t.Error("the tool was run")
	}
}

// `cp a b` and `mv a b` onto an existing file asked in mode acceptEdits: the file b/a, which cannot be there, was looked
// for once more, and counted as outside.
func TestSimpleEdits(t *testing.T) {
	t.Parallel()
	s := newState(t, "a")
	dir := s.Space.Roots()[0]
	for _, name := range []string{"a.txt", "b.txt", "d/a.txt", "e/x"} {
		for _, err := range []error{os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), nil, 0o600)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	p, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Edit(e/a.txt)"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Rules = p.At(s.Space.Roots(), dir)
	for command, want := range map[string]permission.Verdict{
		"cp a.txt b.txt": permission.Allow, "mv a.txt b.txt": permission.Allow, "cp a.txt new": permission.Allow, "cp a.txt d": permission.Allow,
		"mkdir f && touch f/x": permission.Allow, "sed -i s/a/b/ a.txt": permission.Allow, "rm a.txt": permission.Allow,
		"cp a.txt ../b.txt": permission.Ask, "cp a.txt /opt": permission.Ask, "cp a.txt e": permission.Deny, "mv e f": permission.Ask, // what is in a directory is not looked at
	} {
		c := shellCall(&Pipeline{}, s, command)
		c.mode = permission.AcceptEdits
		if d := s.Rules.Decide(c.request()); d.Verdict != want {
			t.Errorf("%s: %+v", command, d)
		}
	}
}

// A command that names thousands of files took seconds for each decision: 0.7 s with 20,000, and 25 times that here, and
// later 20 s before the decision, to read it. A second or two are enough, also with the race detector.
func TestManyFiles(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	s := newState(t, "a")
	var b strings.Builder
	b.WriteString("cat")
	for i := range 100_000 {
		fmt.Fprintf(&b, " f%d", i)
	}
	p, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Read(f99999)"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Rules = p.At(s.Space.Roots(), s.Space.Cwd())
	var took time.Duration
	for range 2 { // a machine that stood still does not do so twice
		start := time.Now()
		r := shellCall(&Pipeline{}, s, b.String()).request()
		if d := s.Rules.Decide(r); d.Verdict != permission.Deny || d.Rule != "Read(f99999)" {
			t.Fatalf("%+v", d)
		}
		if took = time.Since(start); took < 15*time.Second || !leaktest.Long() {
			return
		}
	}
	t.Errorf("it took %v", took)
}

package tools

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

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/server/state"
	"codehand/tools/catalog"
	"codehand/tools/media"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/sandbox"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/skills"
	"codehand/tools/tasks"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A rig is one session with real engines over a directory of its own.
type rig struct {
	t   *testing.T
	dir string // the root
	*session.State
	store state.Store // behind all that the session remembers
	calls int

	journal *journal.Journal
	options filestate.Options // of Files
	kept    string            // directory of the journal
}

// restart gives the session a journal and a ledger as a new process makes them, over what the old ones wrote.
func (r *rig) restart() {
	r.t.Helper()
	if r.journal != nil {
		_ = r.journal.Close()
	}
	var err error
	if r.journal, err = journal.Open(r.kept, journal.Options{Fast: true}); err != nil {
		r.t.Fatal(err)
	}
	r.options.Journal = r.journal
	r.Files = filestate.New(r.options)
}

// prefs are the settings as they are without any configuration.
func prefs() session.Prefs {
	return session.Prefs{
		ReadDedup: true, ReadMaxTokens: 25_000, ReadMaxLine: 2000, ListLimit: 100, ListTimeoutMS: 20_000,
		GrepMode: "files_with_matches", GrepTimeoutMS: 20_000, ShellDefaultMS: 120_000, ShellMaxMS: 600_000, ShellBackgroundMS: 110_000,
	}
}

// catalogOf is what a session finds where nothing is switched off.
func catalogOf(all []tool.Tool) []catalog.Entry {
	entries := make([]catalog.Entry, 0, len(all))
	for _, x := range all {
		entries = append(entries, catalog.Entry{
			Name: x.Spec.Name, Aliases: x.Spec.Aliases, Description: x.Spec.Description, Hint: x.Spec.Hint, Deferred: x.Spec.Deferred, Schema: x.Schema,
		})
	}
	slices.SortFunc(entries, func(a, b catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

func newRig(t *testing.T, deny ...string) *rig {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(err)
	private := t.TempDir()
	jobs, kept := filepath.Join(private, "jobs"), filepath.Join(private, "tool-results")
	space, err := workspace.Open([]string{root}, workspace.Options{})
	must(err)
	t.Cleanup(func() { _ = space.Close() })
	var rules []permission.Rule
	for _, text := range deny {
		rules = append(rules, permission.Rule{Text: text, Origin: "test", Dir: root})
	}
	policy, err := permission.New(permission.Options{Deny: rules})
	must(err)
	store := state.NewMemory(state.MemoryOptions{})
	t.Cleanup(func() { _ = store.Close() })
	memory := state.Scoped(store, "sess.local.test")
	engine := search.New(search.Options{Workers: 2})
	t.Cleanup(func() { eventually(t, func() bool { return engine.Close() == nil }) }) // it waits for a second only
	sh, err := shell.New(shell.Options{Dir: jobs, Board: memory, Env: sandbox.Environ(sandbox.EnvOptions{Temp: private})})
	must(err)
	t.Cleanup(func() { must(sh.Close()) })
	r := &rig{t: t, dir: root, store: store, kept: filepath.Join(private, "journal"), State: &session.State{
		Key: session.Key{Principal: "local", Session: "test"}, Prefs: prefs(),
		Space: space.Readable(jobs, kept), Rules: policy, Search: engine, Shell: sh, Results: results.New(kept), Media: media.New(media.Options{Fit: media.FitOptions{MaxTime: time.Minute}, PDFTime: 5 * time.Minute}),
		Mode:  session.NewCell[permission.Mode](memory, "cell.mode"),
		Plan:  session.NewCell[session.Plan](memory, "cell.plan"),
		Plans: filepath.Join(private, "plans"), PlanFallback: "client", Highest: permission.Bypass,
		Cwd:     session.NewCell[string](memory, "cell.cwd"),
		Cursors: session.NewCell[map[string]session.Cursor](memory, "cell.cursors"),
		Active:  session.NewCell[[]string](memory, "cell.active"),
		Todos:   session.NewCell[[]session.Todo](memory, "cell.todos"),
		Choices: session.NewCell[session.Choices](memory, "cell.choices"),
		Loaded:  session.NewCell[map[string]string](memory, "cell.loaded"),
		Skills:  skills.New(), Tasks: tasks.New(session.NewCell[tasks.Book](memory, "cell.tasks")),
		Catalog: catalogOf(All()),
	}}
	r.options = filestate.Options{Memory: memory, Dir: filepath.Join(private, "locks"), Fast: true}
	r.restart()
	t.Cleanup(func() { _ = r.journal.Close() })
	return r
}

// env is what one call may use.
func (r *rig) env(c tool.Call) tool.Env {
	r.calls++
	limit := c.Spec.MaxRunes
	if limit <= 0 {
		limit = tool.DefaultMaxRunes
	}
	at := *r.State
	if cwd, err := r.Cwd.Load(r.t.Context()); err == nil && cwd != "" {
		at.Space = at.Space.At(cwd) // as server does for every call
	}
	at.Usual = session.Usual{Cwd: r.Space.Cwd(), MaxRunes: at.Client.MaxRunes, Prefs: at.Prefs}
	if chosen, err := r.Choices.Load(r.t.Context()); err == nil {
		now := chosen.Under(at.Usual)
		at.Client.MaxRunes, at.Prefs = now.MaxRunes, now.Prefs
	}
	if at.Client.MaxRunes > 0 {
		limit = at.Client.MaxRunes
	}
	return tool.Env{State: &at, CallID: fmt.Sprintf("call%012d", r.calls), Limit: limit, Progress: func(float64, float64, string) {}}
}

// do calls a tool. args is JSON in which $WORK stands for the root. A refusal comes back as its text.
func (r *rig) do(name, args string) (tool.Result, string) {
	r.t.Helper()
	return r.doCtx(r.t.Context(), name, args, time.Time{})
}

func (r *rig) doCtx(ctx context.Context, name, args string, answerBy time.Time) (tool.Result, string) {
	r.t.Helper()
	for _, t := range All() {
		if t.Spec.Name != name {
			continue
		}
		call, err := t.Bind(r.State, json.RawMessage(strings.ReplaceAll(args, "$WORK", r.dir)))
		if err != nil {
			return r.refused(tool.Result{}, err)
		}
		env := r.env(call)
		env.AnswerBy = answerBy
		res, err := call.Run(ctx, env)
		if res.Saw != nil {
			res.Saw(ctx) // as the corridor does for a text that it need not cut
		}
		return r.refused(res, err)
	}
	r.t.Fatalf("there is no tool %s", name)
	return tool.Result{}, ""
}

func (r *rig) refused(res tool.Result, err error) (tool.Result, string) {
	r.t.Helper()
	if err == nil {
		return res, res.Text
	}
	refusal, ok := errors.AsType[*tool.Refusal](err)
	if !ok {
		r.t.Fatalf("an error that is no refusal: %v", err)
	}
	return tool.Result{Failed: refusal.Code, Shows: refusal.Shows, Meta: refusal.Meta}, refusal.Error()
}

// ok is do for a call that must succeed.
func (r *rig) ok(name, args string) string {
	r.t.Helper()
	res, text := r.do(name, args)
	if res.Failed != "" {
		r.t.Fatalf("%s %s failed:\n%s", name, args, text)
	}
	return strings.ReplaceAll(text, r.dir, "$WORK")
}

// fails is do for a call that must fail with code.
func (r *rig) fails(code tool.Code, name, args string) string {
	r.t.Helper()
	res, text := r.do(name, args)
	if res.Failed != code || !strings.HasPrefix(text, string(code)+": ") {
		r.t.Fatalf("%s %s: code %q, want %q:\n%s", name, args, res.Failed, code, text)
	}
	return strings.ReplaceAll(text, r.dir, "$WORK")
}

// write puts a file below the root, behind the server's back.
func (r *rig) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

// holds checks what is in a file.
func (r *rig) holds(name, want string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	if string(got) != want {
		r.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

// eventually asks again and again, for a minute, until done says so: a busy machine needs more time now and then.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(late) {
			t.Error("it never came true")
			return
		}
	}
}

// same compares texts and shows both.
func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\n\nwant:\n%s", got, want)
	}
}

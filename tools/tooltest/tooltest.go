// Package tooltest makes the session that tests of tools and of their rooms run calls in: real engines over a directory
// of its own. Only tests import it. It knows no tool, so that tests of the rooms below them can use it, too.
package tooltest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf16"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
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

// A Session is one session with real engines over a directory of its own. All of it ends with the test.
type Session struct {
	*session.State
	Dir     string            // the one root
	Store   state.Store       // behind all that the session remembers
	Options filestate.Options // of Files
	Journal string            // directory of the journal

	t       *testing.T
	calls   int
	journal *journal.Journal
}

// New makes a session in an empty directory, in which the rules deny are in force. found is what tool_search finds
// there.
func New(t *testing.T, found []catalog.Entry, deny ...string) *Session {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := leaktest.Dir(t)
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
	engine := search.New(search.Options{Workers: 2, Memory: 16 << 20})
	t.Cleanup(func() { Eventually(t, func() bool { return engine.Close() == nil }) }) // it waits for a second only
	sh, err := shell.New(shell.Options{Dir: jobs, Board: memory,
		Env: sandbox.Environ(sandbox.EnvOptions{Temp: private})})
	must(err)
	t.Cleanup(func() { must(sh.Close()) })
	s := &Session{t: t, Dir: root, Store: store, Journal: filepath.Join(private, "journal"), State: &session.State{
		Key: session.Key{Principal: "local", Session: "test"}, Prefs: prefs(),
		Space: space.Readable(jobs, kept), Rules: policy, Search: engine, Results: results.New(kept),
		Media:     media.New(media.Options{Fit: media.FitOptions{MaxTime: time.Minute}, PDFTime: 5 * time.Minute}),
		Mode:      session.NewCell[permission.Mode](memory, "cell.mode"),
		Plan:      session.NewCell[session.Plan](memory, "cell.plan"),
		Commands:  session.Commands{Shell: sh},
		PlanFiles: session.PlanFiles{Plans: filepath.Join(private, "plans"), PlanFallback: "client"}, Modes: session.Modes{Highest: permission.Bypass},
		Cwd:      session.NewCell[string](memory, "cell.cwd"),
		Isolated: session.NewCell[session.Worktrees](memory, "cell.worktrees"),
		Cursors:  session.NewCell[map[string]session.Cursor](memory, "cell.cursors"),
		Active:   session.NewCell[[]string](memory, "cell.active"),
		Todos:    session.NewCell[[]session.Todo](memory, "cell.todos"),
		Reach:    session.Reach{Searches: session.NewCell[int](memory, "cell.searches")},
		Choices:  session.NewCell[session.Choices](memory, "cell.choices"),
		Told:     session.NewCell[map[string]string](memory, "cell.loaded"),
		Skills:   skills.New(), Tasks: tasks.New(session.NewCell[tasks.Book](memory, "cell.tasks")),
		Catalog: found,
	}}
	s.Options = filestate.Options{Memory: memory, Dir: filepath.Join(private, "locks"), Fast: true}
	s.Restart()
	t.Cleanup(func() { _ = s.journal.Close() })
	return s
}

// prefs are the settings as they are without any configuration.
func prefs() session.Prefs {
	return session.Prefs{
		ReadDedup: true, ReadMaxTokens: 25_000, ReadMaxLine: 2000, ListLimit: 100, ListTimeoutMS: 20_000,
		GrepMode: "files_with_matches", GrepTimeoutMS: 20_000, ShellDefaultMS: 120_000, ShellMaxMS: 600_000,
		ShellBackgroundMS: 110_000,
	}
}

// Restart gives the session a journal and a ledger as a new process makes them, over what the old ones wrote.
func (s *Session) Restart() {
	s.t.Helper()
	if s.journal != nil {
		_ = s.journal.Close()
	}
	var err error
	if s.journal, err = journal.Open(s.Journal, journal.Options{Fast: true}); err != nil {
		s.t.Fatal(err)
	}
	s.Options.Journal = s.journal
	s.Files = filestate.New(s.Options)
}

// Env is what one call may use.
func (s *Session) Env(c tool.Call) tool.Env {
	s.calls++
	limit := c.Spec.MaxRunes
	if limit <= 0 {
		limit = tool.DefaultMaxRunes
	}
	at := *s.State
	var answered func()
	at.Results, answered = s.Results.Arrive()
	answered() // each call is a turn of its own
	if cwd, err := s.Cwd.Load(s.t.Context()); err == nil && cwd != "" {
		at.Space = at.Space.At(cwd) // as server does for every call
	}
	if trees, err := s.Isolated.Load(s.t.Context()); err == nil {
		at.Worktree = trees.In
	}
	at.Usual = session.Usual{Cwd: s.Space.Cwd(), MaxRunes: at.Client.MaxRunes, Prefs: at.Prefs}
	if chosen, err := s.Choices.Load(s.t.Context()); err == nil {
		now := chosen.Under(at.Usual)
		at.Client.MaxRunes, at.Prefs = now.MaxRunes, now.Prefs
	}
	if at.Client.MaxRunes > 0 {
		limit = at.Client.MaxRunes
	}
	return tool.Env{State: &at, CallID: fmt.Sprintf("call%012d", s.calls), Limit: limit,
		Progress: func(float64, float64, string) {}}
}

// Write puts a file below the directory, behind the server's back.
func (s *Session) Write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// UTF16 encodes text as UTF-16 with its mark.
func UTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// Eventually asks again and again, for a minute, until done says so: a busy machine needs more time now and then.
func Eventually(t *testing.T, done func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	look := time.NewTicker(time.Millisecond) // others have the processor meanwhile
	defer look.Stop()
	for !done() {
		select {
		case <-late:
			t.Error("it never came true")
			return
		case <-look.C:
		}
	}
}

// Same compares texts and shows both.
func Same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\n\nwant:\n%s", got, want)
	}
}

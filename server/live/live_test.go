package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/asking"
	"codehand/server/sessions"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A place is a process of a test: what waits there, and what was stopped.
type place struct {
	desk    *asking.Desk
	bars    string
	stopped []string
	session string // the short name of its one session
	wished  []Wish
	end     func()
}

// begin serves a process on a state directory until the test is over or end is called.
func begin(t *testing.T, state string, p *place) *place {
	t.Helper()
	if !Available() {
		t.Skip("this system does not say who connects")
	}
	before := sockets(filepath.Join(state, socketsDir))
	p.desk = asking.NewDesk(false, func(string, map[string]any) {})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := Serve(ctx, state, Process{
			Principal: "local", Roots: []string{"/w"}, Desk: p.desk, Bars: func() string { return p.bars },
			Running: func(context.Context) []RunningCommand {
				return []RunningCommand{{Session: "00000001", ID: "job_a", Command: "make"}}
			},
			Stop: func(_ context.Context, session, id string) (bool, error) {
				p.stopped = append(p.stopped, session+" "+id)
				return id == "job_a", nil
			},
			Rights: func(_ context.Context, name string) ([]sessions.Rights, error) {
				if name != p.session {
					return nil, nil
				}
				return []sessions.Rights{{Key: session.Key{Principal: "local", Session: "p:" + name}, Mode: "default"}}, nil
			},
			SetRights: p.wish,
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Error(err)
		}
	}()
	p.end = func() { cancel(); <-done }
	t.Cleanup(p.end)
	within(t, "the socket is there", func() bool {
		return slices.ContainsFunc(sockets(filepath.Join(state, socketsDir)), func(name string) bool { return !slices.Contains(before, name) })
	})
	return p
}

// within waits until something holds that another goroutine brings about.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 2_000 {
		if holds() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("%s: not after 10 s", what)
}

// ask lets a question wait in a process, once a page has it open.
func (p *place) ask(t *testing.T, tool string) <-chan *asking.Said {
	t.Helper()
	answer := make(chan *asking.Said, 1)
	go func() {
		answer <- p.desk.Put(t.Context(), asking.Waiting{Principal: "local", Tool: tool, Question: question}, time.Minute, nil)
	}()
	return answer
}

var question = tool.Question{Title: "Allow it?", Fields: []tool.Field{{Name: "decision", Choices: []string{"allow once", "deny"}}}}

// TestHub: a page sees what waits in each process and which commands run there, answers each question once where it waits,
// and stops commands. A process knows of the page only while a person has it open.
func TestHub(t *testing.T) {
	t.Parallel()
	state := leaktest.Dir(t)
	one, two := begin(t, state, &place{}), begin(t, state, &place{})
	barred := begin(t, state, &place{bars: "Not confined."})
	h := NewHub(state, "http://page/")
	defer h.Close()
	if url, open := one.desk.Page("local"); url != "" || open {
		t.Errorf("without a page a question goes to %q, %t", url, open)
	}
	stop := h.Open("local")
	defer stop()
	for _, p := range []*place{one, two} {
		within(t, "the process knows of the page", func() bool { url, open := p.desk.Page("local"); return url == "http://page/" && open })
	}
	if url, open := barred.desk.Page("local"); open {
		t.Errorf("a process whose commands are not confined lets questions wait at %q", url)
	}
	if got := fmt.Sprint(h.Barred()); got != "[/w: Not confined.]" {
		t.Error(got)
	}
	said := one.ask(t, "run_shell")
	ids := map[string]string{}
	within(t, "the question is seen", func() bool {
		list, _, _ := h.Of("", false)
		for _, w := range list {
			ids[w.Tool] = w.ID
		}
		return len(list) == 1
	})
	id := ids["run_shell"]
	for what, c := range map[string]struct {
		id    string
		value string
		want  error
	}{"unknown": {"nothing", "deny", asking.ErrOver}, "not offered": {id, "always", asking.ErrChoice}} {
		if err := h.Answer(c.id, "local", false, map[string]string{"decision": c.value}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := h.Answer(id, "local", false, map[string]string{"decision": "deny"}); err != nil {
		t.Fatal(err)
	}
	if e := <-said; e == nil || fmt.Sprint(e.Content) != "map[decision:deny]" {
		t.Errorf("%v", e)
	}
	if err := h.Answer(id, "local", false, map[string]string{"decision": "allow once"}); !errors.Is(err, asking.ErrOver) {
		t.Errorf("a second answer: %v", err)
	}

	all := h.Running(t.Context())
	if len(all) != 3 || all[0].Command != "make" || all[0].Process == all[1].Process {
		t.Fatalf("%+v", all)
	}
	if err := h.Stop(t.Context(), all[0].Process, "00000001", "job_a"); err != nil {
		t.Error(err)
	}
	for _, gone := range [][2]string{{all[0].Process, "job_b"}, {"nothing", "job_a"}, {"../x", "job_a"}} {
		if err := h.Stop(t.Context(), gone[0], "00000001", gone[1]); !errors.Is(err, ErrGone) {
			t.Errorf("%v: %v", gone, err)
		}
	}
	if n := len(one.stopped) + len(two.stopped) + len(barred.stopped); n != 2 {
		t.Errorf("stopped %v %v %v", one.stopped, two.stopped, barred.stopped)
	}

	waiting := two.ask(t, "edit_file")
	within(t, "the second question is seen", func() bool { list, _, _ := h.Of("", false); return len(list) == 1 })
	two.end()
	within(t, "what waited in a process that ended is gone", func() bool { list, _, _ := h.Of("", false); return len(list) == 0 })
	_ = waiting // it ends with the test
}

// TestSockets: a socket and its directory are this user's alone, goes with its process, and that of a killed one goes
// with the next process or page, in a directory with a long name, too.
func TestSockets(t *testing.T) {
	t.Parallel()
	state := filepath.Join(leaktest.Dir(t), fmt.Sprintf("%0150d", 1))
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(state, socketsDir)
	p := begin(t, state, &place{})
	for _, name := range []string{dir, filepath.Join(dir, sockets(dir)[0])} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	p.end()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	dead := func() {
		at, release, err := short(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		l, err := net.Listen("unix", filepath.Join(at, "dead"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
	}
	dead()
	begin(t, state, &place{}).end()
	dead2 := len(sockets(dir))
	dead()
	h := NewHub(state, "http://page/")
	h.Open("local")()
	h.Close()
	if n := len(sockets(dir)); dead2 != 0 || n != 0 {
		t.Errorf("%d and %d sockets of dead processes are left", dead2, n)
	}
}

// TestStrangers: a request without a connection of this user's program gets nothing.
func TestStrangers(t *testing.T) {
	t.Parallel()
	state := leaktest.Dir(t)
	p := begin(t, state, &place{})
	dir := filepath.Join(state, socketsDir)
	web := clientOf(dir, sockets(dir)[0])
	defer web.CloseIdleConnections()
	for path, want := range map[string]int{"/look": 200, "/answer": 405, "/stop": 405, "/": 404} {
		r, err := web.Get("http://live" + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	r, err := web.Post("http://live/answer", "application/json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("no answer at all: %d", r.StatusCode)
	}
	if _, open := p.desk.Page("local"); open {
		t.Error("a look without a page opens one")
	}
}

// wish does what a person wants of the one session of a process.
func (p *place) wish(_ context.Context, w Wish) error {
	switch {
	case w.Session != p.session:
		return sessions.ErrNotOpen
	case w.Add != nil && w.Add.Rule == "wrong":
		return &sessions.RuleError{Text: "it is wrong"}
	case w.Add == nil && w.Take == nil && w.Mode == "all":
		return sessions.ErrMode
	}
	p.wished = append(p.wished, w)
	return nil
}

// TestRights: a page sees what a session may do in the process that has it in use, and changes it there alone; a process
// whose commands are not confined changes nothing.
func TestRights(t *testing.T) {
	t.Parallel()
	state := leaktest.Dir(t)
	one, two, barred := &place{session: "00000001"}, &place{session: "00000002"}, &place{session: "00000003", bars: "Not confined."}
	for _, p := range []*place{one, two, barred} {
		begin(t, state, p)
	}
	h := NewHub(state, "http://page/")
	defer h.Close()
	defer h.Open("local")()
	for name, n := range map[string]int{"00000001": 1, "00000003": 1, "00000004": 0} {
		if all := h.Rights(t.Context(), name); len(all) != n || n > 0 && (all[0].Mode != "default" || all[0].Key.Session != "p:"+name) {
			t.Errorf("%s: %+v", name, all)
		}
	}
	rule := func(text string) *sessions.NamedRule { return &sessions.NamedRule{List: "deny", Rule: text} }
	for name, c := range map[string]struct {
		w    Wish
		want string
	}{
		"a mode":     {Wish{Session: "00000001", By: "local", Mode: "plan"}, ""},
		"no mode":    {Wish{Session: "00000001", Mode: "all"}, sessions.ErrMode.Error()},
		"a rule":     {Wish{Session: "00000002", Add: rule("Edit")}, ""},
		"taken":      {Wish{Session: "00000002", Take: rule("Edit")}, ""},
		"no rule":    {Wish{Session: "00000002", Add: rule("wrong")}, "it is wrong"},
		"barred":     {Wish{Session: "00000003", Mode: "plan"}, "Not confined."},
		"not in use": {Wish{Session: "00000004", Mode: "plan"}, sessions.ErrNotOpen.Error()},
	} {
		got := ""
		if err := h.SetRights(t.Context(), c.w); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if len(one.wished) != 1 || one.wished[0].By != "local" || len(two.wished) != 2 || len(barred.wished) != 0 {
		t.Errorf("%+v %+v %+v", one.wished, two.wished, barred.wished)
	}
}

// TestAwait: a process that begins while a page is open waits until that page has seen it, so that its first call can be
// asked about there; without an open page it does not wait.
func TestAwait(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	never := func() bool { return false }
	Await(t.Context(), state, never)
	h := NewHub(state, "http://page/")
	leave := h.Open("")
	p := begin(t, state, &place{})
	Await(t.Context(), state, func() bool { _, open := p.desk.Page("local"); return open })
	if _, open := p.desk.Page("local"); !open {
		t.Error("the process did not wait for the page")
	}
	leave()
	h.Close()
	Await(t.Context(), state, never)
	if names, _ := os.ReadDir(filepath.Join(state, socketsDir)); slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == openName }) {
		t.Error("a page that is closed counts as open")
	}
}

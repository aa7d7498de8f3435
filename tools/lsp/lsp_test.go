package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/lsp/lsptest"
	"codehand/tools/sandbox"
)

// asServer is set where this test binary stands for a server; its value says how that behaves.
const asServer = "LSP_TEST_SERVER"

func TestMain(m *testing.M) {
	if how := os.Getenv(asServer); how != "" {
		lsptest.Serve(os.Stdin, os.Stdout, lsptest.Parse(how))
		os.Exit(3)
	}
	leaktest.Main(m)
}

// toy is the server of the tests.
var toy = Server{Name: "toy", Languages: map[string]string{".toy": "toy"}, Marks: []string{"toy.mod"}, Imports: "toy.sort"}

// A piped is a server in this process.
type piped struct {
	net.Conn
	done  chan struct{}
	ended atomic.Bool
}

// Why says that it ended.
func (p *piped) Why() string { return "it ended" }

// Close ends it.
func (p *piped) Close() error {
	p.ended.Store(true)
	err := p.Conn.Close()
	<-p.done
	return err
}

// inProcess starts servers in this process, and counts them.
type inProcess struct {
	mu  sync.Mutex
	all []*piped
}

func (l *inProcess) launch(how lsptest.How) Launch {
	return func(context.Context, Server) (Process, error) {
		ours, theirs := net.Pipe()
		p := &piped{Conn: ours, done: make(chan struct{})}
		go func() {
			defer close(p.done)
			defer func() { _ = theirs.Close() }()
			lsptest.Serve(theirs, theirs, how)
		}()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, p)
		return p, nil
	}
}

func (l *inProcess) started() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// A rig is a root with a server.
type rig struct {
	t    testing.TB
	dir  string
	pool *Pool
	inProcess
	how lsptest.How
}

func newRig(t testing.TB, how lsptest.How, limits Limits) *rig {
	limits.Soon = time.Minute // however slow this machine is
	r := &rig{t: t, dir: leaktest.Dir(t), how: how,
		pool: New([]Server{toy}, limits, slog.New(slog.NewTextHandler(io.Discard, nil)))}
	t.Cleanup(r.pool.Close)
	return r
}

func (r *rig) place() Place { return Place{Owner: "o", Root: r.dir} }

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// write writes a file that changed long ago, so that no test depends on the clock.
func (r *rig) write(name, content string) {
	r.t.Helper()
	must(r.t, os.WriteFile(r.path(name), []byte(content), 0o600))
}

func (r *rig) use() *Client {
	r.t.Helper()
	c, done, err := r.pool.Use(r.t.Context(), r.place(), toy, r.launch(r.how))
	must(r.t, err)
	done()
	return c
}

// doc is a file as it is on the disk.
func (r *rig) doc(name string) Document {
	r.t.Helper()
	text, _, ok := readText(r.path(name))
	if !ok {
		r.t.Fatal("cannot read " + name)
	}
	return Document{r.path(name), text}
}

// check writes a file and asks about it.
func (r *rig) check(name, content string) Verdict {
	r.t.Helper()
	old, _ := os.ReadFile(r.path(name))
	r.write(name, content)
	return r.pool.Check(r.t.Context(), r.place(), toy,
		Question{For: "me", Edits: []Edit{{r.path(name), old, []byte(content)}}})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) shown(all []Location) string {
	var out []string
	for _, l := range all {
		rel, err := filepath.Rel(r.dir, l.Path)
		must(r.t, err)
		out = append(out, fmt.Sprintf("%s:%d:%d", filepath.ToSlash(rel), l.At.Line, l.At.Character))
	}
	return strings.Join(out, " ")
}

func found(v Verdict) string {
	var out []string
	for _, f := range v.Found {
		for _, p := range f.Items {
			out = append(out, fmt.Sprintf("%s:%d:%d: %s", filepath.Base(f.Path), p.Line, p.Character, p.Message))
		}
	}
	if v.Late {
		out = append(out, "late")
	}
	return strings.Join(out, ", ")
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

const pair = "/* \U0001f600 */ fn big\n"

// Positions count UTF-16 units, whatever the line ends and the mark before the text.
func TestAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, lsptest.How{}, Limits{})
	r.write("a.toy", "\ufefffn a\r\n  call big\r\n  call gone\r\nimport z\r\nimport LOUD\r\n")
	must(t, os.Mkdir(r.path("b c"), 0o700))
	r.write("b c/d#.toy", "fn d\n  call a\n  call a\n")
	r.write("big.toy", strings.ReplaceAll(pair, "/* \U0001f600 */ fn", "fn \U0001f600"))
	c := r.use()
	ctx, a := t.Context(), r.doc("a.toy")
	got, err := c.Definition(ctx, a, Position{1, 8})
	must(t, err)
	expect(t, "definition", r.shown(got), "big.toy:0:6") // fn, a blank, two units, a blank
	got, err = c.References(ctx, a, Position{0, 3})
	must(t, err)
	expect(t, "references", r.shown(got), "a.toy:0:3 b c/d#.toy:1:7 b c/d#.toy:2:7")
	got, err = c.Implementation(ctx, a, Position{0, 3})
	must(t, err)
	expect(t, "implementation", r.shown(got), "a.toy:0:3")
	text, err := c.Hover(ctx, a, Position{0, 3})
	must(t, err)
	expect(t, "hover", text, "```toy\nfn a\n```")
	symbols, err := c.Outline(ctx, a)
	must(t, err)
	expect(t, "outline", fmt.Sprint(symbols), fmt.Sprintf("[{{%s {0 3}} a function  0}]", a.Path))
	symbols, err = c.Symbols(ctx, "big")
	must(t, err)
	expect(t, "symbols", fmt.Sprint(symbols), fmt.Sprintf("[{{%s {0 6}} big function  0}]", r.path("big.toy")))
	symbols, err = c.Callable(ctx, a, Position{0, 3})
	must(t, err)
	expect(t, "callable", fmt.Sprint(symbols), fmt.Sprintf("[{{%s {0 3}} a function a.toy 0}]", a.Path))
	near, err := c.Callers(ctx, a, Position{0, 3})
	must(t, err)
	expect(t, "callers", fmt.Sprint(len(near), near[0].Name, " ", r.shown(near[0].Calls)), "2d b c/d#.toy:1:7")
	near, err = c.Callees(ctx, a, Position{0, 3})
	must(t, err)
	expect(t, "callees", fmt.Sprint(len(near), near[0].Name, " ", r.shown(near[0].Calls)), "1big a.toy:1:7")
	problems, err := c.Problems(ctx, a)
	must(t, err)
	expect(t, "problems", fmt.Sprint(problems), "[{2 7 1 undefined: gone  toy} {4 7 2 LOUD is loud loud }]")
	_, err = c.Rename(ctx, a, Position{9, 9}, "x")
	if e, ok := errors.AsType[*RequestError](err); !ok || e.Text != "no identifier here" {
		t.Errorf("rename of nothing: %v", err)
	}
}

// What changes beside the server is told before each request: files that are open, that are not, new ones and those
// that are gone.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, lsptest.How{}, Limits{})
	r.write("a.toy", "fn a\n  call b\n  call c\n")
	r.write("b.toy", "fn b\n")
	c := r.use()
	problems := func(want string) {
		t.Helper()
		got, err := c.Problems(t.Context(), r.doc("a.toy"))
		must(t, err)
		expect(t, "problems", fmt.Sprint(got), want)
	}
	problems("[{2 7 1 undefined: c  toy}]")
	r.write("c.toy", "fn c\n")
	problems("[]")
	must(t, os.Remove(r.path("b.toy")))
	problems("[{1 7 1 undefined: b  toy}]")
	r.write("c.toy", "fn c\nfn b\n")
	problems("[]")
	_, err := c.Outline(t.Context(), r.doc("c.toy")) // it is open now
	must(t, err)
	r.write("c.toy", "fn b\n")
	problems("[{2 7 1 undefined: c  toy}]")
	must(t, os.Remove(r.path("c.toy")))
	problems("[{1 7 1 undefined: b  toy} {2 7 1 undefined: c  toy}]")
	if c.docs.open[r.path("c.toy")] != nil {
		t.Error("a file that is gone is still open")
	}
	for i := range maxOpen + 10 {
		name := fmt.Sprintf("f%d.toy", i)
		r.write(name, fmt.Sprintf("fn f%d\n", i))
		_, err := c.Outline(t.Context(), r.doc(name))
		must(t, err)
	}
	if n := len(c.docs.open); n > maxOpen {
		t.Errorf("%d files are open", n)
	}
}

// An edit is told of the errors that it made, and of no others; they are gone after the repair.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, how := range []lsptest.How{{}, {Push: true}} {
		r := newRig(t, how, Limits{})
		r.write("a.toy", "fn a\n  call old\n")
		expect(t, "without a server", found(r.check("a.toy", "fn a\n  call old\n  call new\n")), "")
		r.write("a.toy", "fn a\n  call old\n")
		r.use()
		expect(t, "a new error", found(r.check("a.toy", "\n\nfn a\n  call old\n  call new\n")), "a.toy:4:7: undefined: new")
		expect(t, "known now", found(r.check("a.toy", "fn a\n  call old\n  call new\n")), "")
		expect(t, "once more", found(r.check("a.toy", "fn a\n  call old\n  call new\n  call new\n")), "a.toy:3:7: undefined: new")
		expect(t, "repaired", found(r.check("a.toy", "fn a\n  call old\n")), "")
		expect(t, "created", found(r.check("b.toy", "fn b\n  call a\n  call none\n")), "b.toy:2:7: undefined: none")
		r.write("c.toy", "fn none\n")
		expect(t, "others helped", found(r.check("b.toy", "fn b\n  call a\n  call none\n\n")), "")
		must(t, os.Remove(r.path("b.toy")))
		v := r.pool.Check(t.Context(), r.place(), toy, Question{Edits: []Edit{{r.path("b.toy"), []byte("fn b\n"), nil}}})
		expect(t, "removed", found(v), "")
		expect(t, "another owner", found(r.pool.Check(t.Context(), Place{Owner: "p", Root: r.dir}, toy,
			Question{Edits: []Edit{{r.path("b.toy"), nil, []byte("fn b\n  call x\n")}}})), "")
		if n := r.started(); n != 1 {
			t.Errorf("%d servers were started", n)
		}
	}
}

// Several files of one edit are compared with what they were before all of it.
func TestCheckTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, lsptest.How{}, Limits{})
	edits := make([]Edit, 0, 2*maxChecked)
	for i := range 2 * maxChecked {
		name, old := fmt.Sprintf("f%02d.toy", i), fmt.Sprintf("fn f%d\n  call f%d\n", i, i)
		now := fmt.Sprintf("fn g%d\n  call f%d\n", i, i)
		r.write(name, now)
		edits = append(edits, Edit{r.path(name), []byte(old), []byte(now)})
	}
	r.use()
	v := r.pool.Check(t.Context(), r.place(), toy, Question{Edits: edits})
	if len(v.Found) != maxChecked || v.Late {
		t.Errorf("%s", found(v))
	}
}

// A server whose diagnostics name no content says nothing about an edit.
func TestAnonymousDiagnostics(t *testing.T) {
	t.Parallel()
	r := newRig(t, lsptest.How{Anonymous: true}, Limits{})
	r.write("a.toy", "fn a\n  call b\n")
	c := r.use()
	if _, err := c.Problems(t.Context(), r.doc("a.toy")); !errors.Is(err, ErrNoReport) {
		t.Errorf("got %v", err)
	}
	expect(t, "an edit", found(r.check("a.toy", "fn a\n  call c\n")), "")
}

// What is found after an edit was answered is told later, unless the file was changed since.
func TestLate(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		r := &rig{t: t, dir: dir, how: lsptest.How{Slow: true, Go: goOn}, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		r.use()
		begun := time.Now()
		expect(t, "at once", found(r.check("a.toy", "fn a\n  call b\n")), "late")
		if took := time.Since(begun); took != 500*time.Millisecond {
			t.Errorf("an edit waited %v", took)
		}
		expect(t, "not yet", found(Verdict{Found: r.pool.Late("me")}), "")
		close(goOn)
		synctest.Wait()
		expect(t, "of another", found(Verdict{Found: r.pool.Late("you")}), "")
		expect(t, "later", found(Verdict{Found: r.pool.Late("me")}), "a.toy:1:7: undefined: b")
		expect(t, "once", found(Verdict{Found: r.pool.Late("me")}), "")
	})
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		r := &rig{t: t, dir: dir, how: lsptest.How{Slow: true, Go: goOn}, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		must(t, os.Remove(r.path("a.toy")))
		r.use()
		expect(t, "at once", found(r.check("a.toy", "fn a\n  call b\n")), "late")
		close(goOn)
		synctest.Wait()
		r.write("a.toy", "fn a\n")
		expect(t, "of an older content", found(Verdict{Found: r.pool.Late("me")}), "")
	})
}

// The errors of an edit that was answered too early are told with the next edit of that file, and beside one of another.
func TestLateWithNext(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		r := &rig{t: t, dir: dir, how: lsptest.How{Slow: true, Go: goOn}, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		r.use()
		expect(t, "at once", found(r.check("a.toy", "fn a\n  call b\n")), "late")
		expect(t, "again", found(r.check("a.toy", "fn a\n  call b\n\n")), "late")
		expect(t, "beside", found(r.check("b.toy", "fn c\n  call d\n")), "late")
		close(goOn)
		synctest.Wait()
		expect(t, "the next", found(r.check("a.toy", "fn a\n  call b\n\n\n")), "a.toy:1:7: undefined: b")
		expect(t, "told", found(r.check("a.toy", "fn a\n  call b\n")), "")
		expect(t, "later", found(Verdict{Found: r.pool.Late("me")}), "b.toy:1:7: undefined: d")
		expect(t, "told, too", found(r.check("b.toy", "fn c\n  call d\n\n")), "")
		synctest.Wait()
		if len(r.pool.owed) != 0 {
			t.Errorf("%v is owed", r.pool.owed)
		}
	})
}

// What a server that reads the project first is asked meanwhile waits, and is no reason to end it.
func TestReading(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		r := &rig{t: t, dir: dir, how: lsptest.How{Reads: true, Go: goOn}, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		r.write("a.toy", "fn a\n")
		c := r.use()
		synctest.Wait()
		for range 2 * maxHung {
			begun := time.Now()
			if _, err := c.Hover(t.Context(), r.doc("a.toy"), Position{0, 3}); !errors.Is(err, ErrReading) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took != requestTime {
				t.Errorf("it waited %v", took)
			}
		}
		if _, err := c.Symbols(t.Context(), "a"); !errors.Is(err, ErrReading) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Problems(t.Context(), r.doc("a.toy")); !errors.Is(err, ErrReading) {
			t.Errorf("got %v", err)
		}
		expect(t, "an edit", found(r.check("a.toy", "fn a\n  call b\n")), "late")
		var wait sync.WaitGroup
		wait.Go(func() {
			if got, err := c.Definition(t.Context(), r.doc("a.toy"), Position{0, 3}); err != nil || len(got) != 1 {
				t.Errorf("%v %v", got, err)
			}
		})
		synctest.Wait()
		close(goOn)
		wait.Wait()
		synctest.Wait()
		expect(t, "later", found(Verdict{Found: r.pool.Late("me")}), "a.toy:1:7: undefined: b")
	})
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		defer close(goOn)
		r := &rig{t: t, dir: dir, how: lsptest.How{Reads: true, Go: goOn}, pool: New([]Server{toy}, Limits{}, nil)}
		c := r.use()
		synctest.Wait()
		go r.pool.Close()
		if _, err := c.Hover(t.Context(), r.doc("a.toy"), Position{0, 3}); !errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

// One request without an answer does not end a server, a second one does.
func TestHung(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, how: lsptest.How{Hang: "textDocument/hover"}, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		r.write("a.toy", "fn a\n")
		c := r.use()
		for n := range maxHung {
			if !c.alive() {
				t.Fatalf("it was ended after %d requests", n)
			}
			if _, err := c.Hover(t.Context(), r.doc("a.toy"), Position{0, 3}); !errors.Is(err, ErrTime) {
				t.Errorf("got %v", err)
			}
			synctest.Wait()
		}
		if c.alive() {
			t.Error("it was not ended")
		}
	})
}

// A server that nobody uses is ended after ten minutes, and started anew when it is needed.
func TestIdle(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		c, done, err := r.pool.Use(t.Context(), r.place(), toy, r.launch(r.how))
		must(t, err)
		time.Sleep(25 * time.Minute)
		if !c.alive() {
			t.Fatal("a server that is used was ended")
		}
		done()
		time.Sleep(9 * time.Minute)
		if r.use() != c {
			t.Error("it was started anew")
		}
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if c.alive() || r.started() != 1 || !r.all[0].ended.Load() {
			t.Error("it goes on")
		}
		if len(r.pool.slots) != 0 {
			t.Error("it is still known")
		}
		r.use()
		if r.started() != 2 {
			t.Error("it was not started anew")
		}
	})
}

// Of more servers than may run, the one that nobody used for the longest time gives way.
func TestMostServers(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, pool: New([]Server{toy}, Limits{Servers: 2}, nil)}
		defer r.pool.Close()
		use := func(owner string) (*Client, func(), error) {
			time.Sleep(time.Second)
			return r.pool.Use(t.Context(), Place{Owner: owner, Root: dir}, toy, r.launch(r.how))
		}
		one, done, err := use("1")
		must(t, err)
		two, done2, err := use("2")
		must(t, err)
		done2()
		three, done3, err := use("3")
		must(t, err)
		synctest.Wait()
		if !one.alive() || two.alive() || !three.alive() {
			t.Error("the wrong one was ended")
		}
		_, _, err = use("4")
		if e, ok := errors.AsType[*UnavailableError](err); !ok || e.Why != "2 language servers are working already" {
			t.Errorf("got %v", err)
		}
		done()
		done3()
	})
}

// A server that breaks is started anew three times, and again when that was long ago.
func TestRestarts(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	must(t, os.WriteFile(filepath.Join(dir, "a.toy"), []byte("fn a\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, how: lsptest.How{Crash: "textDocument/hover"}, pool: New([]Server{toy}, Limits{}, nil)}
		defer r.pool.Close()
		for range 4 {
			c := r.use()
			if _, err := c.Hover(t.Context(), r.doc("a.toy"), Position{}); !errors.Is(err, ErrLost) {
				t.Errorf("got %v", err)
			}
			synctest.Wait()
		}
		_, _, err := r.pool.Use(t.Context(), r.place(), toy, r.launch(r.how))
		if e, ok := errors.AsType[*UnavailableError](err); !ok || !strings.Contains(e.Why, "it broke 4 times within 10m0s") {
			t.Errorf("got %v", err)
		}
		if r.started() != 4 {
			t.Errorf("it was started %d times", r.started())
		}
		time.Sleep(11 * time.Minute)
		r.use()
	})
}

// A server that misbehaves costs its caller an error in time, and an edit half a second at most.
func TestRogues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how   lsptest.How
		start string // of the error of Use; "": it starts
		ask   error
	}{
		"crashes at start": {lsptest.How{Crash: "initialize"}, "it ended", nil},
		"hangs at start":   {lsptest.How{Hang: "initialize"}, "it did not shake hands within 1m0s", nil},
		"says too much":    {lsptest.How{Huge: true}, "a message has more than 33554432 bytes", nil},
		"speaks otherwise": {lsptest.How{Garbage: true}, "it does not speak the protocol", nil},
		"crashes":          {lsptest.How{Crash: "textDocument/hover"}, "", ErrLost},
		"hangs":            {lsptest.How{Hang: "textDocument/hover"}, "", ErrTime},
		"crashes at edits": {lsptest.How{Crash: "textDocument/diagnostic"}, "", nil},
		"hangs at edits":   {lsptest.How{Hang: "textDocument/diagnostic"}, "", nil},
		"floods":           {lsptest.How{Flood: true, Pause: time.Millisecond}, "", nil},
		"floods at edits":  {lsptest.How{Flood: true, Pause: time.Millisecond, Hang: "textDocument/diagnostic"}, "", nil},
	} {
		dir := leaktest.Dir(t)
		must(t, os.WriteFile(filepath.Join(dir, "a.toy"), []byte("fn a\n"), 0o600))
		synctest.Test(t, func(t *testing.T) {
			r := &rig{t: t, dir: dir, how: c.how, pool: New([]Server{toy}, Limits{}, nil)}
			defer r.pool.Close()
			begun := time.Now()
			client, done, err := r.pool.Use(t.Context(), r.place(), toy, r.launch(c.how))
			if c.start != "" {
				if err == nil || !strings.Contains(err.Error(), c.start) {
					t.Errorf("%s: got %v", name, err)
				}
				if took := time.Since(begun); took > startTime+5*time.Second {
					t.Errorf("%s: that took %v", name, took)
				}
				return
			}
			must(t, err)
			done()
			begun = time.Now()
			if _, err := client.Hover(t.Context(), r.doc("a.toy"), Position{}); !errors.Is(err, c.ask) {
				t.Errorf("%s: got %v", name, err)
			}
			if took := time.Since(begun); took > requestTime+time.Second {
				t.Errorf("%s: a request took %v", name, took)
			}
			begun = time.Now()
			r.check("a.toy", "fn a\n  call b\n")
			if took := time.Since(begun); took > 500*time.Millisecond {
				t.Errorf("%s: an edit took %v", name, took)
			}
			for range 2 * maxChecks { // however many came before
				begun = time.Now()
				r.check("a.toy", fmt.Sprintf("fn a\n  call b%d\n", r.started()))
				if took := time.Since(begun); took > 500*time.Millisecond {
					t.Errorf("%s: an edit took %v", name, took)
				}
			}
		})
	}
}

// A request that is given up is cancelled, and others go on.
func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t, lsptest.How{Hang: "textDocument/hover"}, Limits{})
	r.write("a.toy", "fn a\n")
	c := r.use()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go cancel(enough)
	if _, err := c.Hover(ctx, r.doc("a.toy"), Position{}); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if got, err := c.Definition(t.Context(), r.doc("a.toy"), Position{0, 3}); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
}

// Edits of a server are made on the text that it has seen, and on no other.
func TestRename(t *testing.T) {
	t.Parallel()
	r := newRig(t, lsptest.How{}, Limits{})
	r.write("a.toy", "fn a\r\n  call a\r\n")
	r.write("b.toy", pair[len("/* \U0001f600 */ "):]+"  call a\n")
	c := r.use()
	all, err := c.Rename(t.Context(), r.doc("a.toy"), Position{0, 3}, "\U0001f600x")
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("got %v", all)
	}
	got, err := all[0].Apply(r.doc("a.toy").Text)
	must(t, err)
	expect(t, "a", got, "fn \U0001f600x\r\n  call \U0001f600x\r\n")
	got, err = all[1].Apply(r.doc("b.toy").Text)
	must(t, err)
	expect(t, "b", got, "fn big\n  call \U0001f600x\n")
	if _, err := all[0].Apply("fn a\n"); !errors.Is(err, ErrOlder) {
		t.Errorf("got %v", err)
	}
	must(t, os.WriteFile(r.path("b.toy"), []byte("other\n"), 0o600))
	if _, err := all[1].Apply(r.doc("b.toy").Text); !errors.Is(err, ErrOlder) {
		t.Errorf("got %v", err)
	}
}

// Imports are put in order, by an edit or by a command whose edit is caught, also where the server does not offer that
// command as an action.
func TestOrganizeImports(t *testing.T) {
	t.Parallel()
	for _, how := range []lsptest.How{{}, {Command: true}, {Hidden: true}} {
		r := newRig(t, how, Limits{})
		r.write("a.toy", "import b\nimport a\nfn a\n")
		all, err := r.use().OrganizeImports(t.Context(), r.doc("a.toy"))
		must(t, err)
		if len(all) != 1 {
			t.Fatalf("got %v", all)
		}
		got, err := all[0].Apply(r.doc("a.toy").Text)
		must(t, err)
		expect(t, "imports", got, "import a\nimport b\nfn a\n")
	}
	r := newRig(t, lsptest.How{Files: true}, Limits{})
	r.write("a.toy", "fn a\n")
	if _, err := r.use().Rename(t.Context(), r.doc("a.toy"), Position{0, 3}, "b"); !errors.Is(err, errFiles) {
		t.Errorf("got %v", err)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	at := func(a, b, c, d int, text string) Replacement {
		return Replacement{Position{a, b}, Position{c, d}, text}
	}
	for _, c := range []struct {
		text  string
		edits []Replacement
		want  string
	}{
		{"ab\ncd", []Replacement{at(1, 0, 1, 1, "X"), at(0, 1, 0, 2, "Y")}, "aY\nXd"},
		{"ab\r\ncd", []Replacement{at(0, 2, 1, 0, "-")}, "ab-cd"},
		{"ab\r\ncd", []Replacement{at(0, 9, 0, 9, "-")}, "ab-\r\ncd"}, // behind the end of a line is its end
		{"a\rb", []Replacement{at(1, 0, 1, 1, "c")}, "a\rc"},
		{"\U0001f600b", []Replacement{at(0, 2, 0, 3, "c")}, "\U0001f600c"},
		{"\U0001f600b", []Replacement{at(0, 1, 0, 3, "c")}, "error"}, // within a character
		{"a\n", []Replacement{at(1, 0, 1, 0, "b\n")}, "a\nb\n"},
		{"a", []Replacement{at(1, 0, 1, 0, "\nb")}, "a\nb"}, // the line after the last
		{"a", []Replacement{at(2, 0, 2, 0, "b")}, "error"},
		{"a", []Replacement{at(0, 1, 0, 0, "b")}, "error"},
		{"abc", []Replacement{at(0, 0, 0, 2, "x"), at(0, 1, 0, 3, "y")}, "error"},
		{"abc", []Replacement{at(0, 1, 0, 1, "x"), at(0, 1, 0, 1, "y")}, "axybc"}, // inserts at one place keep their order
		{"", []Replacement{at(0, 0, 0, 0, "x")}, "x"},
	} {
		got, err := Replace(c.text, c.edits)
		if err != nil {
			got = "error"
		}
		expect(t, fmt.Sprintf("%q %v", c.text, c.edits), got, c.want)
	}
	if n := Units("a\U0001f600é"); n != 4 {
		t.Errorf("%d units", n)
	}
	for n, want := range []string{"a", "", "b", "", "no"} {
		got, ok := Line("a\r\n\rb\n", n)
		if !ok {
			got = "no"
		}
		expect(t, fmt.Sprint("line ", n), got, want)
	}
}

func openRoot(t *testing.T, dir string) *os.Root {
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// Requests of a server that never stops are answered or end it; memory stays bounded, and so does what others wait.
func TestFlood(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	for _, how := range []lsptest.How{{Flood: true}, {Deaf: "textDocument/hover"}} {
		r := newRig(t, how, Limits{})
		r.write("a.toy", "fn a\n")
		c, done, err := r.pool.Use(t.Context(), r.place(), toy, func(ctx context.Context, _ Server) (Process, error) {
			return Start(ctx, sandbox.Cmd{Path: self, Env: []string{asServer + "=" + how.Text(), "GOCOVERDIR=" + r.dir},
				Dir: openRoot(t, r.dir)}, nil, slog.New(slog.DiscardHandler))
		})
		if err != nil {
			continue // it was ended while it shook hands
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _ = c.Hover(ctx, r.doc("a.toy"), Position{}) // whatever it says
		cancel()
		for i := range 3 {
			r.check("a.toy", fmt.Sprintf("fn a%s\n", strings.Repeat("x", i<<18)))
		}
		done()
		r.pool.Close()
	}
}

package control

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/state"
)

// fake are grants in memory. It is safe for concurrent use.
type fake struct {
	mu  sync.Mutex
	all []oauth.Grant
	err error
}

func (f *fake) Grants(context.Context) ([]oauth.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all), f.err
}

func (f *fake) RevokeGrant(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(g oauth.Grant) bool { return g.ID == id })
	if i < 0 {
		return oauth.ErrNoGrant
	}
	f.all = slices.Delete(f.all, i, i+1)
	return nil
}

func three() *fake {
	grant := func(id, who string) oauth.Grant {
		return oauth.Grant{ID: id, Decision: oauth.Decision{Principal: who, Scopes: auth.Read | auth.Write, MaxMode: "default",
			Roots: []string{"/srv/a"}}, Client: oauth.ClientInfo{Name: "App", Host: "app.example"},
			Created: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), Expires: time.Date(2026, 12, 23, 10, 0, 0, 0, time.UTC)}
	}
	return &fake{all: []oauth.Grant{grant("g3", "alice"), grant("g2", "bob"), grant("g1", "alice")}}
}

// serve answers in a directory until the test is over. log gets what is logged.
func serve(t *testing.T, dir string, g Grants, log *bytes.Buffer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := Serve(ctx, dir, g, slog.New(slog.NewTextHandler(log, nil))); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	for range 1000 { // until it listens; the first attempt finds it nearly always
		if c, err := net.Dial("unix", socketIn(dir)); err == nil {
			_ = c.Close()
			return stop
		}
		runtime.Gosched()
	}
	for range 400 {
		if c, err := net.DialTimeout("unix", socketIn(dir), time.Second); err == nil {
			_ = c.Close()
			return stop
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal("nobody listens")
	return stop
}

func ids(rows []Row) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wish Wish
		want []string
	}{
		"ids": {Wish{IDs: []string{"g1", "g2", "unknown"}}, []string{"g2", "g1"}}, "principal": {Wish{Principal: "alice"}, []string{"g3", "g1"}},
		"all": {Wish{All: true}, []string{"g3", "g2", "g1"}}, "nothing": {Wish{}, []string{}}, "unknown": {Wish{IDs: []string{"x"}}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, g := leaktest.Public(t), three()
			serve(t, dir, g, &bytes.Buffer{})
			desk, err := Open(t.Context(), dir, state.OnDisk, state.Options{})
			must(t, err)
			defer desk.Close()
			rows, err := desk.List(t.Context())
			must(t, err)
			if r := rows[0]; len(rows) != 3 || r.ID != "g3" || r.Principal != "alice" || r.Client != (Client{"App", "app.example"}) ||
				!slices.Equal(r.Scopes, []string{"mcp:read", "mcp:write"}) || r.MaxMode != "default" || !slices.Equal(r.Roots, []string{"/srv/a"}) {
				t.Errorf("%+v", rows)
			}
			ended, err := desk.Revoke(t.Context(), c.wish)
			if err != nil || !slices.Equal(ids(ended), c.want) || len(g.all) != 3-len(c.want) {
				t.Errorf("ended %v, %v", ids(ended), err)
			}
		})
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	dir := leaktest.Public(t)
	stop := serve(t, dir, three(), &bytes.Buffer{})
	desk, err := Open(t.Context(), dir, state.OnDisk, state.Options{})
	must(t, err)
	_, err = desk.List(t.Context()) // it connects before the socket has its mode, and is answered behind that
	must(t, errors.Join(err, desk.Close()))
	info, err := os.Lstat(socketIn(dir))
	must(t, err)
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o", info.Mode().Perm())
	}
	if err := Serve(t.Context(), dir, three(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	stop()
	if _, err := os.Lstat(socketIn(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	must(t, os.WriteFile(socketIn(dir), nil, 0o600))
	if err := Serve(t.Context(), dir, three(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("over a file: %v", err)
	}
}

// The socket of a killed server does not stop the next one.
func TestDeadSocket(t *testing.T) {
	t.Parallel()
	dir := leaktest.Public(t)
	l, err := net.Listen("unix", socketIn(dir))
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
	desk, err := Open(t.Context(), dir, state.OnDisk, state.Options{})
	must(t, err)
	if rows, err := desk.List(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
	must(t, desk.Close())
	serve(t, dir, three(), &bytes.Buffer{})
}

// Errors of the server reach the command, and its log.
func TestServerFails(t *testing.T) {
	t.Parallel()
	dir, g, log := leaktest.Public(t), three(), &bytes.Buffer{}
	g.err = errors.New("state store not reachable")
	stop := serve(t, dir, g, log)
	desk, err := Open(t.Context(), dir, state.OnDisk, state.Options{})
	must(t, err)
	if _, err := desk.List(t.Context()); err == nil || err.Error() != "state store not reachable" {
		t.Errorf("list: %v", err)
	}
	if _, err := desk.Revoke(t.Context(), Wish{All: true}); err == nil {
		t.Error("revoked")
	}
	must(t, desk.Close())
	stop()
	if !strings.Contains(log.String(), "not reachable") {
		t.Errorf("log %s", log)
	}
}

// Without a server the Store is opened, if there is one.
func TestWithoutServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	desk, err := Open(t.Context(), filepath.Join(dir, "never"), state.OnDisk, state.Options{})
	must(t, err)
	if rows, err := desk.List(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
	if ended, err := desk.Revoke(t.Context(), Wish{All: true}); err != nil || len(ended) != 0 {
		t.Errorf("%v, %v", ended, err)
	}
	must(t, desk.Close())
	if found, _ := os.ReadDir(dir); len(found) != 0 {
		t.Errorf("a look left %v", found)
	}

	store, err := state.Open(t.Context(), "embedded:", state.Options{Dir: dir})
	must(t, err)
	if _, err := Open(t.Context(), dir, state.OnDisk, state.Options{}); err == nil || !strings.Contains(err.Error(), "auth.mode") {
		t.Errorf("beside a server without sign-in: %v", err)
	}
	must(t, store.Close())
	desk, err = Open(t.Context(), dir, state.OnDisk, state.Options{})
	must(t, err)
	if rows, err := desk.List(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
	if ended, err := desk.Revoke(t.Context(), Wish{IDs: []string{"abc"}}); err != nil || len(ended) != 0 {
		t.Errorf("%v, %v", ended, err)
	}
	must(t, desk.Close())
	store, err = state.Open(t.Context(), "embedded:", state.Options{Dir: dir}) // it was given back
	must(t, err)
	must(t, store.Close())
}

// A data directory may have a longer path than a socket.
func TestDeepDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only there a handle stands for the directory")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	must(t, os.Mkdir(dir, 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Serve(ctx, dir, three(), slog.New(slog.DiscardHandler)) }()
	for found := false; !found; runtime.Gosched() {
		desk, err := Open(t.Context(), dir, state.OnDisk, state.Options{})
		must(t, err)
		rows, err := desk.List(t.Context())
		must(t, err)
		must(t, desk.Close())
		found = len(rows) == 3
	}
	cancel()
	must(t, <-done)
}

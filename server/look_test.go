package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/server/auth/limits"
	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/server/team"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A countingStore notes the operations of a Store: GetAll as one, however many keys it reads.
type countingStore struct {
	state.Store

	mu            sync.Mutex
	reads, writes []string
}

func (s *countingStore) note(list *[]string, op string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if tokens := strings.Split(key, "."); len(tokens) > 3 { // after the family, the principal and the session
			keys[i] = strings.Join(tokens[3:], ".")
		}
	}
	*list = append(*list, fmt.Sprint(op, keys))
}

func (s *countingStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	s.note(&s.reads, "Get", key)
	return s.Store.Get(ctx, key)
}

func (s *countingStore) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	s.note(&s.reads, "GetAll", append([]string(nil), keys...)...)
	return s.Store.GetAll(ctx, keys...)
}

func (s *countingStore) Keys(ctx context.Context, prefix string) ([]string, error) {
	s.note(&s.reads, "Keys", prefix)
	return s.Store.Keys(ctx, prefix)
}

func (s *countingStore) Tail(ctx context.Context, stream string, after uint64, most int) ([][]byte, uint64, error) {
	s.note(&s.reads, "Tail", stream)
	return s.Store.Tail(ctx, stream, after, most)
}

func (s *countingStore) Set(ctx context.Context, key string, value []byte) error {
	s.note(&s.writes, "Set", key)
	return s.Store.Set(ctx, key, value)
}

func (s *countingStore) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	s.note(&s.writes, "Swap", key)
	return s.Store.Swap(ctx, key, value, rev)
}

func (s *countingStore) Delete(ctx context.Context, key string) error {
	s.note(&s.writes, "Delete", key)
	return s.Store.Delete(ctx, key)
}

func (s *countingStore) Append(ctx context.Context, stream string, value []byte) error {
	s.note(&s.writes, "Append", stream)
	return s.Store.Append(ctx, stream, value)
}

// taken returns what was noted, and begins anew.
func (s *countingStore) taken() (reads, writes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads, writes = s.reads, s.writes
	s.reads, s.writes = nil, nil
	return reads, writes
}

// TestStoreOperations: a call of read_file asked the Store 7 times, one after the other, and one of edit_file 8 times.
// With a Store in another process each of them is a round trip.
func TestStoreOperations(t *testing.T) {
	t.Parallel()
	most := map[string]struct{ reads, writes int }{
		"read_file":    {2, 1}, // the cells; what was seen of the file
		"edit_file":    {4, 1}, // the cells; the mode behind the gate; what was seen, before and after
		"run_shell":    {1, 2}, // the cells, of a command that only reads; the job begins and ends
		"run_readonly": {1, 2},
	}
	// The first call of a session asks what sessions before it have left, too: files that were seen, jobs and how far they
	// were read, and what the connection subscribes to.
	const first = 4
	calls := func(t *testing.T, store *countingStore, work string, call func(name, args string) string) {
		t.Helper()
		for i := range 2 {
			must(t, os.WriteFile(filepath.Join(work, fmt.Sprintf("%d.txt", i)), []byte("a\nb\nc\n"), 0o600))
		}
		for i, c := range []struct{ name, args, want string }{
			{"read_file", `{"file_path":"0.txt"}`, "\tc"}, {"read_file", `{"file_path":"1.txt"}`, "\tc"},
			{"read_file", `{"file_path":"0.txt","offset":2}`, "\tc"},
			{"edit_file", `{"file_path":"0.txt","old_string":"b","new_string":"x"}`, "Edited"},
			{"edit_file", `{"file_path":"0.txt","old_string":"x","new_string":"y"}`, "Edited"},
			// A command that may write costs more: it is looked for what it changed of each file that was seen.
			{"run_shell", `{"command":"ls"}`, "1.txt"}, {"run_shell", `{"command":"ls -a"}`, "1.txt"},
			{"run_readonly", `{"command":"ls"}`, "1.txt"}, {"read_file", `{"file_path":"0.txt"}`, "\ty"},
		} {
			store.taken()
			text := call(c.name, c.args)
			reads, writes := store.taken()
			want := most[c.name]
			if i == 0 {
				want.reads += first
			}
			if len(reads) > want.reads || len(writes) > want.writes {
				t.Errorf("%s %s: %d reads %q, %d writes %q, want %d and %d", c.name, c.args, len(reads), reads, len(writes), writes,
					want.reads, want.writes)
			}
			if len(reads) == 0 || !strings.HasPrefix(reads[0], "GetAll[cell.cwd ") {
				t.Errorf("%s %s: the call does not begin with its cells: %q", c.name, c.args, reads)
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("%s %s: %q lacks %q", c.name, c.args, text, c.want)
			}
		}
	}
	counted := func(store *countingStore) func(state.Store) state.Store {
		return func(s state.Store) state.Store {
			store.Store = s
			return store
		}
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		store := new(countingStore)
		f := start(t, setup{silent: true, settings: map[string]string{
			"permissions.mode": "bypassPermissions", "sandbox.policy": "off",
		}})
		f.server.engines.Store = counted(store)(f.server.engines.Store)
		must(t, f.Hello())
		calls(t, store, f.work, func(name, args string) string { return f.Must(t, name, args) })
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		store := new(countingStore)
		x := serveHTTP(t, siteSetup{store: counted(store), settings: map[string]string{
			"permissions.mode": "acceptEdits", "sandbox.policy": "off",
		}})
		c := x.client("").Hello()
		calls(t, store, x.work, func(name, args string) string { return c.Does(name, args) })
	})
}

// A waitingContext does something when a call first waits for its end.
type waitingContext struct {
	context.Context
	waits func()
}

func (c *waitingContext) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

// TestLocatedInTurn: a call that waits for others of its principal runs where the session is when they are done, and with
// what it has chosen then. It was located before it waited.
func TestLocatedInTurn(t *testing.T) {
	t.Parallel()
	where := fixtureTool("where", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
		return tool.Result{Text: fmt.Sprint(env.Space.Cwd(), " ", env.Client.MaxRunes)}, nil
	})
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{where}})
	s := x.server
	who := team.LocalPrincipal(s.cfg)
	who.ID, who.Quota = "busy", limits.Quota{ConcurrentCalls: 1}
	limiter := s.team.Porter.Limits(who)
	at, err := s.team.Tenants.Of(team.LocalPrincipal(s.cfg))
	must(t, err)
	env, bad := jsonrpc.Scan([]byte(replaytest.CallLine(1, "where", `{}`, "")))
	if bad != nil {
		t.Fatal(bad.Message)
	}
	key, err := sessions.HTTPKey(who, env, "handle-one", "")
	must(t, err)
	state, release, err := s.sessions.Acquire(key, at)
	must(t, err)
	t.Cleanup(release)

	before := limiter.Arrive()
	if ok, err := before.Wait(t.Context()); !ok {
		t.Fatal(err)
	}
	sub := filepath.Join(x.work, "sub")
	must(t, os.Mkdir(sub, 0o700))
	work, _ := s.calls.Serve(request.Request{Envelope: env, Tenant: at, Session: key, Peer: noPeer{},
		Caller: request.Caller{Limits: limiter}})
	finish := sync.OnceFunc(func() { // the call before does this, and is done
		_, err := state.Cwd.Change(t.Context(), func(string) (string, error) { return sub, nil })
		must(t, err)
		_, err = state.Choices.Change(t.Context(), func(session.Choices) (session.Choices, error) {
			return session.Choices{ResultCap: 4_321}, nil
		})
		must(t, err)
		before.Leave()
	})
	a := work(&waitingContext{t.Context(), finish})
	if want := sub + " 4321"; a.Err != nil || !strings.Contains(string(a.Result), want) {
		t.Errorf("got %s, %v, want %s", a.Result, a.Err, want)
	}
}

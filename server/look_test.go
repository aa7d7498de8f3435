package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/server/state"
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
		f.server.engines.store = counted(store)(f.server.engines.store)
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

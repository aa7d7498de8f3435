package endpoint

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/state"
)

// testSigner is a signer with a clock that stands still until it is moved.
func testSigner(t *testing.T, store state.Store, ttl time.Duration) (g *Signer, clock *time.Time) {
	t.Helper()
	g, err := NewSigner(t.Context(), store, ttl)
	must(t, err)
	now := time.Unix(1_800_000_000, 999_999_999)
	g.now = func() time.Time { return now }
	return g, &now
}

func memoryStore(t testing.TB) state.Store {
	t.Helper()
	store := state.NewMemory(state.MemoryOptions{})
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// TestSessionIDs: an id has one form, never repeats, and is good for one principal, one use and one time.
func TestSessionIDs(t *testing.T) {
	t.Parallel()
	const ttl = 24 * time.Hour
	g, now := testSigner(t, memoryStore(t), ttl)
	form := regexp.MustCompile(`^ch1\.[0-9a-z]{6}\.[a-z2-7]{26}\.[a-z2-7]{26}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := g.id(labelSession, "alice")
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("id %s: form %v, seen before %v", id, form.MatchString(id), seen[id])
		}
		seen[id] = true
	}

	id := g.id(labelSession, "alice")
	for name, try := range map[string]struct {
		label, who string
		want       bool
	}{
		"its own":                    {labelSession, "alice", true},
		"another principal":          {labelSession, "bob", false},
		"the same one in capitals":   {labelSession, "Alice", false},
		"nobody":                     {labelSession, "", false},
		"a name that begins with it": {labelSession, "alice|", false},
		"another use":                {labelSSE, "alice", false},
		"no use":                     {"", "alice", false},
	} {
		if got := g.valid(try.label, try.who, id); got != try.want {
			t.Errorf("%s: valid is %v", name, got)
		}
	}
	if strings.HasPrefix(labelSSE, labelSession) || strings.HasPrefix(labelSession, labelSSE) {
		t.Error("one label begins with the other, so a principal could be named as the rest")
	}

	issued := now.Truncate(time.Second)
	for _, try := range []struct {
		at   time.Time
		want bool
	}{
		{issued.Add(ttl), true},
		{issued.Add(ttl + 1), false},
		{issued.Add(1000 * ttl), false},
		{issued.Add(-time.Minute), true}, // the clock of another machine, or one that was set
	} {
		*now = try.at
		if got := g.valid(labelSession, "alice", id); got != try.want {
			t.Errorf("%v after it was issued: valid is %v", try.at.Sub(issued), got)
		}
	}
}

// TestTamperedIDs changes every byte of an id, and cuts and lengthens it everywhere.
func TestTamperedIDs(t *testing.T) {
	t.Parallel()
	g, _ := testSigner(t, memoryStore(t), time.Hour)
	id := g.id(labelSession, "alice")
	if !g.valid(labelSession, "alice", id) {
		t.Fatal("an id of its own is not valid")
	}
	try := func(what, bad string) {
		if bad != id && g.valid(labelSession, "alice", bad) {
			t.Errorf("%s: %q passes for %q", what, bad, id)
		}
	}
	for at := range len(id) {
		for c := range 256 {
			try("another byte", id[:at]+string([]byte{byte(c)})+id[at+1:])
		}
		try("cut", id[:at])
		try("without its beginning", id[at+1:])
		try("without a byte", id[:at]+id[at+1:])
		for _, c := range []string{"0", "a", ".", "+", "-", "_", " ", "\x00", "=", "é"} {
			try("a byte more", id[:at]+c+id[at:])
		}
	}
	for _, more := range []string{"", "a", "=", ".", ".a", "\n", id, "." + id} {
		try("longer", id+more)
	}
	parts := strings.Split(id, ".")
	try("in capitals", strings.ToUpper(id))
	try("time in capitals", strings.Join([]string{parts[0], strings.ToUpper(parts[1]), parts[2], parts[3]}, "."))
	try("time with a zero before it", strings.Join([]string{parts[0], "0" + parts[1], parts[2], parts[3]}, "."))
	other := strings.Split(g.id(labelSession, "alice"), ".")
	try("the random part of another", strings.Join([]string{parts[0], parts[1], other[2], parts[3]}, "."))
	try("the mac of another", strings.Join([]string{parts[0], parts[1], parts[2], other[3]}, "."))
	for _, nothing := range []string{"", ".", "...", "ch1...", "ch1.", strings.Repeat("a", 10_000), strings.Repeat(".", 10_000)} {
		try("nothing", nothing)
	}
}

// TestSharedKey: all servers on one Store have one key, also after a restart. A server on another Store has another.
func TestSharedKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() state.Store {
		t.Helper()
		s, err := state.Open(t.Context(), "embedded:", state.Options{Dir: dir, Timeout: 2 * time.Second, SessionLife: time.Hour, MaxBytes: 1 << 20})
		must(t, err)
		return s
	}
	store := open()
	g, _ := testSigner(t, store, time.Hour)
	id := g.id(labelSession, "alice")
	must(t, store.Close())

	store = open()
	defer store.Close()
	again, _ := testSigner(t, store, time.Hour)
	if !again.valid(labelSession, "alice", id) {
		t.Error("an id is not valid after a restart")
	}
	stranger, _ := testSigner(t, memoryStore(t), time.Hour)
	if stranger.valid(labelSession, "alice", id) {
		t.Error("an id is valid with the key of another Store")
	}
}

// TestFirstKey: of many processes that start at once with an empty Store, all take the same key.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	store := memoryStore(t)
	keys := make([][]byte, 16)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			<-start
			g, err := NewSigner(t.Context(), store, time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = g.key
		})
	}
	close(start)
	all.Wait()
	for _, k := range keys {
		if len(k) != 32 || !bytes.Equal(k, keys[0]) {
			t.Errorf("keys differ: %x and %x", k, keys[0])
		}
	}
}

// A lossyStore loses every write, or answers nothing.
type lossyStore struct {
	state.Store
	err error
}

func (f lossyStore) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, f.err }

// TestNoKey: without a key that the Store keeps there are no ids, since none would be valid after a restart.
func TestNoKey(t *testing.T) {
	t.Parallel()
	store := memoryStore(t)
	if _, err := NewSigner(t.Context(), lossyStore{store, state.ErrDown}, time.Hour); !errors.Is(err, state.ErrDown) {
		t.Errorf("with a Store that is down: %v", err)
	}
	if _, err := NewSigner(t.Context(), lossyStore{store, nil}, time.Hour); err == nil {
		t.Error("a key that is not kept is used")
	}
	// A key of another length is invalid, and is not overwritten: another program may use it.
	other := memoryStore(t)
	name := state.Key(state.Keyring, "session")
	must(t, other.Set(t.Context(), name, []byte("short")))
	if _, err := NewSigner(t.Context(), other, time.Hour); err == nil {
		t.Error("a key of 5 bytes is taken")
	}
	if key, _, err := other.Get(t.Context(), name); err != nil || string(key) != "short" {
		t.Errorf("the key is now %q: %v", key, err)
	}
}

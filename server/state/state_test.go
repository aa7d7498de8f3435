package state

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, s Store, key, want string) uint64 {
	t.Helper()
	v, rev, err := s.Get(t.Context(), key)
	must(t, err)
	if string(v) != want || (rev == 0) != (want == "") {
		t.Fatalf("%s holds %q at revision %d, want %q", key, v, rev, want)
	}
	return rev
}

// Only a global family may be read whole, also one that the suite does not name.
func TestFamiliesReadWhole(t *testing.T) {
	t.Parallel()
	s := NewMemory(MemoryOptions{})
	for _, f := range families(time.Hour) {
		if _, err := s.Keys(t.Context(), f.Name); errors.Is(err, ErrKey) == f.Global {
			t.Errorf("Keys(%q): %v", f.Name, err)
		}
	}
}

// A key that comes and goes for ever must not grow the list of what will end.
func TestMemoryDeadlinesStayFew(t *testing.T) {
	t.Parallel()
	m := newMemory(MemoryOptions{})
	for range 1000 {
		must(t, m.Set(t.Context(), "sess.a", []byte("v")))
		must(t, m.Delete(t.Context(), "sess.a"))
	}
	if len(m.table.ends) > 1 {
		t.Errorf("%d deadlines for one key", len(m.table.ends))
	}
}

func TestMemoryClock(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := NewMemory(MemoryOptions{Now: func() time.Time { return now }})
	must(t, m.Set(t.Context(), "lease.a", []byte("v")))
	now = now.Add(30*time.Second - 1)
	wantValue(t, m, "lease.a", "v")
	now = now.Add(1)
	wantValue(t, m, "lease.a", "")
}

func TestHash(t *testing.T) {
	t.Parallel()
	if got := Hash("local"); got != "25bf8e1a2393f1108d37029b3df55932" || checkKey(Key(Session, got, Hash(""))) != nil {
		t.Errorf("Hash = %s", got)
	}
}

// FuzzKey checks that no text reaches another scope, whatever a room passes as a key.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "..", "a..b", "\x00", "a.b.c.d.e.f.g.h", "é"} {
		f.Add(s)
	}
	m := NewMemory(MemoryOptions{})
	f.Fuzz(func(t *testing.T, key string) {
		s := Scoped(m, "sess.p.own")
		if err := s.Set(t.Context(), key, []byte("v")); err != nil {
			if !errors.Is(err, ErrKey) {
				t.Fatal(err)
			}
			return
		}
		keys, err := m.Keys(t.Context(), "sess.p.own")
		must(t, err)
		if !slices.Contains(keys, "sess.p.own."+key) {
			t.Fatalf("%q went elsewhere", key)
		}
		must(t, s.Delete(t.Context(), key))
	})
}

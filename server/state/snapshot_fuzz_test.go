package state

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSnapshot starts from any file: damaged, of another session, or written by another program. It is taken if it is
// of this session and not of a later version, and each key of it is one; then the Store has its values, the first of
// each key, and nothing else. Otherwise the Store has some of them at most. What was taken is written as it was read.
func FuzzSnapshot(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"name":"p.s","values":[{"k":"seen.a","b":"eA=="},{"k":"cell.mode","b":"MQ=="},{"k":"seen.a","b":"eXk="}]}`,
		`{"v":1,"name":"p.s","values":[{"k":"seen/../a","b":"eA=="}]}`, `{"v":1,"name":"p.s","values":[{"k":"seen.a","b":null},{"k":"","b":""}]}`,
		`{"v":1,"name":"p.t","values":[{"k":"seen.a","b":"eA=="}]}`, `{"v":2,"name":"p.s","values":{}}`, `{"v":-1,"V":1,"name":"p.s"}`,
		`{"v":1,"name":"p.s","val`, `{"v":1,"name":"p.s","values":[]}{"v":2}`, `null`, `[]`, ``, "\x00",
		`{"v":1,"name":"p.s","values":[{"k":"../p.t.seen.a","b":"eA=="},{"k":"cell.x","b":"?"}]}`,
		`{"v":1,"name":"p.s","values":[{"k":"p.t.seen.a","b":"eA=="},{"k":"` + strings.Repeat("x", 300) + `","b":"eA=="}]}`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		values, err := loadedFrom(t, dir, content)
		want, read := snapshotByHand(content)
		switch {
		case err == nil && !read:
			t.Fatalf("%q was taken as %q", content, values)
		case err == nil && !maps.Equal(values, want):
			t.Fatalf("%q was taken as %q, want %q", content, values, want)
		case err != nil && read && !errors.Is(err, ErrKey) && !errors.Is(err, ErrSize):
			t.Fatalf("%q: %v", content, err)
		}
		for key, value := range values {
			if !read || want[key] != value {
				t.Fatalf("%q: %q is %q, want %q", content, key, value, want[key])
			}
		}
	})
}

// loadedFrom is what a Store has below the prefix of a session that starts from content. It has looked whether that is
// written so that it can be read again, and whether anything else in the Store changed.
func loadedFrom(t *testing.T, dir string, content []byte) (values map[string]string, err error) {
	t.Helper()
	const theirs = "sess.p.t.seen.a"
	load := func(content []byte) (values map[string]string, again []byte, err error) {
		// A file that is cut to nothing and written again is synced by ext4; a new one is not.
		path := filepath.Join(dir, "state.json")
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		all := NewMemory(MemoryOptions{})
		defer func() { _ = all.Close() }() // this one has no watchers
		if err := all.Set(t.Context(), theirs, []byte("x")); err != nil {
			t.Fatal(err)
		}
		p := &Snapshot{store: Scoped(all, snapshotPrefix), o: SnapshotOptions{Dir: dir, Name: "p.s"}}
		err = p.load(t.Context())
		values = map[string]string{}
		keys, keysErr := all.Keys(t.Context(), "sess.p")
		if keysErr != nil {
			t.Fatal(keysErr)
		}
		for _, key := range keys {
			value, _, getErr := all.Get(t.Context(), key)
			name, below := strings.CutPrefix(key, snapshotPrefix+".")
			if getErr != nil || !below && (key != theirs || string(value) != "x") {
				t.Fatalf("%q wrote %q: %q, %v", content, key, value, getErr)
			}
			if below {
				values[name] = string(value)
			}
		}
		again, writeErr := p.content(t.Context())
		if writeErr != nil {
			t.Fatal(writeErr)
		}
		return values, again, err
	}
	values, again, err := load(content)
	if after, _, lost := load(again); lost != nil || !maps.Equal(after, values) {
		t.Fatalf("%q was written as %q, which is read as %q, %v", values, again, after, lost)
	}
	return values, err
}

// snapshotByHand is what a file says, the first of each key; read: it is a file of the session p.s and of this version.
func snapshotByHand(content []byte) (values map[string]string, read bool) {
	var file struct {
		V      int
		Name   string
		Values []struct {
			K string
			B []byte
		}
	}
	if json.Unmarshal(content, &file) != nil || file.V > 1 || file.Name != "p.s" {
		return nil, false
	}
	values = map[string]string{}
	for _, v := range file.Values {
		if _, ok := values[v.K]; !ok && v.B != nil { // without a value it says nothing
			values[v.K] = string(v.B)
		}
	}
	return values, true
}

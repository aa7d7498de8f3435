package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

const snapshotPrefix = "sess.p.s"

// A snapshotRig is a Store of a process, with a snapshot of one session.
type snapshotRig struct {
	*testing.T
	store, all Store
	snapshot   *Snapshot
	failed     []error
}

func openSnapshot(t *testing.T, dir string) *snapshotRig {
	t.Helper()
	r := &snapshotRig{T: t, all: NewMemory(MemoryOptions{})}
	r.store = Scoped(r.all, snapshotPrefix)
	var err error
	r.snapshot, err = OpenSnapshot(t.Context(), r.store, SnapshotOptions{Dir: dir, Name: "p.s", Failed: func(err error) { r.failed = append(r.failed, err) }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *snapshotRig) set(key, value string) {
	r.Helper()
	if err := r.store.Set(r.Context(), key, []byte(value)); err != nil {
		r.Fatal(err)
	}
}

func (r *snapshotRig) holds(key, want string) {
	r.Helper()
	got, _, err := r.store.Get(r.Context(), key)
	if err != nil || string(got) != want {
		r.Errorf("%s holds %q, %v; want %q", key, got, err, want)
	}
}

// end is the end of a process that has the time to end.
func (r *snapshotRig) end() {
	r.Helper()
	if err := errors.Join(r.snapshot.Close(), r.all.Close()); err != nil {
		r.Error(err)
	}
}

// kill is the end of one that has not: only its locks go.
func (r *snapshotRig) kill() {
	r.Helper()
	if r.snapshot.stop != nil {
		r.snapshot.stop()
	}
	if err := r.all.Close(); err != nil {
		r.Error(err)
	}
	r.snapshot.done.Wait()
	if r.snapshot.lock != nil {
		if err := r.snapshot.lock.Unlock(); err != nil {
			r.Error(err)
		}
	}
}

// TestSnapshot: what a killed process remembered is there again when it was 2 s old, or 5 s if it changed all the time;
// what a process that ends remembered, in any case.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "session")
		a := openSnapshot(t, dir)
		a.set("cell.mode", "1")
		time.Sleep(snapshotQuiet - time.Millisecond)
		a.set("seen.a", "read")
		time.Sleep(snapshotQuiet + time.Millisecond)
		a.set("seen.b", "too late")
		synctest.Wait()
		a.kill()

		b := openSnapshot(t, dir)
		b.holds("cell.mode", "1")
		b.holds("seen.a", "read")
		b.holds("seen.b", "")
		for i := range 12 { // never quiet
			b.set("seen.a", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		b.kill()

		c := openSnapshot(t, dir)
		if got, _, _ := c.store.Get(t.Context(), "seen.a"); string(got) < "5" && len(got) == 1 {
			t.Errorf("after 12 s of changes the file has %q", got)
		}
		c.set("seen.c", "last")
		if err := c.store.Delete(t.Context(), "cell.mode"); err != nil {
			t.Fatal(err)
		}
		c.end()

		d := openSnapshot(t, dir)
		d.holds("seen.c", "last")
		d.holds("cell.mode", "")
		d.end()
		if fails := slices.Concat(a.failed, b.failed, c.failed, d.failed); len(fails) > 0 {
			t.Error(fails)
		}
		info, err := os.Stat(filepath.Join(dir, "state.json"))
		if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("the file is %v, %v", info, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// What does not last is neither written nor, from a file that has it, given back.
func TestSnapshotLasting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lasting := func(key string, value []byte) []byte {
		switch key {
		case "cell.gone":
			return nil
		case "cell.less":
			return value[:1]
		}
		return value
	}
	for _, filter := range []func(string, []byte) []byte{nil, lasting} { // the writer; the reader always has it
		a := &snapshotRig{T: t, all: NewMemory(MemoryOptions{})}
		a.store = Scoped(a.all, snapshotPrefix)
		var err error
		if a.snapshot, err = OpenSnapshot(t.Context(), a.store, SnapshotOptions{Dir: dir, Name: "p.s", Lasting: filter}); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"cell.gone", "cell.less", "cell.all"} {
			a.set(key, `"value"`)
		}
		a.end()
		raw, err := os.ReadFile(filepath.Join(dir, "state.json"))
		if err != nil || strings.Contains(string(raw), "cell.gone") != (filter == nil) {
			t.Errorf("the file has %s, %v", raw, err)
		}
		b := &snapshotRig{T: t, all: NewMemory(MemoryOptions{})}
		b.store = Scoped(b.all, snapshotPrefix)
		if b.snapshot, err = OpenSnapshot(t.Context(), b.store, SnapshotOptions{Dir: dir, Name: "p.s", Lasting: lasting}); err != nil {
			t.Fatal(err)
		}
		b.holds("cell.gone", "")
		b.holds("cell.less", `"`)
		b.holds("cell.all", `"value"`)
		b.end()
	}
}

// Two processes with one session: the second starts from what is there and writes nothing, so that none of both undoes what
// the other wrote.
func TestSnapshotOfTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	openSnapshot(t, dir).end()
	a := openSnapshot(t, dir)
	a.set("seen.a", "of the first")
	b := openSnapshot(t, dir)
	b.set("seen.a", "of the second")
	b.end()
	a.end()
	c := openSnapshot(t, dir)
	c.holds("seen.a", "of the first")
	c.end()
}

// A test whether a snapshot is in use holds its lock for a moment. A session that began just then stopped writing its
// snapshot, without an error.
func TestSnapshotBesideALook(t *testing.T) {
	t.Parallel()
	for _, removes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "session")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			look := snapshotLock(dir)
			if got, err := look.TryLock(); !got || err != nil {
				t.Fatal(got, err)
			}
			go func() {
				time.Sleep(lockPause / 2) // of the bubble: the lock is asked for before
				if err := look.Unlock(); err != nil {
					t.Error(err)
				}
				if removes {
					if err := os.RemoveAll(dir); err != nil {
						t.Error(err)
					}
				}
			}()
			a := openSnapshot(t, dir)
			a.set("seen.a", "kept")
			a.end()
			start := time.Now()
			b := openSnapshot(t, dir)
			if waited := time.Since(start); waited > 0 {
				t.Errorf("a lock that is free was waited for: %s", waited)
			}
			b.holds("seen.a", "kept")
			b.end()
		})
	}
}

// What a Store has already, as when a session was idle and comes back, is newer than the file.
func TestSnapshotKeepsWhatIsNewer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := openSnapshot(t, dir)
	a.set("seen.a", "old")
	a.end()
	b := &snapshotRig{T: t, all: NewMemory(MemoryOptions{})}
	b.store = Scoped(b.all, snapshotPrefix)
	b.set("seen.a", "new")
	var err error
	if b.snapshot, err = OpenSnapshot(t.Context(), b.store, SnapshotOptions{Dir: dir, Name: "p.s"}); err != nil {
		t.Fatal(err)
	}
	b.holds("seen.a", "new")
	b.end()
}

func TestSnapshotThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		newer   bool
	}{
		"damaged":         {content: `{"v":1,"name":"p.s","val`},
		"of another name": {content: `{"v":1,"name":"p.t","values":[{"k":"seen.a","b":"eA=="}]}`},
		"of a bad key":    {content: `{"v":1,"name":"p.s","values":[{"k":"seen/../a","b":"eA=="}]}`},
		"newer":           {content: `{"v":2,"name":"p.s","values":{}}`, newer: true},
		"newer in form":   {content: `{"v":2,"name":"p.s","values":[]}`, newer: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "state.json")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			r := openSnapshot(t, dir)
			r.holds("seen.a", "")
			if len(r.failed) != 1 || errors.Is(r.failed[0], ErrNewer) != c.newer {
				t.Errorf("told was %v", r.failed)
			}
			r.set("seen.a", "x")
			r.end()
			now, err := os.ReadFile(path)
			if err != nil || (string(now) == c.content) != c.newer {
				t.Errorf("the file is %s, %v", now, err)
			}
		})
	}
}

// Where a link stands, nothing is read through it and nothing written.
func TestSnapshotIsNoLink(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	content := `{"v":1,"name":"p.s","values":[{"k":"seen.a","b":"eA=="}]}`
	if err := os.WriteFile(other, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "state.json")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("links are not to be had here: ", err)
	}
	r := openSnapshot(t, dir)
	r.set("seen.b", "y")
	r.end()
	if runtime.GOOS != "windows" {
		if len(r.failed) != 1 {
			t.Errorf("told was %v", r.failed)
		}
		if now, err := os.ReadFile(other); err != nil || string(now) != content {
			t.Errorf("behind the link is %s, %v", now, err)
		}
	}
}

// What is too much loses the read states that were noted first, and nothing else.
func TestSnapshotHasALimit(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	dir := t.TempDir()
	a := openSnapshot(t, dir)
	a.set("cell.todos", "first of all")
	large := strings.Repeat("x", maxValue)
	for i := range maxSnapshot/maxValue + 3 {
		a.set(fmt.Sprintf("seen.f%03d", i), large)
	}
	a.set("seen.f000", large) // noted again
	a.end()
	b := openSnapshot(t, dir)
	b.holds("cell.todos", "first of all")
	b.holds("seen.f000", large)
	b.holds("seen.f001", "")
	b.holds(fmt.Sprintf("seen.f%03d", maxSnapshot/maxValue+2), large)
	b.end()
	if fails := slices.Concat(a.failed, b.failed); len(fails) > 0 {
		t.Error(fails)
	}
}

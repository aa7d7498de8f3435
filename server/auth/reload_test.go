package auth

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A record is a log that is read while it is written.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// count is how often something stands in the log.
func (r *record) count(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), what)
}

// watched is a Porter whose Watch runs. Time is that of a synctest bubble.
type watched struct {
	*Porter
	file    *TokenFile
	log     record
	changes atomic.Int64
	stop    func()
}

func watch(t *testing.T, f *TokenFile) *watched {
	t.Helper()
	w := &watched{file: f}
	w.Porter = porter(t, f, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&w.log, nil)) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Watch(ctx, func() { w.changes.Add(1) })
	}()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(w.stop)
	return w
}

// pass lets so much time pass, and what is due in it happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWatch(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, f)
		pass(10 * time.Second)
		if w.changes.Load() != 0 {
			t.Errorf("%d changes of a file that is not there", w.changes.Load())
		}
		_, text := f.add(t, Token{Principal: "ann"})
		if e := refused(t, w.Porter, ask(text)); e == nil {
			t.Error("the token is known before the file was read")
		}
		pass(lookEvery)
		who, err := w.Authenticate(ask(text))
		if err != nil || w.changes.Load() != 1 {
			t.Fatalf("2 s after it was made: %v, %d changes", err, w.changes.Load())
		}
		pass(time.Minute)
		if w.changes.Load() != 1 {
			t.Errorf("%d changes, although the file stays as it is", w.changes.Load())
		}
		if _, err := f.Revoke(func(Token) bool { return true }); err != nil {
			t.Fatal(err)
		}
		pass(lookEvery)
		if w.changes.Load() != 2 || w.Valid(who) || refused(t, w.Porter, ask(text)) == nil {
			t.Errorf("2 s after it was revoked: %d changes, valid: %v", w.changes.Load(), w.Valid(who))
		}
	})
}

// A change that leaves size and time as they were is seen nevertheless, as long as the file is young.
func TestWatchSeesTheSameStamp(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann", Note: "a"})
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, f)
		who, err := w.Authenticate(ask(text))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		f.write(t, strings.Replace(f.read(t), `"ann"`, `"bob"`, 1)) // the same file and length
		if err := os.Chtimes(f.path, time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
		pass(lookEvery)
		if w.Valid(who) || w.changes.Load() != 1 {
			t.Errorf("the change was not seen: %d changes", w.changes.Load())
		}
	})
}

// A file that looks the same and is not young is not read again: reading would be noticed by its missing rights.
func TestLookReadsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	f.add(t, Token{Principal: "ann"})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.path, old, old); err != nil {
		t.Fatal(err)
	}
	p := porter(t, f, nil)
	if !p.seen.settled {
		t.Fatal("an old file is not settled")
	}
	text := f.read(t)
	f.write(t, strings.Replace(text, `"ann"`, `"bob"`, 1))
	if err := os.Chtimes(f.path, old, old); err != nil {
		t.Fatal(err)
	}
	if p.look() {
		t.Error("the file was read although it looks the same")
	}
	f.write(t, strings.Replace(text, `"ann"`, `"bobby"`, 1))
	if !p.look() {
		t.Error("another size does not count")
	}
	if err := os.Chtimes(f.path, old, old); err != nil {
		t.Fatal(err)
	}
	if p.look() || !p.seen.settled {
		t.Error("an old file with the same tokens is not settled")
	}
	if err := os.Chmod(f.path, 0o640); err != nil {
		t.Fatal(err)
	}
	if p.look(); runtime.GOOS != "windows" && p.seen.problem == "" {
		t.Error("another mode does not count: nobody hears that others may read the file")
	}
}

// A file that cannot be read keeps the tokens, and is logged once for each cause.
func TestWatchKeepsTheOld(t *testing.T) {
	t.Parallel()
	onUnix(t)
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann"})
	good := f.read(t)
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, f)
		who, err := w.Authenticate(ask(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			do  func() error
			log string
		}{
			{func() error { f.write(t, good+"{\n"); return nil }, ":2: is not valid JSON"},
			{func() error { f.write(t, good+`{"v":2`+"\n"); return nil }, ":2: is not valid JSON: the object"},
			{func() error { return os.Chmod(f.path, 0o644) }, "has mode 0644"},
		} {
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			if !w.Valid(who) || refused(t, w.Porter, ask(text)) != nil || w.changes.Load() != 0 {
				t.Errorf("%s: the old tokens are gone, %d changes", c.log, w.changes.Load())
			}
			if w.Readable() {
				t.Errorf("%s: the tokens are said to be those of the file", c.log)
			}
			if w.log.count(c.log) != 1 {
				t.Errorf("%s is logged %d times", c.log, w.log.count(c.log))
			}
		}
		// A change of mode alone leaves size and time as they were.
		f.write(t, good)
		pass(lookEvery)
		if w.log.count("has mode 0644") != 1 || w.changes.Load() != 0 {
			t.Error("a file that others may read counts")
		}
		if err := os.Chmod(f.path, 0o600); err != nil {
			t.Fatal(err)
		}
		pass(lookEvery)
		if w.changes.Load() != 0 || !w.Valid(who) { // it says what it said before
			t.Errorf("%d changes", w.changes.Load())
		}
		f.write(t, good+least[:len(least)-1]+"}\n")
		pass(lookEvery)
		if w.changes.Load() != 1 {
			t.Errorf("%d changes after the file is right again", w.changes.Load())
		}
		if !w.Readable() {
			t.Error("the tokens are said not to be those of the file")
		}
	})
}

// Some editors remove a file and write it anew: only what is missing twice is gone.
func TestWatchMissing(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann"})
	good := f.read(t)
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, f)
		who, err := w.Authenticate(ask(text))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := os.Remove(f.path); err != nil {
				t.Fatal(err)
			}
			pass(lookEvery)
			if !w.Valid(who) {
				t.Fatal("gone for a moment, and the token is not valid")
			}
			f.write(t, good)
			pass(lookEvery)
		}
		if w.changes.Load() != 0 {
			t.Errorf("%d changes of a file that came back", w.changes.Load())
		}
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		pass(2 * lookEvery)
		if w.Valid(who) || w.changes.Load() != 1 {
			t.Errorf("the file is gone, valid: %v, %d changes", w.Valid(who), w.changes.Load())
		}
		f.write(t, good)
		pass(lookEvery)
		if !w.Valid(who) || w.changes.Load() != 2 {
			t.Errorf("the file is back, valid: %v, %d changes", w.Valid(who), w.changes.Load())
		}
	})
}

// When a token expires, what is open for it can be ended at once.
func TestWatchSaysWhatExpired(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	synctest.Test(t, func(t *testing.T) {
		f.now = time.Now
		_, text := f.add(t, Token{Principal: "ann", Expires: time.Now().Add(time.Hour)})
		w := watch(t, f)
		who, err := w.Authenticate(ask(text))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Hour - lookEvery)
		if w.changes.Load() != 0 || !w.Valid(who) {
			t.Errorf("before its end: %d changes, valid: %v", w.changes.Load(), w.Valid(who))
		}
		pass(2 * lookEvery)
		if w.changes.Load() != 1 || w.Valid(who) {
			t.Errorf("after its end: %d changes, valid: %v", w.changes.Load(), w.Valid(who))
		}
		pass(time.Minute)
		if w.changes.Load() != 1 {
			t.Errorf("it expires %d times", w.changes.Load())
		}
	})
}

func TestWatchModeNone(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Mode: "none", LocalPeer: "any"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Watch(ctx, nil)
}

// Other processes see when a token was last used, and another server's uses are not lost.
func TestLastUse(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	synctest.Test(t, func(t *testing.T) {
		a, first := f.add(t, Token{Principal: "ann"})
		b, second := f.add(t, Token{Principal: "bob"})
		if used, err := f.LastUse(); err != nil || len(used) != 0 {
			t.Fatalf("got %v (%v)", used, err)
		}
		w, other := watch(t, f), watch(t, f)
		start := time.Now()
		for _, use := range []struct {
			p    *watched
			text string
		}{{w, first}, {other, second}} {
			if e := refused(t, use.p.Porter, ask(use.text)); e != nil {
				t.Fatal(*e)
			}
		}
		if e := refused(t, w.Porter, ask(second[:20])); e == nil {
			t.Fatal("half a token is let in")
		}
		if used := w.lastUse(); len(used) != 1 || !used[a.ID].Equal(start) {
			t.Errorf("in memory: %v", used)
		}
		pass(2 * lookEvery) // one may find the lock taken
		used, err := f.LastUse()
		if err != nil || len(used) != 2 || !used[a.ID].Equal(start) || !used[b.ID].Equal(start) {
			t.Errorf("written: %v (%v), want both at %s", used, err, start)
		}
		// At most once a minute, and at the end.
		if e := refused(t, w.Porter, ask(first)); e != nil {
			t.Fatal(*e)
		}
		later := time.Now()
		pass(30 * time.Second)
		if used, err = f.LastUse(); err != nil || !used[a.ID].Equal(start) {
			t.Errorf("written within a minute: %v (%v)", used, err)
		}
		pass(40 * time.Second)
		if used, err = f.LastUse(); err != nil || !used[a.ID].Equal(later) {
			t.Errorf("after a minute: %v (%v), want %s", used, err, later)
		}
		if e := refused(t, w.Porter, ask(first)); e != nil {
			t.Fatal(*e)
		}
		last := time.Now()
		w.stop()
		if used, err = f.LastUse(); err != nil || !used[a.ID].Equal(last) || !used[b.ID].Equal(start) {
			t.Errorf("after the end: %v (%v), want %s", used, err, last)
		}
		// The next server goes on with it, and forgets tokens that are not there any more.
		next := watch(t, f)
		if used := next.lastUse(); !used[a.ID].Equal(last) {
			t.Errorf("a new server knows %v", used)
		}
		lines := strings.SplitAfter(f.read(t), "\n")
		f.write(t, lines[1])
		pass(lookEvery)
		if e := refused(t, next.Porter, ask(second)); e != nil {
			t.Fatal(*e)
		}
		pass(time.Minute + lookEvery)
		if used, err = f.LastUse(); err != nil || len(used) != 1 || used[b.ID].IsZero() {
			t.Errorf("of a token that is gone: %v (%v)", used, err)
		}
		for _, w := range []*watched{w, other, next} {
			if n := w.log.count("level="); n != 0 {
				t.Errorf("%d lines in the log: %s", n, w.log.text.String())
			}
		}
	})
}

// A last use that cannot be written is logged once, and locks no caller out.
func TestLastUseCannotBeWritten(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann"})
	if err := os.Mkdir(f.path+useSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := f.LastUse(); err == nil || !strings.Contains(err.Error(), filepath.Base(f.path)+useSuffix) {
		t.Errorf("got %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, f)
		for range 5 {
			if e := refused(t, w.Porter, ask(text)); e != nil {
				t.Fatal(*e)
			}
			pass(time.Minute + lookEvery)
		}
		if n := w.log.count("cannot write when"); n != 1 {
			t.Errorf("logged %d times: %s", n, w.log.text.String())
		}
	})
}

// A broken side file is written anew.
func TestLastUseBroken(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	made, text := f.add(t, Token{Principal: "ann"})
	if err := os.WriteFile(f.path+useSuffix, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, f)
		if e := refused(t, w.Porter, ask(text)); e != nil {
			t.Fatal(*e)
		}
		pass(lookEvery)
		if used, err := f.LastUse(); err != nil || used[made.ID].IsZero() {
			t.Errorf("got %v (%v)", used, err)
		}
	})
}

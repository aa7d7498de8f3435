//go:build linux

package search

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/search/index"
)

// remembering gives an engine that learns from the first file on, and trusts stamps as soon as two changes cannot have
// the same one: within a tick of the kernel's clock, which is at most 10 ms.
func remembering(t testing.TB) *Engine {
	t.Helper()
	e := New(Options{Memory: 64 << 20})
	e.care = care{dirs: 20 * time.Millisecond, files: 20 * time.Millisecond, least: 1, calm: time.Hour}
	t.Cleanup(func() { closeEngine(t, e) })
	return e
}

// learned searches until nothing is left to be learned of d: that takes as long as its files are too young.
func learned(t testing.TB, e *Engine, d dir, files int) {
	t.Helper()
	late := time.Now().Add(hang)
	for e.Stats().Files < files {
		if time.Now().After(late) {
			t.Fatalf("%+v is all that was learned, want %d files", e.Stats(), files)
		}
		ask(t, e, d, GrepQuery{Pattern: "nothing of that kind"})
		e.Settle()
	}
}

func ask(t testing.TB, e *Engine, d dir, q GrepQuery) GrepAnswer {
	t.Helper()
	if q.Place.Dir == nil {
		q.Place = d.at("")
	}
	a, err := e.Grep(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// same holds an answer of an engine that remembers against that of one that does not.
func same(t testing.TB, e *Engine, d dir, what string, q GrepQuery) {
	t.Helper()
	fresh := New(Options{})
	defer closeEngine(t, fresh)
	got, want := ask(t, e, d, q), ask(t, fresh, d, q)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s, %q: got %+v\nwant %+v", what, q.Pattern, got, want)
	}
}

// Nothing is read or remembered before the first search, and nothing of a tree that is small.
func TestNothingIsLearnedUnasked(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "b"))
	e := New(Options{Memory: 1 << 20})
	defer closeEngine(t, e)
	if s := e.Stats(); s.Dirs != 0 {
		t.Errorf("before any search: %+v", s)
	}
	ask(t, e, d, GrepQuery{Pattern: "x"})
	e.Settle()
	if s := e.Stats(); s.Files != 0 {
		t.Errorf("two files were learned: %+v", s)
	}
}

// A file that was written a moment ago is read each time: a second write may leave its stamp as it was.
func TestYoungFilesAreNotLearned(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "sub/b"))
	e := New(Options{Memory: 1 << 20})
	defer closeEngine(t, e)
	e.care.least = 1
	for range 3 {
		ask(t, e, d, GrepQuery{Pattern: "nothing"})
		e.Settle()
	}
	if s := e.Stats(); s.Files != 0 || s.Dirs != 0 {
		t.Errorf("learned %+v of files that are younger than a second", s)
	}
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(d.path, "a"), future, future); err != nil {
		t.Fatal(err)
	}
	e.care = care{least: 1}
	learned(t, e, d, 1)
	if s := e.Stats(); s.Files != 1 {
		t.Errorf("%+v: a file with a time to come was learned", s)
	}
}

// Rules are asked by each query, whatever another query has learned; and what nobody may see is not read again.
func TestRulesAreNotRemembered(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"open": "treasure\n", "secret": "treasure\n", "dir/deep": "treasure\n"})
	e := remembering(t)
	learned(t, e, d, 3)
	q := GrepQuery{Pattern: "treasure", Scope: Scope{Skip: func(p string) bool { return strings.HasSuffix(p, "secret") || strings.HasSuffix(p, "dir") }}}
	if a := ask(t, e, d, q); !slices.Equal(d.names(a.Files), []string{"open"}) || a.NFiles != 1 {
		t.Errorf("found %v of %d, want the one that may be seen", d.names(a.Files), a.NFiles)
	}
	sub, err := d.root.OpenRoot("dir")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	q = GrepQuery{Pattern: "treasure", Scope: Scope{Place: Place{Dir: sub, Path: d.path + "/dir"}}}
	if a := ask(t, e, d, q); a.NFiles != 1 || a.Coverage.Searched != 1 {
		t.Errorf("a root below the other: %+v, want what is in it alone", a)
	}
	same(t, e, d, "a root below another", q)
}

// What a search notes of files that it does not find anything in is noted as well where they are not read.
func TestNotesOfKnownFiles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some text\n", 60_000)
	d := newDir(t, map[string]string{"text": "one treasure\n", "binary": "treasure\x00\n", "large": "\x00" + long, "late": long + "\x00", "bom": utf8Mark + strings.Repeat("a", binaryHead-1) + "\x00\n",
		"wide": "\xff\xfet\x00r\x00e\x00a\x00s\x00u\x00r\x00e\x00\n\x00", "empty": "", "long": long})
	e := remembering(t)
	learned(t, e, d, 4) // all but the empty one, the large one, and what must be read each time
	for _, q := range []GrepQuery{{Pattern: "treasure", Mode: Lines}, {Pattern: "treasury", Mode: Lines}, {Pattern: "treasury", Multiline: true}, {Pattern: "[a-z]{40}"}} {
		same(t, e, d, "what is noted", q)
	}
}

// A directory of many names is read anew each time, and no more.
func TestManyNames(t *testing.T) {
	t.Parallel()
	d := newDir(t, nil)
	for i := range 20_000 {
		if err := os.WriteFile(filepath.Join(d.path, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.write(t, "77", "treasure\n")
	e := remembering(t)
	for range 3 {
		if a := ask(t, e, d, GrepQuery{Pattern: "treasure"}); a.NFiles != 1 || a.Coverage.Searched != 20_000 {
			t.Fatalf("found %d in %d files", a.NFiles, a.Coverage.Searched)
		}
		e.Settle()
	}
	if s := e.Stats(); s.Files != 0 || s.Bytes > 1<<20 {
		t.Errorf("%+v is remembered", s)
	}
}

// A root that is removed and made again, also with the names of before, is another one.
func TestRootMadeAgain(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"root/sub/a": "treasure\n", "root/b": "nothing\n"})
	e := remembering(t)
	learned(t, e, d, 2)
	for i := range 20 {
		if err := os.RemoveAll(filepath.Join(d.path, "root")); err != nil {
			t.Fatal(err)
		}
		d.write(t, "root/sub/a", "nothing\n")
		d.write(t, "root/b", "treasure\n")
		if i%2 == 1 {
			d.write(t, "root/sub/a", "treasure\n")
		}
		same(t, e, d, "a root made again", GrepQuery{Pattern: "treasure", Mode: Lines})
		e.Settle()
	}
}

// A file that changes while it is learned is not known.
func TestChangedWhileLearned(t *testing.T) {
	t.Parallel()
	d := newDir(t, nil)
	for i := range 40 {
		d.write(t, fmt.Sprint(i), strings.Repeat("filler\n", 10_000))
	}
	e := remembering(t)
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			f, err := os.OpenFile(filepath.Join(d.path, fmt.Sprint(i%40)), os.O_WRONLY, 0)
			if err == nil {
				_, _ = f.WriteAt([]byte([]string{"filler", "gopher"}[i/40%2]), int64(i%9_000*7))
				_ = f.Close()
			}
		}
	})
	for range 60 {
		ask(t, e, d, GrepQuery{Pattern: "gopher", Mode: Count})
		e.Settle()
	}
	close(done)
	all.Wait()
	same(t, e, d, "after all writes", GrepQuery{Pattern: "gopher", Mode: Count})
}

// A listing that names what is not there, although its directory has not changed, is said to be wrong, and read anew.
func TestWrongListing(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"here": "treasure\n"})
	e := remembering(t)
	learned(t, e, d, 1)
	var st syscall.Stat_t
	if err := syscall.Stat(d.path, &st); err != nil {
		t.Fatal(err)
	}
	poison := func() {
		e.table.Put(&index.Dir{Entries: []index.Listed{{Name: "elsewhere"}}, Stamp: index.Stamp{
			ID: index.ID{Dev: st.Dev, Ino: st.Ino}, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}}, true)
	}
	poison()
	if a := ask(t, e, d, GrepQuery{Pattern: "treasure"}); a.Coverage.Unreadable.N != 1 {
		t.Errorf("coverage %+v, want the file that is not there", a.Coverage)
	}
	same(t, e, d, "the next search", GrepQuery{Pattern: "treasure"})
	poison()
	for _, want := range []int{1, 0} {
		a, err := e.Files(t.Context(), FileQuery{Scope: Scope{Place: d.at("")}, Pattern: "**"})
		if err != nil || a.Coverage.Unreadable.N != want || a.N != 1-want {
			t.Errorf("listing: %+v, %v", a, err)
		}
	}
}

// Sessions share what is remembered, and it is forgotten with the last of them, or when nobody has searched for long.
func TestForgotten(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "b/c"))
	e := remembering(t)
	one := e.Hold()
	defer e.Hold()()
	learned(t, e, d, 2)
	before := e.Stats().Bytes
	for range 20 {
		defer e.Hold()()
		ask(t, e, d, GrepQuery{Pattern: "nothing"})
	}
	if now := e.Stats().Bytes; now != before {
		t.Errorf("20 sessions remember %d bytes, one %d", now, before)
	}
	one()
	one()
	if e.Stats().Files != 2 {
		t.Error("one session of many ended, and all is forgotten")
	}
	last := New(Options{Memory: 1 << 20})
	defer closeEngine(t, last)
	last.care = care{dirs: time.Millisecond, files: time.Millisecond, least: 1}
	release := last.Hold()
	learned(t, last, d, 2)
	release()
	if s := last.Stats(); s.Dirs != 0 || s.Bytes != 0 {
		t.Errorf("the last session ended, and %+v is remembered", s)
	}
}

func TestForgottenAfterAWhile(t *testing.T) {
	d := newDir(t, ofNames("a"))
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Memory: 1 << 20})
		defer closeEngine(t, e)
		ask(t, e, d, GrepQuery{Pattern: "x"})
		e.table.Put(&index.Dir{}, true)
		time.Sleep(forgetAfter - time.Second)
		synctest.Wait()
		if e.Stats().Dirs == 0 {
			t.Fatal("it was forgotten too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := e.Stats(); s.Dirs != 0 {
			t.Errorf("%+v is remembered", s)
		}
	})
}

// A search that is stopped, and an engine that is closed while it learns, leave nothing behind: TestMain looks.
func TestClosedWhileLearning(t *testing.T) {
	t.Parallel()
	d := newDir(t, nil)
	for i := range 300 {
		d.write(t, fmt.Sprintf("%d/%d", i%30, i), strings.Repeat("filler\n", 500))
	}
	for range 10 {
		e := New(Options{Memory: 1 << 20})
		e.care = care{least: 1}
		ask(t, e, d, GrepQuery{Pattern: "nothing"})
		closeEngine(t, e)
	}
}

// Before each file the learner lets queries go first; it ends when the engine is closed, or the last session ends.
func TestLearnerTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Memory: 1 << 20})
		release, h := e.Hold(), newHalt()
		e.enter(h)
		turns := make(chan bool, 1)
		go func() { turns <- e.turn(0) }()
		synctest.Wait()
		select {
		case <-turns:
			t.Error("it reads while a query does")
		default:
		}
		e.leave(h)
		if !<-turns || !e.turn(0) {
			t.Error("no query is at work, and it does not go on")
		}
		release()
		if e.turn(0) {
			t.Error("the last session ended, and it goes on")
		}
		closeEngine(t, e)
		if e.turn(1) {
			t.Error("the engine is closed, and it goes on")
		}
	})
}

// On a file system whose stamps need not tell the truth, nothing is remembered.
func TestOtherFileSystems(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot("/proc/self")
	if err != nil {
		t.Skip("no /proc here; mount it")
	}
	defer root.Close()
	e := remembering(t)
	q := GrepQuery{Pattern: "nothing of that kind", Scope: Scope{Place: Place{Dir: root, Name: "net", Path: "/proc/self/net"}}}
	if _, err := e.Grep(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	e.Settle()
	if s := e.Stats(); s.Dirs != 0 || s.Files != 0 {
		t.Errorf("%+v is remembered of /proc", s)
	}
}

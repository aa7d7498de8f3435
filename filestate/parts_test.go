package filestate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
)

// largeDesk is a desk on which every file over 8 bytes is a large one.
func largeDesk(t *testing.T, change ...func(*filestate.Options)) desk {
	t.Helper()
	d := newDesk(t, change...)
	filestate.LargeFrom(d.l, 8)
	return d
}

// settled makes the stamp of what was seen of a file prove something.
func (d desk) settled(name string) {
	d.Helper()
	if err := filestate.Settle(d.Context(), d.l, d.path(name)); err != nil {
		d.Fatal(err)
	}
}

type span = filestate.Span

const three = "one...\ntwo...\nthree.\n" // three lines of 7 bytes

func TestPartsOfALargeFile(t *testing.T) {
	t.Parallel()
	d := largeDesk(t)
	d.write("a", three)
	head := d.see("a", span{From: 0, To: 7})
	if !strings.HasPrefix(string(head.Version), "r") || !strings.HasSuffix(string(head.Version), ":0-7") || head.Whole {
		t.Errorf("the view of a part is %+v", head)
	}
	if again := d.see("a", span{From: 0, To: 7}); again.Version != head.Version || again.Again != 1 {
		t.Errorf("the same view is %+v after %+v", again, head)
	}
	if other := d.see("a", span{From: 7, To: 9}, span{From: 14, To: 21}); !strings.HasSuffix(string(other.Version), ":14-21") {
		t.Errorf("the version of two ranges is %s, want that of the longest", other.Version)
	}
	if nothing := d.see("a", span{}); nothing.Version != "" {
		t.Errorf("nothing was seen, and its version is %s", nothing.Version)
	}
	if rest := d.see("a", span{From: 9, To: 14}); !rest.Whole {
		t.Errorf("ranges of one content do not add up: %+v", rest)
	}
	d.must(d.put("a", "something else"))
	d.write("a", three)
	if whole := d.see("a"); whole.Version != versionOf(three) || !whole.Whole {
		t.Errorf("a view of all is %+v", whole)
	}
}

// What was shown of a file is as it was, whatever happened elsewhere in it; or it is another file.
func TestLargeFileIsStaleWhereItWasShown(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		now   string
		stale bool
	}{
		"the same":               {three, false},
		"changed elsewhere":      {"one...\nTWO...\nthree.\n", false},
		"grown":                  {three + "four..\n", false},
		"cut behind":             {"one...\ntwo", false},
		"changed where shown":    {"ONE...\ntwo...\nthree.\n", true},
		"moved":                  {"zero..\n" + three, true},
		"cut where it was shown": {"one", true},
		"empty":                  {"", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := largeDesk(t)
			d.write("a", three)
			seen := d.see("a", span{From: 0, To: 7})
			d.write("b", c.now)
			d.rename("b", "a")
			changed, err := d.l.Changed(t.Context(), d.path("a"))
			if err != nil || (len(changed) > 0) != c.stale || c.stale && (changed[0].Now == "" || changed[0].Was != seen.Version) {
				t.Errorf("changed are %v, %v", changed, err)
			}
			_, err = d.change("a", func(old []byte) ([]byte, error) { return append([]byte("new "), old...), nil })
			if c.stale {
				wantStale(t, err)
				d.holds("a", c.now)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// From here on the whole hash is known.
			d.write("a", "new "+strings.ToUpper(c.now))
			_, err = d.edit("a", "new ", "")
			wantStale(t, err)
		})
	}
}

func TestVersionOfAPart(t *testing.T) {
	t.Parallel()
	upper := func(from, to int) func([]byte) ([]byte, error) {
		return func(old []byte) ([]byte, error) {
			return []byte(string(old[:from]) + strings.ToUpper(string(old[from:to])) + string(old[to:])), nil
		}
	}
	cases := map[string]struct {
		before string // what the file holds by then; "": what was seen
		change func([]byte) ([]byte, error)
		whole  bool
		want   error
	}{
		"in the range":              {change: upper(7, 10)},
		"all of the range":          {change: func([]byte) ([]byte, error) { return []byte("one...\nthree.\n"), nil }},
		"more in the range":         {change: func([]byte) ([]byte, error) { return []byte("one...\ntwo\nor more\nthree.\n"), nil }},
		"elsewhere changed":         {before: "ONE...\ntwo...\nthree.\n", change: upper(7, 10)},
		"before the range":          {change: upper(0, 3), want: filestate.ErrPartRead},
		"behind the range":          {change: upper(14, 17), want: filestate.ErrPartRead},
		"across its end":            {change: upper(11, 15), want: filestate.ErrPartRead},
		"the whole file":            {change: upper(0, 21), want: filestate.ErrPartRead},
		"shorter than the rest":     {change: func([]byte) ([]byte, error) { return []byte("one"), nil }, want: filestate.ErrPartRead},
		"other bytes in the range":  {before: "one...\nTWO...\nthree.\n", change: upper(0, 3), want: errStale},
		"another size":              {before: three + "x", change: upper(7, 10), want: errStale},
		"instead of the whole file": {change: upper(7, 10), whole: true, want: filestate.ErrPartRead},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := largeDesk(t)
			d.write("a", three)
			v := d.see("a", span{From: 7, To: 14}).Version
			if c.before != "" {
				d.write("a", c.before)
			}
			fresh := largeDesk(t) // which remembers nothing
			fresh.dir = d.dir
			before := d.read("a")
			got, err := fresh.change("a", c.change, version(v), func(e *filestate.Edit) { e.Whole = c.whole })
			switch {
			case c.want == errStale:
				wantStale(t, err)
			case c.want != nil:
				wantError(t, err, c.want)
			case err != nil || !strings.HasSuffix(string(got.After), "p"):
				t.Errorf("got %+v, %v", got, err)
			}
			if c.want != nil {
				d.holds("a", before)
			}
		})
	}
}

// A model sends several edits in one turn with one version.
func TestVersionOfAPartServesSeveralEdits(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]bool{"of a session": true, "without a session": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := largeDesk(t)
			d.write("a", three)
			v := d.see("a", span{From: 7, To: 14}).Version
			if !memory {
				if err := d.l.Forget(t.Context(), d.path("a")); err != nil {
					t.Fatal(err)
				}
			}
			d.must(d.edit("a", "two", "two and a half", version(v)))
			d.must(d.edit("a", "half", "quarter", version(v)))
			_, err := d.edit("a", "three", "four", version(v))
			wantError(t, err, filestate.ErrPartRead)
			d.must(d.edit("a", "three", "four", unseen))
			d.must(d.edit("a", "quarter", "third", version(v)))
			d.holds("a", "one...\ntwo and a third...\nfour.\n")
			d.write("a", d.read("a")+"x")
			_, err = d.edit("a", "third", "x", version(v))
			wantStale(t, err)
		})
	}
}

func TestMalformedVersions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", three)
	for _, v := range []filestate.Version{
		"r", "r:0-7", "r123456789abc", "r123456789abc:", "r123456789abc:0-0", "r123456789abc:7-3", "r123456789abc:-1-3",
		"r123456789abc:0-7p", "r123456789abc:0-7 ", "r123456789abc:00-7", "r123456789abg:0-7", "123456789abc:0-7",
		"r123456789abc:0-99999999999999999999",
	} {
		_, err := d.edit("a", "one", "two", version(v))
		if !errors.Is(err, filestate.ErrVersion) {
			t.Errorf("%q: got %v, want ErrVersion", v, err)
		}
	}
	_, err := d.edit("a", "one", "two", version("r123456789abc:0-9999999999"))
	wantStale(t, err)
}

// Where a change was made, the whole hash is known, until a read cannot prove that it still holds.
func TestPartsAfterAChange(t *testing.T) {
	t.Parallel()
	d := largeDesk(t)
	d.must(d.put("a", three))
	if s := d.see("a", span{From: 0, To: 7}); !s.Whole || s.Version != versionOf(three) {
		t.Errorf("of a file that was written whole is seen %+v", s)
	}
	d.settled("a")
	d.must(d.edit("a", "one", "two"))
	d.settled("a")
	if s := d.see("a", span{From: 0, To: 7}); !s.Whole {
		t.Errorf("of a file that was seen whole is seen %+v", s)
	}
	for i := 0; ; i++ {
		name, began := fmt.Sprintf("b%d", i), time.Now()
		d.write(name, three)
		d.see(name, span{From: 0, To: 7})
		c := d.must(d.edit(name, "one", "two"))
		s := d.see(name, span{From: 7, To: 14})
		if s.Whole && time.Since(began) > time.Second {
			continue // the machine is slow: the stamp of the edit was old enough to prove something
		}
		if s.Whole || s.Version == c.After || !strings.HasPrefix(string(s.Version), "r") {
			t.Errorf("without a proof all was hashed: %+v", s)
		}
		d.must(d.edit(name, "three", "four"))
		return
	}
}

// Ranges of one content add up, also of one that is too large to be hashed for a view. What was shown of an earlier content
// as a whole is known by its hash alone, so it says nothing of the next one, and only what was shown of that is looked at.
func TestPartsOfAnotherContent(t *testing.T) {
	t.Parallel()
	d := largeDesk(t)
	d.write("a", three)
	if s := d.see("a"); !s.Whole {
		t.Fatalf("seen %+v", s)
	}
	d.write("a", three+"four...\n")
	_, err := d.edit("a", "one", "two")
	wantStale(t, err)
	d.see("a", span{From: 21, To: 25})
	d.write("a", "ONE...\n"+three[7:]+"four...\n")
	d.must(d.edit("a", "two", "2"))
	d.see("a", span{From: 0, To: 3})
	d.write("a", "1NE"+d.read("a")[3:])
	_, err = d.edit("a", "2", "two")
	wantStale(t, err)
}

// A record of before there were parts is still good, and one that holds nothing licenses nothing.
func TestRecordsOfOtherVersions(t *testing.T) {
	t.Parallel()
	m := newMapMemory()
	d := newDesk(t, func(o *filestate.Options) { o.Memory = m })
	d.write("a", three)
	d.see("a", span{From: 0, To: 7})
	rewrite := func(change func(map[string]any)) {
		for key, value := range m.all() {
			var rec map[string]any
			if err := json.Unmarshal(value, &rec); err != nil {
				t.Fatal(err)
			}
			change(rec)
			value, err := json.Marshal(rec)
			if err != nil {
				t.Fatal(err)
			}
			_ = m.Set(t.Context(), key, value) // a map
		}
	}
	for key, value := range m.all() {
		if strings.Contains(string(value), "parts") || strings.Contains(string(value), "ranges") {
			t.Errorf("the record %s of a small file is %s", key, value)
		}
	}
	d.must(d.edit("a", "one", "two"))
	rewrite(func(rec map[string]any) { rec["hash"] = strings.Repeat("0", 64) })
	_, err := d.edit("a", "two", "one")
	wantStale(t, err)
	_, err = d.l.Changed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// The head of a file of 900 MB costs what any head costs: nothing else is read.
// Not parallel: what other tests read must not count.
func TestSawReadsOnlyWhatWasSeen(t *testing.T) {
	d := newDesk(t)
	d.write("a", three)
	if err := os.Truncate(d.path("a"), 900<<20); err != nil {
		lacking(t, "a sparse file of 900 MB: %v", err)
	}
	d.age("a", time.Hour)
	r := d.open("a")
	before := readBytes(t)
	s, err := r.Saw(t.Context(), span{From: 0, To: 21})
	if err != nil || s.Version == "" {
		t.Fatalf("got %+v, %v", s, err)
	}
	if n := readBytes(t) - before; n > 1<<20 {
		t.Errorf("%d bytes were read for a view of 21", n)
	}
}

// lacking skips a test for what a machine may not have. CI has it.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// readBytes returns how many bytes this process has read.
func readBytes(t *testing.T) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		if runtime.GOOS == "linux" {
			lacking(t, "the system does not count what is read: %v", err)
		}
		t.Skipf("the system does not count what is read: %v", err)
	}
	if _, err := fmt.Sscanf(string(b), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// After an edit of a large file its hash is known. Two views, and a third program that touched the file between them, made
// the session forget the first one: an edit went on though what that had shown was changed.
func TestViewsAfterAnEditOfALargeFile(t *testing.T) {
	t.Parallel()
	d := largeDesk(t)
	d.write("a", three)
	d.see("a", span{From: 0, To: 7})
	d.must(d.edit("a", "one", "1"))
	d.settled("a")
	if v := d.see("a", span{From: 0, To: 5}).Version; strings.HasPrefix(string(v), "r") {
		t.Errorf("a view of a content whose hash is known has the version %s", v)
	}
	d.age("a", time.Hour) // the same bytes at another time
	d.see("a", span{From: 5, To: 10})
	d.write("b", "2...\ntwo...\nthree.\n")
	d.rename("b", "a")
	_, err := d.edit("a", "three", "3")
	wantStale(t, err)
}

package filestate_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
)

// TestGuard goes through every row of the table of the guard, each with an edit and with a replacement.
func TestGuard(t *testing.T) {
	const seen, foreign = "one\ntwo\nthree\n", "one\nTWO\nthree\n"
	whole := func(d desk) filestate.Version { return d.see("a").Version }
	part := func(d desk) filestate.Version { return d.see("a", filestate.Span{From: 0, To: 4}).Version }
	none := func(desk) filestate.Version { return "" }
	nothing := func(desk) {}
	outside := func(d desk) { d.write("a", foreign) }
	ownEdit := func(d desk) { d.must(d.edit("a", "two", "2")) }

	type row struct {
		name     string
		before   func(desk) filestate.Version // what the session sees
		between  func(desk)                   // what happens then
		version  string                       // "": none; "seen": the one that was seen; else itself
		more     func(*filestate.Edit)
		edit     error // of an edit; nil: goes on
		replace  error // of a replacement
		absent   bool  // there is no file
		noMemory bool
	}
	stale := errStale
	rows := []row{
		{name: "absent, nothing", before: none, between: nothing, absent: true},
		{name: "absent, a version", before: none, between: nothing, version: "000000000000", absent: true},
		{name: "absent, no memory", before: none, between: nothing, absent: true, noMemory: true},
		{name: "deleted after it was seen", before: whole, between: func(d desk) { os.Remove(d.path("a")) }},
		{name: "unseen", before: none, between: nothing, more: unseen},
		{name: "unseen, no memory", before: none, between: nothing, more: unseen, noMemory: true},
		{name: "unseen, changed", before: whole, between: outside, more: unseen},
		{name: "unseen, version does not fit", before: none, between: nothing, version: "000000000000", more: unseen},
		{name: "version of the disk", before: whole, between: nothing, version: "seen"},
		{name: "version of the disk, part", before: part, between: nothing, version: "seen", replace: filestate.ErrPartRead},
		{name: "version of the disk, nothing remembered", before: forgotten(whole), between: nothing, version: "seen"},
		{name: "version of the disk, no memory", before: none, between: nothing, version: string(versionOf(seen)), noMemory: true},
		{name: "version of the disk, part, no memory", before: none, between: nothing, version: string(versionOf(seen)) + "p", noMemory: true, replace: filestate.ErrPartRead},
		{name: "version that was replaced here", before: whole, between: ownEdit, version: "seen"},
		{name: "version that was replaced here, part", before: part, between: ownEdit, version: "seen", replace: filestate.ErrPartRead},
		{name: "version that was replaced here, then outside", before: whole, between: func(d desk) { ownEdit(d); outside(d) }, version: "seen", edit: stale, replace: stale},
		{name: "version does not fit", before: whole, between: outside, version: "seen", edit: stale, replace: stale},
		{name: "version does not fit though memory does", before: whole, between: nothing, version: "000000000000", edit: stale, replace: stale},
		{name: "version does not fit, no memory", before: none, between: nothing, version: "000000000000p", noMemory: true, edit: stale, replace: stale},
		{name: "no memory", before: none, between: nothing, noMemory: true, edit: filestate.ErrMemory, replace: filestate.ErrMemory},
		{name: "nothing", before: none, between: nothing, edit: filestate.ErrNotRead, replace: filestate.ErrNotRead},
		{name: "nothing shown of it", before: func(d desk) filestate.Version { d.see("a", filestate.Span{}); return "" }, between: nothing,
			edit: filestate.ErrNotRead, replace: filestate.ErrNotRead},
		{name: "another hash", before: whole, between: outside, edit: stale, replace: stale},
		{name: "another hash, part", before: part, between: outside, edit: stale, replace: stale},
		{name: "another time, same bytes", before: whole, between: func(d desk) { d.write("a", seen) }},
		{name: "part", before: part, between: nothing, replace: filestate.ErrPartRead},
		{name: "parts that add up", before: func(d desk) filestate.Version {
			part(d)
			return d.see("a", filestate.Span{From: 8, To: 14}, filestate.Span{From: 3, To: 8}).Version
		}, between: nothing},
		{name: "whole", before: whole, between: nothing},
		{name: "whole, then its own edit", before: whole, between: ownEdit},
		{name: "malformed version", before: whole, between: nothing, version: "abc", edit: filestate.ErrVersion, replace: filestate.ErrVersion},
		{name: "version in capitals", before: whole, between: nothing, version: "ABCDEF012345", edit: filestate.ErrVersion, replace: filestate.ErrVersion},
		{name: "version of something else", before: whole, between: nothing, version: "0123456789abq", edit: filestate.ErrVersion, replace: filestate.ErrVersion},
	}
	for _, r := range rows {
		for _, replace := range []bool{false, true} {
			name, want := r.name+"/edit", r.edit
			if replace {
				name, want = r.name+"/replace", r.replace
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, func(o *filestate.Options) {
					if r.noMemory {
						o.Memory = brokenMemory{}
					}
				})
				if !r.absent {
					d.write("a", seen)
				}
				v := r.before(d)
				r.between(d)
				e := filestate.Edit{File: d.file("a"), Whole: replace, Version: filestate.Version(r.version)}
				if r.version == "seen" {
					e.Version = v
				}
				if r.more != nil {
					r.more(&e)
				}
				calls := 0
				e.Change = func(old []byte) ([]byte, error) {
					calls++
					return append(old, "new\n"...), nil
				}
				old, _ := os.ReadFile(d.path("a"))
				changes, err := d.l.Update(t.Context(), filestate.By{}, e)
				checkGuard(d, want, string(old), changes, err, calls)
			})
		}
	}
}

// errStale stands for a StaleError in tables.
var errStale = errors.New("stale")

func checkGuard(d desk, want error, old string, changes []filestate.Change, err error, calls int) {
	d.Helper()
	switch {
	case want == nil:
		if err != nil || calls != 1 {
			d.Fatalf("got %v after %d calls of Change, want it to go on with one", err, calls)
		}
		d.holds("a", old+"new\n")
		if c := changes[0]; string(c.New) != old+"new\n" || c.After == c.Before || string(c.Old) != old {
			d.Fatalf("the change is reported as %+v", c)
		}
		return
	case want == errStale:
		if e := wantStale(d.T, err); string(e.New) != old || e.Path != d.path("a") || e.Now == e.Was {
			d.Fatalf("the stale error is %+v", e)
		}
	default:
		wantError(d.T, err, want)
	}
	if calls != 0 {
		d.Fatalf("Change was called %d times although the guard refused", calls)
	}
	d.holds("a", old)
}

func forgotten(see func(desk) filestate.Version) func(desk) filestate.Version {
	return func(d desk) filestate.Version {
		v := see(d)
		if err := d.l.Forget(d.Context(), d.path("a")); err != nil {
			d.Fatal(err)
		}
		return v
	}
}

func TestNewFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, durable)
	c := d.must(d.put("x/y/new.txt", "hello\n"))
	if c.Before != "" || c.Old != nil || c.After != versionOf("hello\n") || !c.Durable {
		t.Errorf("the change is %+v", c)
	}
	d.holds("x/y/new.txt", "hello\n")
	// What a session has just written it may edit.
	d.must(d.edit("x/y/new.txt", "hello", "bye"))
	d.must(d.put("x/y/empty.txt", ""))
	d.holds("x/y/empty.txt", "")
}

func TestNewFileOfNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.must(d.change("a", func(old []byte) ([]byte, error) {
		if old != nil {
			t.Error("Change got an old content for a file that does not exist")
		}
		return nil, nil
	}))
	if c.New == nil {
		t.Error("the new content is nil")
	}
	d.holds("a", "")
	d.must(d.change("a", func(old []byte) ([]byte, error) {
		if old == nil {
			t.Error("Change got nil for an empty file")
		}
		return []byte("x"), nil
	}))
}

func TestChangeRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	_, err := d.edit("a", "two", "three")
	if err != errAbsent {
		t.Fatalf("got %v, want the error of Change as it is", err)
	}
	_, err = d.change("x/y/z", func([]byte) ([]byte, error) { return nil, errAbsent })
	wantError(t, err, errAbsent)
	if _, err := os.Stat(d.path("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made for a change that was refused: %v", err)
	}
}

func TestEqualContentIsNotWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\ntwo\n")
	d.see("a")
	before, err := os.Stat(d.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	c := d.must(d.put("a", "one\ntwo\n"))
	after, err := os.Stat(d.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Before != c.After || !c.Durable || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the change is %+v; the same file: %v", c, os.SameFile(before, after))
	}
	if s := d.see("a"); s.Again != 1 {
		t.Errorf("Again is %d after nothing was written, want 1", s.Again)
	}
}

func TestOwnVersionsAreLimited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "0")
	first := d.see("a").Version
	for i := range 16 {
		d.must(d.put("a", strings.Repeat("x", i+1), version(first)))
	}
	d.must(d.put("a", "sixteen were replaced since", version(first)))
	_, err := d.put("a", "and now seventeen", version(first))
	wantStale(t, err)
}

func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var edits []filestate.Edit
	for _, name := range []string{"c", "a", "new/b"} {
		if name != "new/b" {
			d.write(name, name)
			d.see(name)
		}
		edits = append(edits, filestate.Edit{File: d.file(name), Change: func(old []byte) ([]byte, error) {
			return append(old, " and more"...), nil
		}})
	}
	changes, err := d.l.Update(t.Context(), filestate.By{}, edits...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range edits {
		if changes[i].Path != e.File.Path {
			t.Errorf("change %d is of %s, want the order of the edits", i, changes[i].Path)
		}
	}
	d.holds("a", "a and more")
	d.holds("new/b", " and more")
	d.holds("c", "c and more")
}

func TestSeveralErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "a")
	d.write("b", "b")
	d.see("b")
	d.write("b", "B")
	d.see("b")
	same := func(old []byte) ([]byte, error) { return append(old, '!'), nil }
	fail := func([]byte) ([]byte, error) { return nil, errAbsent }
	_, err := d.l.Update(t.Context(), filestate.By{},
		filestate.Edit{File: d.file("a"), Change: same},
		filestate.Edit{File: d.file("b"), Change: fail},
		filestate.Edit{File: d.file("c"), Change: same})
	wantError(t, err, filestate.ErrNotRead)
	wantError(t, err, errAbsent)
	if _, err := os.Stat(d.path("c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made although others failed: %v", err)
	}
}

func TestTwoEditsOfOnePath(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := filestate.Edit{File: d.file("a"), Change: func([]byte) ([]byte, error) { return nil, nil }}
	if _, err := d.l.Update(t.Context(), filestate.By{}, e, e); err == nil {
		t.Fatal("two edits of one path were taken")
	}
}

func TestPartReadSaysWhich(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n\nthree\nfour\nfive")
	d.see("a", filestate.Span{From: 0, To: 5}, filestate.Span{From: 11, To: 16}, filestate.Span{From: 17, To: 20})
	_, err := d.put("a", "all new")
	wantError(t, err, filestate.ErrPartRead)
	e, ok := errors.AsType[*filestate.PartReadError](err)
	if want := []filestate.Lines{{From: 1, To: 2}, {From: 4, To: 4}}; !ok || !slices.Equal(e.Seen, want) || e.Total != 5 {
		t.Fatalf("got %+v, want lines %v of 5", e, want)
	}
}

func TestStaleShowsBothContents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	s := d.see("a")
	d.write("a", "two\n")
	_, err := d.edit("a", "two", "three")
	e := wantStale(t, err)
	if string(e.Old) != "one\n" || string(e.New) != "two\n" || e.Was != s.Version || e.Now != versionOf("two\n") {
		t.Fatalf("got %+v", e)
	}
	if err := d.l.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	d.must(d.put("a", "three\n"))
}

func TestAcceptOfAPart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := strings.Split(strings.Repeat("x\n", 9), "\n")
	for i := range lines {
		lines[i] = strings.Repeat(string(rune('a'+i)), 5)
	}
	d.write("a", strings.Join(lines, "\n"))
	d.see("a", filestate.Span{From: 0, To: 12})
	lines[1], lines[8] = "changed", "changed, too"
	d.write("a", strings.Join(lines, "\n"))
	_, err := d.put("a", "all")
	if err := d.l.Accept(t.Context(), wantStale(t, err)); err != nil {
		t.Fatal(err)
	}
	_, err = d.put("a", "all")
	e, ok := errors.AsType[*filestate.PartReadError](err)
	if want := []filestate.Lines{{From: 1, To: 2}}; !ok || !slices.Equal(e.Seen[:1], want) {
		t.Fatalf("got %v, want a part read that begins with lines %v", err, want)
	}
	d.must(d.edit("a", "changed", "again"))
}

func TestAcceptOfAFileShownWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *filestate.Options) { o.Contents = filestate.NewContents(1) })
	d.write("a", "one\n")
	d.see("a", filestate.Span{From: 0, To: 1})
	d.write("a", "two\n")
	_, err := d.edit("a", "two", "three")
	e := wantStale(t, err)
	if e.Old != nil {
		t.Fatal("an old content is held beyond the budget")
	}
	if err := d.l.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	d.must(d.put("a", "three\n"))
}

func TestNotAcceptedStaysStale(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	d.write("a", "two\n")
	for range 2 {
		_, err := d.edit("a", "two", "three")
		wantStale(t, err)
	}
	d.holds("a", "two\n")
}

// A partly seen file stays partly seen when it is edited, and what the edit brought counts as seen.
func TestCoverageMoves(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "1\n2\n3\n4\n5\n6\n")
	d.see("a", filestate.Span{From: 4, To: 8})
	c := d.must(d.edit("a", "3\n", "three\nthree and a half\n"))
	if !strings.HasSuffix(string(c.Before), "p") || !strings.HasSuffix(string(c.After), "p") {
		t.Errorf("versions are %s and %s, want both partial", c.Before, c.After)
	}
	d.must(d.edit("a", "1\n", "0\n1\n"))
	_, err := d.put("a", "x")
	e, _ := errors.AsType[*filestate.PartReadError](err)
	if want := []filestate.Lines{{From: 1, To: 1}, {From: 4, To: 6}}; e == nil || !slices.Equal(e.Seen, want) {
		t.Fatalf("got %v, want lines %v", err, want)
	}
	d.see("a", filestate.Span{From: 2, To: 6}, filestate.Span{From: 29, To: 100})
	d.must(d.put("a", "x"))
}

func TestMemoryFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *filestate.Options) { o.Memory = brokenMemory{} })
	d.write("a", "one\n")
	s, err := d.trySee("a")
	wantError(t, err, filestate.ErrMemory)
	wantError(t, err, errBroken)
	if s.Version != versionOf("one\n") || !s.Whole {
		t.Errorf("the sight is %+v, want a valid one", s)
	}
	c := d.must(d.edit("a", "one", "two", version(s.Version)))
	if !c.Forgotten {
		t.Error("the change does not say that it was not remembered")
	}
	d.holds("a", "two\n")
	if _, err := d.l.Changed(t.Context()); !errors.Is(err, filestate.ErrMemory) {
		t.Errorf("Changed: %v, want ErrMemory", err)
	}
	wantError(t, d.l.Forget(t.Context(), d.path("a")), filestate.ErrMemory)
	wantError(t, d.l.Accept(t.Context(), &filestate.StaleError{Path: d.path("a"), New: []byte("x")}), filestate.ErrMemory)
}

func TestLargeContentsAreSame(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	big := bytes.Repeat([]byte("0123456789abcde\n"), 400_000) // 6.4 MB: hashed in a stream, not held
	d.write("a", string(big))
	s := d.see("a")
	c := d.must(d.edit("a", "0123", "4567"))
	if c.Before != s.Version || c.After != versionOf(string(c.New)) {
		t.Errorf("versions are %s and %s, want %s first", c.Before, c.After, s.Version)
	}
	d.write("a", "small")
	_, err := d.edit("a", "small", "x")
	if e := wantStale(t, err); e.Old != nil {
		t.Error("a content over 4 MiB is held")
	}
}

// An edit of a file that was never read is refused without reading it: four such calls about a file of 1 GiB made the
// server grow by 4 GiB. Not parallel, because it counts what the whole process allocates.
func TestNotReadReadsNothing(t *testing.T) {
	d := newDesk(t)
	d.write("big", "x\n")
	const size = 64 << 20
	if err := os.Truncate(d.path("big"), size); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := d.edit("big", "x", "y")
	runtime.ReadMemStats(&after)
	wantError(t, err, filestate.ErrNotRead)
	if got := after.TotalAlloc - before.TotalAlloc; got > size/2 {
		t.Errorf("allocated %d bytes to refuse the edit of an unread file of %d", got, size)
	}
}

package filestate_test

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
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
				changes, err := d.l.Update(t.Context(), journal.By{}, e)
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

// The guard has the last word on a large file, whose hash is not known before the change is made.
func TestGuardOfALargeFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", strings.Repeat("line\n", 100_000))
	d.see("a")
	d.write("a", strings.Repeat("LINE\n", 100_000))
	_, err := d.edit("a", "line", "x") // which Change refuses as well
	wantStale(t, err)
	_, err = d.edit("a", "LINE", "x")
	wantStale(t, err)
	_, err = d.edit("a", "line", "x", unseen)
	wantError(t, err, errAbsent)
}

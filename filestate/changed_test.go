package filestate_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
)

func TestChanged(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		change func(desk)
		want   bool
		gone   bool // there is no such file any more
	}{
		{"nothing", func(desk) {}, false, false},
		{"touched", func(d desk) { d.age("a", -time.Hour) }, false, false},
		{"older time", func(d desk) { d.age("a", 24*time.Hour) }, false, false},
		{"same bytes", func(d desk) { d.write("a", "one\n") }, false, false},
		{"replaced by the same bytes", func(d desk) { d.write("b", "one\n"); d.rename("b", "a") }, false, false},
		{"other size", func(d desk) { d.write("a", "longer\n") }, true, false},
		{"same size", func(d desk) { d.write("a", "ONE\n") }, true, false},
		{"same size and time", func(d desk) { d.writeUnnoticed("a", "ONE\n") }, true, false},
		{"replaced", func(d desk) { d.write("b", "ONE\n"); d.rename("b", "a") }, true, false},
		{"older time and other bytes", func(d desk) { d.write("a", "ONE\n"); d.age("a", 24*time.Hour) }, true, false},
		{"removed", func(d desk) { _ = os.Remove(d.path("a")) }, true, true},
		{"a directory", func(d desk) { _ = os.Remove(d.path("a")); _ = os.Mkdir(d.path("a"), 0o755) }, true, true},
		{"a link", func(d desk) { d.rename("a", "b"); _ = os.Symlink("b", d.path("a")) }, true, true},
		{"our own edit", func(d desk) { d.must(d.edit("a", "one", "two")) }, false, false},
	}
	for _, settled := range []bool{false, true} {
		for _, c := range cases {
			name := c.name
			if settled {
				name += ", long after it was read"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				d.write("a", "one\n")
				d.write("unread", "x")
				d.see("a")
				if settled {
					tick(t, d.path("a"))
					if err := filestate.Settle(t.Context(), d.l, d.path("a")); err != nil {
						t.Fatal(err)
					}
				}
				c.change(d)
				for _, paths := range [][]string{nil, {d.path("a"), d.path("unread")}} {
					got, err := d.l.Changed(t.Context(), paths...)
					if err != nil {
						t.Fatal(err)
					}
					if len(got) > 0 != c.want {
						t.Fatalf("asked about %v: got %v, want changed: %v", paths, got, c.want)
					}
					if c.want {
						checkChanged(t, d, got[0], paths, c.gone)
					}
				}
			})
		}
	}
}

func checkChanged(t *testing.T, d desk, e *filestate.StaleError, paths []string, gone bool) {
	t.Helper()
	if e.Path != d.path("a") || e.Was != versionOf("one\n") || gone != (e.Now == "") {
		t.Errorf("got %+v", e)
	}
	if len(paths) == 0 {
		if e.Old != nil || e.New != nil {
			t.Error("contents are given though all files were asked about")
		}
		return
	}
	if string(e.Old) != "one\n" || gone != (e.New == nil) {
		t.Errorf("old content %q, new content %q", e.Old, e.New)
	}
	if !gone {
		return
	}
	if err := d.l.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got, err := d.l.Changed(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("a file that was accepted to be gone is still reported: %v, %v", got, err)
	}
}

// writeUnnoticed writes a content of the same size and sets the time back to what it was.
func (d desk) writeUnnoticed(name, content string) {
	d.Helper()
	info, err := os.Stat(d.path(name))
	if err != nil {
		d.Fatal(err)
	}
	f, err := os.OpenFile(d.path(name), os.O_WRONLY, 0)
	if err != nil {
		d.Fatal(err)
	}
	_, err = f.WriteString(content)
	if closeErr := f.Close(); err != nil || closeErr != nil {
		d.Fatal(err, closeErr)
	}
	if err := os.Chtimes(d.path(name), info.ModTime(), info.ModTime()); err != nil {
		d.Fatal(err)
	}
}

// A path that leads elsewhere by now is not followed: the permission was for the old target.
func TestChangedFollowsNoLink(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("dir/a", "one\n")
	d.write("outside/a", "secret\n")
	d.see("dir/a")
	d.rename("dir", "was")
	if err := os.Symlink("outside", d.path("dir")); err != nil {
		t.Skipf("links: %v", err)
	}
	got, err := d.l.Changed(t.Context(), d.path("dir/a"))
	if err != nil || len(got) != 1 || got[0].New != nil || got[0].Now != "" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestChangedOfSeveral(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"c", "a", "b"} {
		d.write(name, name)
		d.see(name)
	}
	d.write("c", "C")
	d.write("a", "A")
	got, err := d.l.Changed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range got {
		paths = append(paths, e.Path)
	}
	if want := []string{d.path("a"), d.path("c")}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v in order", paths, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	_, err = d.l.Changed(ctx)
	wantError(t, err, errBroken)
}

func TestAcceptJoinsWhatWasReadMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "1\n2\n3\n")
	d.see("a", filestate.Span{From: 0, To: 2})
	d.write("a", "1\n2\n3\n4\n")
	_, err := d.put("a", "x")
	e := wantStale(t, err)
	d.see("a", filestate.Span{From: 0, To: 6})
	if err := d.l.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	d.must(d.put("a", "x"))
}

func TestForgetAsksForAnotherRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	if err := d.l.Forget(t.Context(), d.path("a")); err != nil {
		t.Fatal(err)
	}
	if err := d.l.Forget(t.Context(), d.path("never seen")); err != nil {
		t.Fatal(err)
	}
	_, err := d.edit("a", "one", "two")
	wantError(t, err, filestate.ErrNotRead)
	if !strings.Contains(err.Error(), d.path("a")) {
		t.Errorf("the error does not name the path: %v", err)
	}
}

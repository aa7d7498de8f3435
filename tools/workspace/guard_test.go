package workspace

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

var errClosed = errors.New("closed by the guard")

// The Guard is asked about what Open arrived at, under the path that it was asked for, also where nothing is there.
// What only looks at a path does not ask.
func TestGuard(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.link(t, "ws/l", "dir")
	f.link(t, "ws/far", "TOP/other")
	var asked []string
	var closed string // what the Guard closes
	space := f.Guarded(func(o Opened) error {
		is := "read "
		if o.Access == Write {
			is = "write "
		}
		asked = append(asked, is+strings.ReplaceAll(o.Asked+" is "+o.Path, f.top, "TOP"))
		if !o.Inside() || o.Real() != o.Path {
			t.Errorf("%s: inside %v, real %s", o.Path, o.Inside(), o.Real())
		}
		if strings.HasPrefix(o.Path, f.path(closed)) && closed != "" {
			return errClosed
		}
		return nil
	})
	for _, c := range []struct {
		path, closed, asked, kind string
		access                    Access
	}{
		{"a.txt", "", "read TOP/ws/a.txt is TOP/ws/a.txt", "ok", Read},
		{"l/b.txt", "", "read TOP/ws/l/b.txt is TOP/ws/dir/b.txt", "ok", Read},
		{"l/b.txt", "ws/l", "read TOP/ws/l/b.txt is TOP/ws/dir/b.txt", "ok", Read},
		{"l/b.txt", "ws/dir", "read TOP/ws/l/b.txt is TOP/ws/dir/b.txt", "closed", Read},
		{"l", "ws/dir", "read TOP/ws/l is TOP/ws/dir", "closed", Read},
		{"far/o.txt", "other", "write TOP/ws/far/o.txt is TOP/other/o.txt", "closed", Write},
		{"far", "", "read TOP/ws/far is TOP/other", "ok", Read},
		{"l/none", "", "read TOP/ws/l/none is TOP/ws/dir/none", "missing", Read},
		{"l/none", "ws/dir", "read TOP/ws/l/none is TOP/ws/dir/none", "closed", Read},
		{"l/new/deep/f", "", "write TOP/ws/l/new/deep/f is TOP/ws/dir/new/deep/f", "ok", Write},
		{"l/new/deep/f", "ws/dir", "write TOP/ws/l/new/deep/f is TOP/ws/dir/new/deep/f", "closed", Write},
		{"../outside/x.txt", "", "", "outside", Read},
	} {
		asked, closed = nil, c.closed
		p, err := space.Open(c.path, c.access)
		got := kind(err)
		if errors.Is(err, errClosed) {
			got = "closed"
		}
		if err == nil {
			_ = p.Dir.Close()
		}
		if all := strings.Join(asked, ", "); got != c.kind || all != c.asked {
			t.Errorf("%s with %q closed: %s, asked %q, want %s, asked %q", c.path, c.closed, got, all, c.kind, c.asked)
		}
	}
	asked, closed = nil, "ws"
	space.Resolve("l/b.txt")
	space.Names("a.txt")
	space.Folds("a.txt")
	space.Same("a.txt", "l/b.txt")
	space.Barred("a.txt/x")
	space.Inside("l")
	if space.At(f.path("ws/dir")).Cwd(); asked != nil {
		t.Errorf("asked %q", asked)
	}
	if _, err := space.At(f.path("ws/dir")).Readable().Open("b.txt", Read); !errors.Is(err, errClosed) {
		t.Errorf("a copy has lost the guard: %v", err)
	}
}

// Names near one that does not exist are none of those that the Guard closes: a link on the way may have been swapped.
func TestGuardOfNearNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.link(t, "ws/l", "dir")
	if got := f.Near("l/bb.txt", nil); !slices.Equal(got, []string{f.path("ws/l/b.txt")}) {
		t.Fatalf("near is %q", got)
	}
	for _, closed := range []string{"ws/dir", "ws/dir/b.txt"} {
		space := f.Guarded(func(o Opened) error {
			if strings.HasPrefix(o.Path, f.path(closed)) {
				return errClosed
			}
			return nil
		})
		if got := space.Near("l/bb.txt", nil); got != nil {
			t.Errorf("%s is closed, near is %q", closed, got)
		}
	}
}

// A file that becomes another name of one that was not asked about, after the place was found, is asked about again.
func TestGuardOfLinkedFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := [][]string{}
	p, err := f.Guarded(func(o Opened) error {
		also, whole := o.Names()
		names = append(names, also)
		if known := o.Is(f.path("ws/a.txt"), nil, true); known != (also == nil) || !whole {
			t.Errorf("names %q, whole %v, known %v", also, whole, known)
		}
		if also != nil {
			return errClosed
		}
		return nil
	}).Open("a.txt", Write)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Dir.Close()
	f.link(t, "ws/dir/link", "none") // only to skip where a test may make no links
	if err := errors.Join(os.Remove(f.path("ws/a.txt")), os.Link(f.path("ws/dir/b.txt"), f.path("ws/a.txt"))); err != nil {
		t.Fatal(err)
	}
	info, err := p.Dir.Lstat(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Linked(info); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
	if len(names) != 2 || !slices.Equal(names[1], []string{f.path("ws/dir/b.txt")}) {
		t.Errorf("asked about names %q", names)
	}
}

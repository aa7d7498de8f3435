package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestPaths is the list of SEC-01: every way out that peers had, and the ways in that must keep working. Each case says
// what a read and a write get; `text` is what the read must see.
func TestPaths(t *testing.T) {
	f := newFixture(t)
	links := [][2]string{
		{"ws/in-rel", "dir/b.txt"}, {"ws/in-abs", "TOP/ws/dir/b.txt"}, {"ws/in-dir", "dir"}, {"ws/in-absdir", "TOP/ws/dir"},
		{"ws/dir/up", "../a.txt"}, {"ws/dir/deep/upup", "../../a.txt"}, {"ws/to-other", "TOP/other/o.txt"},
		{"ws/to-otherrel", "../other/o.txt"}, {"ws/dir/to-otherdir", "../../other"}, {"ws/self", "."}, {"ws/rootlink", "TOP/ws"},
		{"ws/in-and-out-and-in", "TOP/ws/../ws/a.txt"}, {"ws/dots", "./dir/.././dir//deep/c.txt"},
		{"ws/chain1", "chain2"}, {"ws/chain2", "TOP/ws/chain3"}, {"ws/chain3", "dir/up"},
		{"ws/out-rel", "../outside/x.txt"}, {"ws/out-abs", "TOP/outside/x.txt"}, {"ws/out-dir", "../outside"},
		{"ws/out-absdir", "TOP/outside"}, {"ws/out-sibling", "TOP/ws-evil/x.txt"}, {"ws/out-parent", ".."}, {"ws/out-top", "/"},
		{"ws/out-chain", "out-chain2"}, {"ws/out-chain2", "dir/out-chain3"}, {"ws/dir/out-chain3", "../../outside/x.txt"},
		{"ws/out-climb", strings.Repeat("../", strings.Count(f.path("ws"), string(filepath.Separator))) + "etc/passwd"}, {"ws/out-kept", "TOP/kept/k.txt"},
		{"ws/out-through", "TOP/outside/../ws/a.txt"}, {"ws/dirthenup", "in-dir/../a.txt"},
		{"ws/dangling-in", "dir/new.txt"}, {"ws/dangling-in-abs", "TOP/ws/made/new.txt"}, {"ws/dangling-out", "TOP/outside/new.txt"},
		{"ws/dangling-out-rel", "../new.txt"}, {"ws/dangling-up", "nowhere/../a.txt"}, {"ws/dangling-dir", "TOP/outside/newdir"},
		{"ws/loop1", "loop2"}, {"ws/loop2", "loop1"}, {"ws/loop-self", "loop-self"}, {"ws/loop-deep", "loop-deep/x"},
		{"ws/proc-root", "/proc/self/root/etc/passwd"}, {"ws/proc-cwd", "/proc/self/cwd"}, {"ws/empty-name", "a.txt/"},
	}
	for _, l := range links {
		f.link(t, l[0], l[1])
	}
	long := strings.Repeat("x", 256)
	cases := []struct{ path, read, write, text string }{
		{"a.txt", "ok", "ok", "a"},
		{"TOP/ws/a.txt", "ok", "ok", "a"},
		{"./dir/../a.txt", "ok", "ok", "a"},
		{"~/a.txt", "ok", "ok", "a"},
		{"file://TOP/ws/a.txt", "ok", "ok", "a"},
		{"TOP/ws", "ok", "ok", ""},
		{".", "ok", "ok", ""},
		{"dir", "ok", "ok", ""},
		{"dir/deep/c.txt", "ok", "ok", "c"},
		{"TOP/other/o.txt", "ok", "ok", "o"},
		{"../other/o.txt", "ok", "ok", "o"},
		{"TOP/kept/k.txt", "ok", "outside", "k"},
		{"TOP/kept/new.txt", "missing", "outside", ""},
		{"TOP/kept", "ok", "outside", ""},
		{"new.txt", "missing", "ok", ""},
		{"new/dir/new.txt", "missing", "ok", ""},
		{"dir/deep/new/x", "missing", "ok", ""},
		{"a.txt/x", "system", "system", ""},
		{"dir/b.txt/x/y", "system", "system", ""},

		{"../outside/x.txt", "outside", "outside", ""},
		{"..", "outside", "outside", ""},
		{"../x", "outside", "outside", ""},
		{"dir/../../outside/x.txt", "outside", "outside", ""},
		{"TOP", "outside", "outside", ""},
		{"TOP/ws-evil/x.txt", "outside", "outside", ""},
		{"TOP/ws-evil", "outside", "outside", ""},
		{"../ws-evil/x.txt", "outside", "outside", ""},
		{"TOP/ws/../ws-evil/x.txt", "outside", "outside", ""},
		{"TOP/w", "outside", "outside", ""},
		{"/", "outside", "outside", ""},
		{"/etc/passwd", "outside", "outside", ""},
		{"//etc//passwd", "outside", "outside", ""},
		{"file:///etc/passwd", "outside", "outside", ""},
		{"file://TOP/ws/..%2foutside/x.txt", "outside", "outside", ""},
		{"/proc/self/root/etc/passwd", "outside", "outside", ""},
		{"/proc/self/rootTOP/ws/a.txt", "outside", "outside", ""},
		{"/proc/self/fd/0", "outside", "outside", ""},
		{"/proc/self/cwd/x", "outside", "outside", ""},
		{"/dev/stdin", "outside", "outside", ""},
		{"~/../outside/x.txt", "outside", "outside", ""},

		{"", "invalid", "invalid", ""},
		{"a\x00.txt", "invalid", "invalid", ""},
		{"a.txt\x00", "invalid", "invalid", ""},
		{"file://TOP/ws/a%00.txt", "invalid", "invalid", ""},
		{"file://TOP/ws/%zz", "invalid", "invalid", ""},
		{"file://", "invalid", "invalid", ""},
		{"~root/x", "invalid", "invalid", ""},
		{long, "invalid", "invalid", ""},
		{"dir/" + long + "/x", "invalid", "invalid", ""},
		{strings.Repeat("d/", 2100), "invalid", "invalid", ""},
		{`\\host\share\x`, "spelling", "spelling", ""},
		{`\\?\C:\x`, "spelling", "spelling", ""},
		{`\\.\pipe\x`, "spelling", "spelling", ""},
		{`\??\C:\x`, "spelling", "spelling", ""},
		{"/??/C:/x", "spelling", "spelling", ""},
		{"/./??/UNC/host", "spelling", "spelling", ""},
		{"file://host/share/x", "spelling", "spelling", ""},

		{"in-rel", "ok", "ok", "b"},
		{"in-abs", "ok", "ok", "b"},
		{"in-dir/b.txt", "ok", "ok", "b"},
		{"in-absdir/deep/c.txt", "ok", "ok", "c"},
		{"in-absdir/up", "ok", "ok", "a"},
		{"dir/up", "ok", "ok", "a"},
		{"dir/deep/upup", "ok", "ok", "a"},
		{"in-dir/deep/upup", "ok", "ok", "a"},
		{"to-other", "ok", "ok", "o"},
		{"to-otherrel", "ok", "ok", "o"},
		{"dir/to-otherdir/o.txt", "ok", "ok", "o"},
		{"self/self/a.txt", "ok", "ok", "a"},
		{"rootlink/a.txt", "ok", "ok", "a"},
		{"rootlink", "ok", "ok", ""},
		{"in-and-out-and-in", "ok", "ok", "a"},
		{"dots", "ok", "ok", "c"},
		{"chain1", "ok", "ok", "a"},
		{"dirthenup", "ok", "ok", "a"},
		{"in-absdir/new/x.txt", "missing", "ok", ""},

		{"out-rel", "outside", "outside", ""},
		{"out-abs", "outside", "outside", ""},
		{"out-dir/x.txt", "outside", "outside", ""},
		{"out-dir/sub/y.txt", "outside", "outside", ""},
		{"out-dir", "outside", "outside", ""},
		{"out-absdir/new.txt", "outside", "outside", ""},
		{"out-sibling", "outside", "outside", ""},
		{"out-parent", "outside", "outside", ""},
		{"out-top", "outside", "outside", ""},
		{"out-chain", "outside", "outside", ""},
		{"in-dir/out-chain3", "outside", "outside", ""},
		{"out-climb", "outside", "outside", ""},
		{"out-through", "outside", "outside", ""},
		{"out-kept", "ok", "outside", "k"},
		{"proc-root", "outside", "outside", ""},
		{"proc-cwd/x", "outside", "outside", ""},
		{"dangling-in", "missing", "ok", ""},
		{"dangling-in-abs", "missing", "ok", ""},
		{"dangling-out", "outside", "outside", ""},
		{"dangling-out-rel", "outside", "outside", ""},
		{"dangling-dir/x", "outside", "outside", ""},
		{"dangling-up", "missing", "missing", ""},
		{"loop1", "links", "links", ""},
		{"loop-self", "links", "links", ""},
		{"loop-deep", "links", "links", ""},
		{"loop1/x", "links", "links", ""},
	}
	for _, c := range cases {
		path := strings.ReplaceAll(c.path, "TOP", filepath.ToSlash(f.top))
		name := c.path
		if len(name) > 40 {
			name = name[:40]
		}
		t.Run(name, func(t *testing.T) {
			for _, a := range []struct {
				access Access
				want   string
			}{{Read, c.read}, {Write, c.write}} {
				p, err := f.Open(path, a.access)
				if got := kind(err); got != a.want {
					t.Errorf("Open(%q, %d): %s (%v), want %s", path, a.access, got, err, a.want)
				}
				if err == nil {
					checkPlace(t, f, p)
				}
			}
			if text, err := f.read(path); c.text != "" && (err != nil || text != c.text) {
				t.Errorf("read %q: %q, %v, want %q", path, text, err, c.text)
			}
			if text, _ := f.read(path); strings.Contains(text, secret) {
				t.Errorf("read %q leaked what is outside", path)
			}
		})
	}
	if len(cases) < 60 {
		t.Errorf("%d cases; SEC-01 wants at least 60", len(cases))
	}
	if text, err := os.ReadDir(f.path("outside")); err != nil || len(text) != 2 {
		t.Errorf("outside has changed: %v, %v", text, err)
	}
}

// checkPlace asserts what Place promises, and closes it.
func checkPlace(t *testing.T, f fixture, p Place) {
	t.Helper()
	defer p.Dir.Close()
	if a, _, ok := f.areas.find(p.Path); !ok {
		t.Errorf("%s is in no area", p.Path)
	} else if p.Name == "." && p.Path != a.path {
		t.Errorf("Name is . but %s is no area", p.Path)
	}
	if !filepath.IsLocal(p.Name) {
		t.Errorf("Name %q leaves Dir", p.Name)
	}
	info, err := p.Dir.Lstat(p.Name)
	if err != nil {
		return
	}
	if strings.ContainsRune(p.Name, filepath.Separator) {
		t.Errorf("%s exists, but Name is %q", p.Path, p.Name)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		t.Errorf("%s is still a link", p.Path)
	}
	atPath, err := os.Lstat(p.Path)
	if err != nil || !os.SameFile(info, atPath) {
		t.Errorf("Path %s is not what Dir and Name are: %v", p.Path, err)
	}
}

// A dangling link that leads out is refused, and the refusal names both ends (SEC-03); one that leads in gives the
// place of its target.
func TestDanglingLinks(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/out", "TOP/outside/new.txt")
	f.link(t, "ws/out2", "out")
	f.link(t, "ws/in", "made/new.txt")

	for _, name := range []string{"out", "out2"} {
		_, err := f.Open(name, Write)
		out, ok := errors.AsType[*OutsideError](err)
		if !ok {
			t.Fatalf("Open(%s): %v, want *OutsideError", name, err)
		}
		want := OutsideError{Path: f.path("ws/" + name), Link: f.path("ws/out"), Target: f.path("outside/new.txt"), Roots: f.Roots()}
		if out.Path != want.Path || out.Link != want.Link || out.Target != want.Target || !slices.Equal(out.Roots, want.Roots) {
			t.Errorf("got %+v, want %+v", *out, want)
		}
	}
	p, err := f.Open("in", Write)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Dir.Close()
	if p.Path != f.path("ws/made/new.txt") || p.Name != filepath.Join("made", "new.txt") {
		t.Errorf("got %s, %s, want the place of the target", p.Path, p.Name)
	}
}

// 40 links in a row work, 41 do not (SEC-04).
func TestLinkChain(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/l1", "TOP/ws/a.txt")
	for i := 2; i <= 41; i++ {
		f.link(t, fmt.Sprintf("ws/l%d", i), fmt.Sprintf("l%d", i-1))
	}
	if text, err := f.read("l40"); err != nil || text != "a" {
		t.Errorf("40 links: %q, %v", text, err)
	}
	if _, err := f.read("l41"); !errors.Is(err, ErrTooManyLinks) {
		t.Errorf("41 links: %v, want ErrTooManyLinks", err)
	}
}

// A link whose target goes down and up again thousands of times ends in an error and not in a hang.
func TestHostileTargetEnds(t *testing.T) {
	f := newFixture(t)
	deep := strings.Repeat("d/", 60)
	if err := os.MkdirAll(f.path("ws/"+deep), 0o755); err != nil {
		t.Fatal(err)
	}
	target := deep + strings.Repeat("../d/", 700) + "../x"
	f.link(t, "ws/bomb", target)
	_, err := f.Open("bomb", Read)
	if !errors.Is(err, ErrTooManyLinks) {
		t.Errorf("got %v, want ErrTooManyLinks", err)
	}
}

// A path of 1,900 components cost seconds. 256 are taken, and no link leads to more.
func TestComponents(t *testing.T) {
	f := newFixture(t)
	room := maxComponents - strings.Count(f.path("ws"), string(filepath.Separator))
	deep := strings.Repeat("d/", room-1)
	f.write(t, "ws/"+deep+"x.txt", "deep")
	if text, err := f.read(deep + "x.txt"); err != nil || text != "deep" {
		t.Errorf("256 components: %q, %v", text, err)
	}
	for _, path := range []string{deep + "d/x.txt", strings.Repeat("a/", 1900), "/" + strings.Repeat("a/", 1900), "~/" + strings.Repeat("a/", 300)} {
		for _, access := range []Access{Read, Write} {
			_, err := f.Open(path, access)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, "256 components") {
				t.Errorf("%d components: %v", strings.Count(path, "/"), err)
			}
		}
	}
	f.link(t, "ws/relative", strings.Repeat("e/../", 300)+"a.txt")
	f.link(t, "ws/absolute", f.path("ws")+"/"+strings.Repeat("e/../", 300)+"a.txt")
	for _, link := range []string{"relative", "absolute"} {
		if text, err := f.read(link); err == nil {
			t.Errorf("a link of 600 components leads to %q", text)
		}
	}
}

func TestPlaceOfMissingFile(t *testing.T) {
	f := newFixture(t)
	p, err := f.Open("dir/new/sub/x.txt", Write)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Dir.Close()
	if p.Name != filepath.Join("new", "sub", "x.txt") || p.Path != f.path("ws/dir/new/sub/x.txt") {
		t.Errorf("got %q %q", p.Name, p.Path)
	}
	if _, err := p.Dir.Stat("deep/c.txt"); err != nil {
		t.Errorf("Dir is not the deepest existing directory: %v", err)
	}
	if _, err := os.Stat(f.path("ws/dir/new")); err == nil {
		t.Error("Open has made a directory")
	}
}

func TestNotADirectory(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Open("a.txt/x", Read); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v, want ENOTDIR", err)
	}
	if !f.Barred("a.txt/x") || f.Barred("a.txt") || f.Barred("new/x") {
		t.Error("only a.txt/x should be barred")
	}
}

// A directory that may not be entered gives the system's own error with the whole path in it. One that may be listed
// but not entered was taken for one that is swapped all the time, and models were told to try again.
func TestUnreadableDirectory(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("permission bits bind only ordinary users")
	}
	f := newFixture(t)
	t.Cleanup(func() { _ = os.Chmod(f.path("ws/dir"), 0o755) })
	for _, mode := range []os.FileMode{0, 0o400, 0o600} {
		if err := os.Chmod(f.path("ws/dir"), mode); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"dir/b.txt", "dir/deep/c.txt", "dir/new.txt"} {
			for _, access := range []Access{Read, Write} {
				_, err := f.Open(path, access)
				if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), f.path("ws/"+path)) {
					t.Errorf("mode %o, %s, access %v: got %v", mode, path, access, err)
				}
			}
		}
	}
}

// A place that was handed out outlives its Space, and belongs to the caller alone.
func TestPlaceOutlivesSpace(t *testing.T) {
	f := newFixture(t)
	p, err := f.Open("a.txt", Read)
	if err != nil {
		t.Fatal(err)
	}
	q, err := f.Open("a.txt", Read)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Dir.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Dir.Stat(p.Name); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if err := p.Dir.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Open("a.txt", Read); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Open after Close: %v, want os.ErrClosed", err)
	}
}

package workspace

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var seed = flag.Uint64("seed", 0, "of the random trees; 0: another one each time")

// A randomTree is made of few names, so that paths meet what is there.
type randomTree struct {
	fixture
	*rand.Rand
}

func (r randomTree) name() string { return []string{"a", "b", "c", "d", "B"}[r.IntN(5)] }

// rel is a path of some components, here and there with dots.
func (r randomTree) rel(dots bool) string {
	var parts []string
	for range 1 + r.IntN(6) {
		switch {
		case dots && r.IntN(8) == 0:
			parts = append(parts, "..")
		case dots && r.IntN(12) == 0:
			parts = append(parts, ".", "")
		default:
			parts = append(parts, r.name())
		}
	}
	return strings.Join(parts, "/")
}

// plant makes directories, files and links of all kinds. What cannot be made, because something stands there or a link
// leads out of the tree, is left out.
func (r randomTree) plant(t *testing.T) {
	tree, err := os.OpenRoot(r.top)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for range 40 {
		at := []string{"ws/", "ws/", "other/", "outside/"}[r.IntN(4)] + r.rel(false)
		kind := r.IntN(8)
		if kind < 4 {
			_ = tree.MkdirAll(at, 0o755)
			continue
		}
		_ = tree.MkdirAll(filepath.Dir(at), 0o755)
		switch kind {
		case 4:
			_ = tree.WriteFile(at, []byte("x"), 0o644)
		case 5:
			_ = tree.Symlink(r.rel(true), at)
		case 6:
			_ = tree.Symlink("../"+r.rel(true), at)
		case 7:
			_ = tree.Symlink(r.path([]string{"ws/", "other/", "outside/", "kept/"}[r.IntN(4)]+r.rel(true)), at)
		}
	}
}

// walking is the Space without the kernel's short way.
func walking(s *Space) *Space {
	c := *s
	c.short = &shortcut{}
	c.short.off.Store(true)
	return &c
}

// describe is all that an answer says, but for the name of the handle.
func describe(t testing.TB, p Place, err error) string {
	t.Helper()
	if err != nil {
		return fmt.Sprintf("%s: %v", kind(err), err)
	}
	defer p.Dir.Close()
	info, err := p.Dir.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint("place ", p.Path, " ", p.Name, " in ", device(info), " ", inode(info))
	if last, err := p.Dir.Lstat(p.Name); err == nil {
		text += fmt.Sprint(" is ", last.Mode(), " ", inode(last))
	}
	return text
}

// The kernel's short way gives the answers of the walk, for every path in random trees with links of all kinds.
func TestShortcutIsTheWalk(t *testing.T) {
	number := *seed
	if number == 0 {
		number = rand.Uint64()
	}
	t.Logf("-seed %d", number)
	r := randomTree{Rand: rand.New(rand.NewPCG(number, 0))}
	paths, leapt := 0, 0
	kinds := map[string]int{}
	for range 20 {
		r.fixture = newFixture(t)
		r.plant(t)
		slow := walking(r.Space)
		for range 250 {
			path := r.rel(true)
			if r.IntN(3) == 0 {
				path = r.path([]string{"ws/", "other/", "outside/", "kept/"}[r.IntN(4)] + path)
			}
			for _, access := range []Access{Read, Write} {
				p, err := r.Open(path, access)
				if err == nil && strings.HasPrefix(p.Dir.Name(), "/proc/") {
					leapt++
				}
				got := describe(t, p, err)
				p, err = slow.Open(path, access)
				kinds[kind(err)]++
				if want := describe(t, p, err); got != want {
					t.Fatalf("%s, access %d:\n got %s\nwant %s", path, access, got, want)
				}
				paths++
			}
		}
	}
	t.Logf("%d answers, %d of them by the short way, none differs: %v", paths, leapt, kinds)
	if leapt < paths/50 {
		t.Errorf("only %d of %d answers came the short way", leapt, paths)
	}
}

// A kernel without the short way, or a filter that forbids it, is asked once and no more, and the paths are found.
func TestShortcutRefused(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is missing: apt-get install strace")
		}
		t.Skip("strace makes the system call fail: apt-get install strace")
	}
	for _, refusal := range []string{"ENOSYS", "EPERM", "E2BIG"} {
		t.Run(refusal, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := exec.CommandContext(t.Context(), strace, "-f", "-o", trace, "-e", "trace=openat2", "-e", "inject=openat2:error="+refusal,
				os.Args[0], "-test.run=^TestDeep$", "-test.count=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			log, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(log, []byte("openat2(")); n != 1 {
				t.Errorf("asked %d times, want once:\n%s", n, log)
			}
		})
	}
}

// A file far below a root is found, again and again.
func TestDeep(t *testing.T) {
	f := newFixture(t)
	f.write(t, "ws/1/2/3/4/5/6/7/8/x.txt", "deep")
	for range 3 {
		if text, err := f.read("1/2/3/4/5/6/7/8/x.txt"); err != nil || text != "deep" {
			t.Fatalf("got %q, %v", text, err)
		}
	}
}

// A root that was replaced by another directory is the new one for the short way, too, and one that is a link now is
// refused.
func TestShortcutSeesReplacedRoot(t *testing.T) {
	f := newFixture(t)
	f.write(t, "ws/deep/er/x.txt", "old")
	if text, err := f.read("deep/er/x.txt"); err != nil || text != "old" {
		t.Fatalf("got %q, %v", text, err)
	}
	if err := os.Rename(f.path("ws"), f.path("gone")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.read(f.path("ws/deep/er/x.txt")); kind(err) != "missing" {
		t.Errorf("without a root: got %v", err)
	}
	f.write(t, "ws/deep/er/x.txt", "new")
	if text, err := f.read("deep/er/x.txt"); err != nil || text != "new" {
		t.Errorf("got %q, %v, want the new tree", text, err)
	}
	if err := os.RemoveAll(f.path("ws")); err != nil {
		t.Fatal(err)
	}
	f.write(t, "outside/deep/er/x.txt", secret)
	f.link(t, "ws", "outside")
	var out *OutsideError
	if _, err := f.read(f.path("ws/deep/er/x.txt")); !errors.As(err, &out) || out.Link != f.path("ws") {
		t.Errorf("a root that is a link: got %v", err)
	}
}

// BenchmarkOpen opens a file eight directories deep, by the kernel's short way, also with a Guard, and by the walk.
func BenchmarkOpen(b *testing.B) {
	top, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	f := fixture{top: top}
	const deep = "1/2/3/4/5/6/7/8/x.txt"
	f.write(b, "ws/"+deep, "x")
	f.Space, err = Open([]string{f.path("ws")}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	guarded := f.Guarded(func(o Opened) error {
		if !o.Is(f.path("ws/"+deep), nil, true) {
			return errClosed
		}
		return nil
	})
	for name, s := range map[string]*Space{"short": f.Space, "guarded": guarded, "walk": walking(f.Space)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := s.Open(deep, Read)
				if err != nil {
					b.Fatal(err)
				}
				_ = p.Dir.Close()
			}
		})
	}
}

// BenchmarkOpenDeep opens what lies ever deeper: twice the depth is twice the time, also for what is missing, what is
// outside and what is suggested for it.
func BenchmarkOpenDeep(b *testing.B) {
	top, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	f := fixture{top: top}
	deepest := maxComponents - strings.Count(f.path("ws"), "/")
	way := strings.Repeat("d/", deepest-1)
	f.write(b, "ws/"+way+"x.txt", "x")
	f.write(b, "outside/"+strings.Repeat("d/", 64)+"x.txt", "x")
	f.Space, err = Open([]string{f.path("ws")}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	walked := walking(f.Space)
	for _, depth := range []int{30, 60, 120, deepest - 1} {
		path := strings.Repeat("d/", depth) + "x.txt"
		if depth < deepest-1 {
			f.write(b, "ws/"+path, "x")
		}
		for name, look := range map[string]func(){
			"open":    func() { opened(b, f.Space, path) },
			"walk":    func() { opened(b, walked, path) },
			"near":    func() { f.Near(strings.TrimSuffix(path, "xt"), nil) },
			"missing": func() { _, _ = f.Resolve("m/" + strings.TrimPrefix(path, "d/")) },
			"outside": func() { realAsFarAsItGoes(f.path("outside/" + path)) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, depth), func(b *testing.B) {
				for b.Loop() {
					look()
				}
			})
		}
	}
}

func opened(b *testing.B, s *Space, path string) {
	p, err := s.Open(path, Read)
	if err != nil {
		b.Fatal(err)
	}
	_ = p.Dir.Close()
}

func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

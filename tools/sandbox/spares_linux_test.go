package sandbox

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox/kernel"
)

// spared runs a shell at LevelFull and returns what it printed and which helper it had.
func spared(t *testing.T, s *Spares, text string, p Profile) (out string, helper int) {
	t.Helper()
	in, w, err := os.Pipe()
	must(t, err)
	defer in.Close()
	dir := leaktest.Dir(t)
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	p.Writable = append(p.Writable, dir)
	process, err := Start(t.Context(), Cmd{
		Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath}, Dir: root, Stdout: w, Stderr: w,
		Profile: &p, Spares: s,
	})
	_ = w.Close()
	must(t, err)
	helper = process.helper.process.Pid
	b := make([]byte, 1<<16)
	n := 0
	for {
		m, err := in.Read(b[n:])
		if n += m; err != nil {
			break
		}
	}
	<-process.Done()
	process.End(0)
	if code := process.Exit().Code; code != 0 {
		t.Errorf("%s: exit %d: %s", text, code, b[:n])
	}
	return string(b[:n]), helper
}

// next waits until a helper waits, and returns its number.
func (s *Spares) next(t *testing.T, network Network) int {
	t.Helper()
	pid := 0
	waitFor(t, "a helper waits", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w := s.waiting[network == NetworkOn]; w != nil {
			pid = w.helper.process.Pid
		}
		return pid != 0
	})
	return pid
}

func spares(t *testing.T) *Spares {
	t.Helper()
	if r := Probe(t.Context(), leaktest.Dir(t)); r.Level < LevelFull {
		t.Skipf("needs level 3: %+v", r.Failed)
	}
	s := NewSpares()
	t.Cleanup(s.Close)
	return s
}

// TestSpares: a helper that waited does for one command all that a new one does.
func TestSpares(t *testing.T) {
	s := spares(t)
	before := children()
	const look = `pwd; tty; readlink /proc/self/fd/0; ls /; ls /dev; cat /proc/self/mountinfo | cut -d' ' -f5-; id; umask; ulimit -a
		cat /proc/self/limits | grep -v 'file locks'; grep -E '^(Cap|NoNewPrivs|Seccomp|Sig|NSpid|Groups|Cpus)' /proc/self/status; env | sed 's/=.*//' | sort
		cat /proc/self/oom_score_adj; cat /proc/net/dev; ps ax | wc -l; ls /proc/self/fd`
	for _, network := range []Network{NetworkOff, NetworkOn} {
		direct, _ := spared(t, s, look, Profile{Network: network})
		waiting := s.next(t, network)
		got, helper := spared(t, s, look, Profile{Network: network})
		if helper != waiting {
			t.Errorf("the command had helper %d, and %d waited", helper, waiting)
		}
		steady := func(text string) []string { // without the directory of the test and counters of the network
			var lines []string
			for line := range strings.Lines(text) {
				if !strings.Contains(line, "codehand-test") && !strings.Contains(line, ": ") &&
					!strings.HasPrefix(line, "locks ") && !strings.HasPrefix(line, "NSpid:") {
					lines = append(lines, line)
				}
			}
			return lines
		}
		if a, b := steady(direct), steady(got); !slices.Equal(a, b) || len(a) < 40 {
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("a new helper: %sone that waited: %s", a[i], b[i])
				}
			}
			t.Errorf("%d and %d lines", len(a), len(b))
		}
		if again := s.next(t, network); again == helper {
			t.Error("a helper waits again after its command")
		}
	}
	s.Close()
	if left := children(); !slices.Equal(left, before) {
		t.Errorf("left: %q", left)
	}
	if _, helper := spared(t, s, "true", Profile{}); helper == 0 {
		t.Error("no helper")
	}
	s.making.Wait()
	if left := children(); !slices.Equal(left, before) {
		t.Errorf("made after Close: %q", left)
	}
}

// TestSpareEnded: where the waiting helper has died, or mounts have changed, the command gets a new one.
func TestSpareEnded(t *testing.T) {
	s := spares(t)
	spared(t, s, "true", Profile{})
	waiting := s.next(t, NetworkOff)
	must(t, unix.Kill(waiting, unix.SIGKILL))
	s.mu.Lock()
	dead := s.waiting[false].helper
	s.mu.Unlock()
	waitFor(t, "it is dead", dead.ended)
	if out, helper := spared(t, s, "echo fine", Profile{}); helper == waiting || out != "fine\n" {
		t.Errorf("helper %d of %d said %q", helper, waiting, out)
	}
	waiting = s.next(t, NetworkOff)
	s.mu.Lock()
	_ = s.waiting[false].mounts.Close() // changes of mounts are unknown from now on
	s.mu.Unlock()
	if out, helper := spared(t, s, "echo fine", Profile{}); helper == waiting || out != "fine\n" {
		t.Errorf("helper %d of %d said %q", helper, waiting, out)
	}
	waiting = s.next(t, NetworkOff)
	s.mu.Lock()
	w := s.waiting[false]
	s.mu.Unlock()
	s.expire(false, w)
	waitFor(t, "a helper that waited for too long ends", func() bool { return !running(waiting) })
	s.expire(false, w) // once
	if out, _ := spared(t, s, "echo fine", Profile{}); out != "fine\n" {
		t.Errorf("said %q", out)
	}
}

// TestSpareMounts: a helper does not outlast the mounts that it copied.
func TestSpareMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	f, err := openMounts()
	must(t, err)
	w := &spare{mounts: f}
	defer f.Close()
	if w.stale() {
		t.Error("nothing was mounted yet")
	}
	dir := leaktest.Dir(t)
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Skip("this root mounts nothing:", err)
	}
	defer func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	if !w.stale() {
		t.Error("a mount was not noticed")
	}
}

// A waiting helper has no file, variable or argument of any session, and ends with the server.
func TestSpareAlone(t *testing.T) {
	s := spares(t)
	t.Setenv("SECRET", "value")
	spared(t, s, "true", Profile{})
	pid := s.next(t, NetworkOff)
	waitFor(t, "it is the helper", func() bool { return string(procFile(pid, "cmdline")) == kernel.Arg0+"\x003\x00" })
	if env := string(procFile(pid, "environ")); strings.Contains(env, "SECRET") {
		t.Errorf("its environment is %q", env)
	}
	s.mu.Lock()
	h := s.waiting[false].helper
	s.mu.Unlock()
	h.cut() // what the kernel does when the server dies
	waitFor(t, "it ends with the server", func() bool { return !running(pid) })
}

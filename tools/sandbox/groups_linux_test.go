package sandbox

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox/cgroup"
	"codehand/tools/sandbox/probe"
)

// TestGroupRefused: a command whose group cannot be made does not start.
func TestGroupRefused(t *testing.T) {
	confinable(t)
	none := new(Groups).With(Bounds{Processes: 5}) // a group without a limit of memory
	_, err := Start(t.Context(), Cmd{Path: "/bin/true", Profile: &Profile{}, Level: LevelKernel, Groups: none})
	if !errors.Is(err, ErrConfine) {
		t.Errorf("got %v", err)
	}
	p, err := Start(t.Context(), Cmd{Path: "/bin/true", Groups: none})
	if err != nil {
		t.Fatalf("without a profile there is no group: %v", err)
	}
	<-p.Done()
	p.End(0)
}

// confinable skips a test where the machine confines nothing.
func confinable(t *testing.T) {
	t.Helper()
	if r := Probe(t.Context(), leaktest.Dir(t)); r.Level < LevelKernel {
		t.Skipf("the machine confines nothing: %+v", r.Failed)
	}
}

// TestGapsWithoutGroups: gaps go if, and only if, the limits were proven.
func TestGapsWithoutGroups(t *testing.T) {
	r := Probe(t.Context(), leaktest.Dir(t))
	if has := slices.Contains(r.Gaps, "memory"); has == (r.Groups != nil) || has == (r.Ungrouped == "") {
		t.Errorf("the gaps are %q, groups %v, why %q", r.Gaps, r.Groups != nil, r.Ungrouped)
	}
}

// grouped returns a proven tree, or skips the test.
func grouped(t *testing.T) Report {
	t.Helper()
	r := Probe(t.Context(), leaktest.Dir(t))
	if r.Groups == nil {
		t.Skipf("needs a delegated cgroup v2 tree with memory and pids: %s", r.Ungrouped)
	}
	return r
}

// TestGroups: with real control groups the kernel ends a command that takes too much, with all that it started, and
// starts no process too many. Nothing is left.
func TestGroups(t *testing.T) {
	r := grouped(t)
	if gaps := limitGaps(r.Level); slices.ContainsFunc(r.Gaps, func(g string) bool { return slices.Contains(gaps, g) }) {
		t.Errorf("limits are proven, and the gaps are %q", r.Gaps)
	}
	groups := r.Groups.With(Bounds{Memory: 64 << 20, Processes: 40})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string) (Exit, string) {
		t.Helper()
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		p, err := Start(t.Context(), Cmd{
			Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath}, Stdout: out, Stderr: out,
			Profile: &Profile{Readable: []string{self}}, Level: r.Level, Groups: groups,
		})
		_ = out.Close()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		read := make(chan error, 1)
		go func() {
			_, err := b.ReadFrom(in)
			read <- err
		}()
		select {
		case <-p.Done():
		case <-time.After(hang):
			t.Error("hangs: ", text)
		}
		p.End(0)
		if err := <-read; err != nil {
			t.Error(err)
		}
		return p.Exit(), b.String()
	}
	exit, out := run("cat /proc/self/cgroup")
	if exit.Code != 0 || exit.Hit != (Bounds{}) || r.Level == LevelFull && !strings.Contains(out, "0::/\n") {
		t.Errorf("a command that needs little: %+v, %q", exit, out)
	}
	exit, out = run("sleep 1000 & " + self + " " + probe.Memory + "; echo survived")
	if exit.Hit.Memory != 64<<20 || exit.Signal != "SIGKILL" || strings.Contains(out, "survived") {
		t.Errorf("too much memory: %+v, %q", exit, out)
	}
	if exit, out := run("(" + self + " " + probe.Crowding + ") 2>/dev/null; echo ended"); exit.Hit.Processes != 40 || !strings.Contains(out, "ended") {
		t.Errorf("too many processes: %+v, %q", exit, out)
	}
	// A bomb of processes that ignore SIGTERM and leave their session.
	exit, _ = run("trap '' TERM; b() { b | b & b; }; b 2>/dev/null; true")
	if exit.Hit.Processes != 40 {
		t.Errorf("a fork bomb: %+v", exit)
	}
	if left := alive(t, probe.Memory); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	tree, err := cgroup.Find()
	if err != nil {
		t.Fatal(err)
	}
	if left := tree.Groups(); len(left) > 0 {
		t.Errorf("groups left: %q", left)
	}
}

// BenchmarkGroups is what a control group costs a command.
func BenchmarkGroups(b *testing.B) {
	r := Probe(b.Context(), b.TempDir())
	if r.Groups == nil {
		b.Skip(r.Ungrouped)
	}
	for name, groups := range map[string]*Groups{"with": r.Groups, "without": nil} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(b.Context(), Cmd{Path: "/bin/true", Profile: &Profile{}, Level: r.Level, Groups: groups})
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
				p.End(0)
			}
		})
	}
}

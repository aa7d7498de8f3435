package sandbox

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

// daemons are ways to be left behind. $W is a word by which the test finds the process again, and "ready" is printed
// by each when it is what it wants to be. Who started it may still be there then. The command itself goes on until it is
// ended.
var daemons = map[string]struct {
	text  string
	left  int
	needs string // a program
}{
	"child":              {text: `bash -c 'echo ready; exec sleep $0' $W &`, left: 1},
	"grandchildren":      {text: `bash -c 'bash -c "echo ready; sleep $0; :" $0; :' $W &`, left: 3},
	"session of its own": {text: `setsid bash -c 'echo ready; exec sleep $0' $W &`, left: 1},
	"double fork":        {text: `(setsid bash -c 'echo ready; exec sleep $0' $W &)`, left: 1},
	"no environment":     {text: `(env -i setsid /bin/bash -c 'echo ready; exec /bin/sleep $0' $W &)`, left: 1},
	"deaf":               {text: `(trap "" TERM HUP INT; setsid bash -c 'echo ready; exec sleep $0' $W &)`, left: 1},
	"stopped":            {text: `(setsid bash -c 'echo ready; kill -STOP $$; exec sleep $0' $W &)`, left: 1},
	"name like a stat line": {text: `cp "$(command -v sleep)" './x) S 1 1 1 (y'
		(setsid bash -c 'echo ready; exec "./x) S 1 1 1 (y" $0' $W &)`, left: 1},
	"its own mark gone": {text: `(env -u CODEHAND_TREE setsid bash -c 'echo ready; exec sleep $0' $W &)`, left: 1},
	"python": {needs: "python3", left: 1, text: `cat > d.py <<'E'
import os, sys, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
print("ready", flush=True)
for fd in range(0, 100):
    try: os.close(fd)
    except OSError: pass
time.sleep(3600)
E
python3 d.py $W`},
}

func TestEndDaemons(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	for name, d := range daemons {
		for _, after := range []string{"wait for it", "leave it"} {
			t.Run(name+", "+after, func(t *testing.T) {
				t.Parallel()
				if d.needs != "" {
					if _, err := exec.LookPath(d.needs); err != nil {
						t.Skip("needs", d.needs)
					}
				}
				word, loop := sleepFor(), sleepFor()
				text := d.text + "\nuntil [ -e go ]; do :; done"
				if after == "wait for it" {
					text = d.text + "\nwhile :; do sleep $L; done"
				}
				dir := t.TempDir()
				r := bash(t, dir, text, "W="+word, "L="+loop)
				waitFor(t, "daemon is ready", func() bool { return strings.Contains(r.soFar(t), "ready\n") })
				want := d.left
				if after == "leave it" {
					must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
					r.text(t)
				} else {
					// Before that there is a shell in between, which could be counted in the place of this sleep.
					waitFor(t, "the loop sleeps", func() bool { return len(alive(t, "sleep "+loop)) == 1 })
					want++
				}
				waitFor(t, "all that should run runs", func() bool { return r.Left() == want })
				if got := r.End(50 * time.Millisecond); got != want {
					t.Errorf("%d processes were ended, want %d", got, want)
				}
				ended(t, r, word, loop)
				if r.End(0) != 0 {
					t.Error("a second End found something")
				}
			})
		}
	}
}

// ended waits until r was collected and nothing is left whose command line has one of words: what was killed is gone only
// when the kernel had time for it, and a living process would stay.
func ended(t *testing.T, r run, words ...string) {
	t.Helper()
	for _, word := range words {
		waitFor(t, "nothing survives of "+word, func() bool { return len(alive(t, word)) == 0 })
	}
	waitFor(t, "the tree is empty", func() bool { return r.Left() == 0 })
	select {
	case <-r.Done():
	case <-time.After(hang):
		t.Fatal("the child was not collected")
	}
}

// sleepFor returns a number of seconds that no other process sleeps for.
func sleepFor() string {
	digits := strings.Map(func(r rune) rune { return '0' + r%10 }, rand.Text())
	return "86400." + digits
}

// TestLeftByACommandThatIsGone: a server that was slow finds the command collected already. What the command left is a
// child of the helper then, as the command was, and counts all the same.
func TestLeftByACommandThatIsGone(t *testing.T) {
	t.Parallel()
	for level := LevelLimits; level <= LevelFull; level++ {
		dir := t.TempDir()
		r := confined(t, level, &Profile{Writable: []string{dir}}, dir, "sleep 86400 &")
		r.text(t)
		r.mu.Lock()
		r.tree = newTree(r.helper, r.tree.mark)
		r.mu.Unlock()
		if left, ended := r.Left(), r.End(0); left != 1 || ended != 1 {
			t.Errorf("level %d: %d are left and %d were ended, want 1", level, left, ended)
		}
	}
}

// What ends by itself on SIGTERM gets the time to do so.
func TestEndAsksFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := bash(t, dir, `mkfifo wait; exec 3<>wait; trap 'echo bye; exit 7' TERM; echo ready; while :; do read -t 0.01 -u 3; done`)
	waitFor(t, "trap is set", func() bool { return strings.Contains(r.soFar(t), "ready") })
	r.End(hang)
	ended(t, r)
	if got := r.soFar(t); !strings.HasSuffix(got, "bye\n") || r.Exit().Code != 7 {
		t.Errorf("got %q and %+v, want its own end", got, r.Exit())
	}
}

// Processes that start others when they are asked to end do not outrun End.
func TestEndOutrunsForks(t *testing.T) {
	t.Parallel()
	word := sleepFor()
	r := bash(t, t.TempDir(), `
		again() { trap 'again & again &' TERM; sleep $W & wait; sleep $W & wait; }
		for i in 1 2 3 4; do again & done; echo ready; wait; wait`, "W="+word)
	waitFor(t, "all run", func() bool { return len(alive(t, "sleep "+word)) == 4 })
	r.End(20 * time.Millisecond)
	ended(t, r, word)
}

// A shell whose command gets the SIGTERM before it went on with the next one. /proc names processes by number, and a child has
// a smaller one than its shell when the numbers have begun again.
func TestAskTheShellFirst(t *testing.T) {
	t.Parallel()
	nobody, shell := id{pid: 1 << 30}, id{pid: 1<<30 + 1} // there are no such processes
	members := []member{{id: nobody}, {id: shell}}
	e := ending{child: shell, rush: new(atomic.Pointer[time.Time]), asked: map[id]bool{}, ended: map[id]bool{}}
	looks := 0
	e.look = func() []member {
		if looks++; looks > 1 {
			return nil
		}
		return members
	}
	e.ask(hang)
	if members[0].id != shell || !e.asked[nobody] || !e.asked[shell] {
		t.Errorf("asked in the order %v", members)
	}
}

// A machine that stood still for as long as all rounds may take ended nothing, and saw nothing of what was left.
func TestForceOnASlowMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ there, want int }{
		"obeys":  {there: 2, want: 2 + quietRounds},
		"cannot": {there: 1 << 20, want: forceRounds},
	} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			e := ending{ended: map[id]bool{}, look: func() []member {
				time.Sleep(2 * forceFor)
				if looks++; looks > c.there {
					return nil
				}
				return []member{{id: id{pid: 1 << 30}}} // there is no such process
			}}
			e.force()
			if looks != c.want || len(e.ended) != 1 {
				t.Errorf("%s: %d looks, %d were ended, want %d and 1", name, looks, len(e.ended), c.want)
			}
		})
	}
}

// A tree that is ended does not take others along, also not one that was started by the same process at the same time.
func TestEndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	word := sleepFor()
	other := bash(t, t.TempDir(), "(setsid sleep $W &); echo ready; sleep $W; :", "W="+word)
	waitFor(t, "the other tree runs", func() bool { return len(alive(t, "sleep "+word)) == 2 })
	var wg sync.WaitGroup
	for range 8 {
		r := bash(t, t.TempDir(), "(setsid sleep 86400 &); sleep 86400")
		wg.Go(func() { r.End(0) })
	}
	wg.Wait()
	if left := alive(t, "sleep "+word); len(left) != 2 {
		t.Errorf("the other tree is down to %v", left)
	}
	if got := other.End(0); got != 2 {
		t.Errorf("%d were ended, want 2", got)
	}
}

func TestEndAtOnceFromMany(t *testing.T) {
	t.Parallel()
	r := bash(t, t.TempDir(), "sleep 86400 & sleep 86400 & echo ready; wait")
	waitFor(t, "all run", func() bool { return r.Left() == 2 })
	var mu sync.Mutex
	sum := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			n := r.End(time.Second)
			mu.Lock()
			defer mu.Unlock()
			sum += n
		})
	}
	wg.Wait()
	if sum != 2 {
		t.Errorf("together they ended %d, want 2", sum)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := bash(t, t.TempDir(), `cat /proc/self/oom_score_adj; ulimit -c; ulimit -n; ulimit -f; [ "$(ulimit -x)" != unlimited ] && echo marked`)
	want := "1000\n0\n4096\n6291456\nmarked\n"
	if got := r.text(t); got != want {
		t.Errorf("priority for the killer, core, files, file size: %q, want %q", got, want)
	}
}

// A program may have narrower limits of its own, which hold for what it starts, too.
func TestLimitsOfItsOwn(t *testing.T) {
	t.Parallel()
	out, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := Start(t.Context(), Cmd{
		Path: bashPath(t), Args: []string{"--noprofile", "--norc", "-c", `until [ "$(ulimit -v)" != unlimited ]; do :; done; ulimit -f; ulimit -v; ulimit -t; ulimit -n`}, Env: []string{"PATH=" + defaultPath},
		Stdout: out, Limits: Limits{Memory: 1 << 30, CPU: 1500 * time.Millisecond, File: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End(0) })
	want := "1024\n1048576\n2\n4096\n"
	if got := (run{p, out.Name()}).text(t); got != want {
		t.Errorf("file size, memory, time, files: %q, want %q", got, want)
	}
}

// A file with a hole of a terabyte is not made.
func TestLimitOfFileSize(t *testing.T) {
	t.Parallel()
	r := bash(t, t.TempDir(), `truncate -s 1T big`)
	if r.text(t); r.Exit().Code == 0 {
		t.Error("the file was made")
	}
}

// TestUnusualServers runs this test binary anew, since what it does to itself cannot be taken back.
func TestUnusualServers(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	for _, mode := range []string{"hide", "adopt", "untraced", "late"} {
		f, err := os.Create(filepath.Join(t.TempDir(), mode))
		must(t, err)
		defer f.Close()
		p, err := Start(t.Context(), Cmd{Path: self, Env: []string{childMode + "=" + mode}, Stdout: f, Stderr: f})
		must(t, err)
		<-p.Done()
		p.End(0)
		if p.Exit().Code != 0 {
			text, _ := os.ReadFile(f.Name())
			t.Errorf("%s: %+v: %s", mode, p.Exit(), text)
		}
	}
}

// A service manager that ends a whole group must not take the command's time to end away.
func TestHelperOutlivesSignals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, profile := range []*Profile{nil, {Writable: []string{dir}}} {
		r := confined(t, LevelFull, profile, dir, "until [ -e go ]; do :; done; rm go; echo done")
		for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			must(t, r.helper.process.Signal(s))
		}
		must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
		if got := r.text(t); got != "done\n" {
			t.Errorf("profile %v: got %q and %+v", profile, got, r.Exit())
		}
		r.End(0)
	}
}

// A server that was killed ended nothing itself, and left its commands running. Now the helpers do it.
func TestServerKilled(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	rounds := 5
	if os.Getenv("CODEHAND_LONG") != "" {
		rounds = 200
	}
	for range rounds {
		word, dir := sleepFor(), t.TempDir()
		f, err := os.CreateTemp(t.TempDir(), "output")
		must(t, err)
		server := exec.Command(self)
		server.Env = []string{childMode + "=serve", "W=" + word, "DIR=" + dir, "CI=" + os.Getenv("CI")}
		server.Stdout, server.Stderr = f, f
		must(t, server.Start())
		waitFor(t, "all run", func() bool {
			text, _ := os.ReadFile(f.Name())
			if server.ProcessState != nil || strings.Contains(string(text), "sandbox") {
				t.Fatalf("the server failed: %s", text)
			}
			return string(text) == "serving\n" && len(alive(t, "sleep "+word)) >= 6
		})
		must(t, server.Process.Kill())
		_ = server.Wait() // it was killed
		waitFor(t, "nothing is left of the commands", func() bool { return len(alive(t, word)) == 0 })
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the directory: %v, %v", left, err)
		}
		must(t, f.Close())
	}
}

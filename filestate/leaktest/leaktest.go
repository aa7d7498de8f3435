// Package leaktest guards the tests of a package. It gives a test process a temporary directory of its own, and fails
// it if it leaves goroutines, processes, open files or temporary files behind. If a test process is killed, its
// children are ended. It also reports which tests run long.
//
// Tests import it, and nothing else does. A package uses it by one line:
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
//
// The ideas: a run directory is locked for as long as its process lives, so the next run knows which ones are dead; a
// second process, the reaper, holds a pipe that closes when the test process dies in any way, and cleans up then.
package leaktest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"
)

// runMark is the variable that names the run directory to everything that a test process starts.
const runMark = "CODEHAND_TEST_RUN"

// patience is how long the guard waits for what the last tests started to end, before it calls it a leak.
var patience = 60 * time.Second

// Tests are the tests of a package: a *testing.M.
type Tests interface {
	// Run runs them and returns the exit code.
	Run() int
}

// Main runs the tests of a package under the guard and ends the process. ends run in order after the last test, before
// the guard looks for leaks: for what a package keeps open for all of its tests. If the test binary has other
// entrances, as a helper program of the tests, TestMain takes them before it calls Main.
func Main(m Tests, ends ...func()) {
	os.Exit(Begin(m, ends...).Run())
}

// A Guard is the guard of one test process.
type Guard struct {
	tests Tests
	ends  []func()
	run   *runDir
}

// Begin makes the run directory, sets TMPDIR, starts the reaper, and returns what runs the tests. It is for a TestMain
// that hands its m on to another package; all others call Main. In a process that was started as the reaper it does
// that work and ends the process. It ends the process with a message if it cannot begin.
func Begin(m Tests, ends ...func()) *Guard {
	reapIfAsked()
	run, err := beginRun()
	if err == nil {
		err = startReaper(run)
	}
	if err == nil {
		err = chooseTests()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "leaktest:", err)
		os.Exit(1)
	}
	watchParent()
	hearInterrupts()
	return &Guard{tests: m, ends: ends, run: run}
}

// Run runs the tests and returns the exit code of the process: that of the tests, or 1 if they passed and left
// something behind. Afterwards the run directory is gone, and so is the reaper.
func (g *Guard) Run() int {
	files, entries := openFiles(), g.run.entries()
	running := goleak.IgnoreCurrent()
	code := g.tests.Run()
	for _, end := range g.ends {
		end()
	}
	look := func() []string {
		return slices.Concat(leftGoroutines(running), leftProcesses(g.run), leftOpen(files), g.run.left(entries))
	}
	if code == 0 {
		left := look()
		// What a test has ended may be on its way out. A look reads all of /proc: it must not keep a processor busy.
		wait := 5 * time.Millisecond
		for limit := time.Now().Add(patience); len(left) > 0 && time.Now().Before(limit); left = look() {
			<-time.After(wait)
			wait = min(2*wait, time.Second/4)
		}
		for _, text := range left {
			fmt.Fprintln(os.Stderr, "leaktest:", text)
			code = 1
		}
	}
	kill(g.run.processes())
	g.run.remove()
	endReaper()
	return code
}

// leftGoroutines returns the stacks of goroutines that the tests left, as one text.
func leftGoroutines(running goleak.Option) []string {
	if err := goleak.Find(running); err != nil {
		return []string{"goroutines are left: wait for what the tests start\n" + err.Error()}
	}
	return nil
}

// leftProcesses describes the processes that the tests left. None are found where there is no /proc.
func leftProcesses(run *runDir) (left []string) {
	for _, p := range run.processes() {
		left = append(left, fmt.Sprintf("process %d is left, end what the tests start and wait for it: %s", p.pid,
			commandOf(p.pid)))
	}
	return left
}

// leftOpen names the files that are open and were not before.
func leftOpen(before map[string]bool) (left []string) {
	for _, name := range slices.Sorted(maps.Keys(openFiles())) {
		if _, kept := keptOpen.Load(name); !before[name] && !kept {
			left = append(left, name+" is still open: close what the tests open")
		}
	}
	return left
}

// openFiles are the names of what the descriptors of this process stand for, where the system says it.
func openFiles() map[string]bool {
	names := map[string]bool{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return names
	}
	for _, e := range entries {
		name, err := os.Readlink("/proc/self/fd/" + e.Name())
		// The runtime's poller stays open from its first use on.
		if err != nil || strings.HasPrefix(name, "anon_inode:[event") || strings.HasPrefix(name, "anon_inode:[pidfd") {
			continue
		}
		if strings.HasPrefix(name, "/proc/") && strings.HasSuffix(name, "/fd") { // the listing itself
			continue
		}
		names[name] = true
	}
	return names
}

// Start starts a command and announces it to the reaper. Use it for every process that outlives one call of a test. The
// reaper also finds by itself each process that works in the run directory or has it in its environment.
func Start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	Child(cmd.Process.Pid)
	return nil
}

// Child announces a process that a test started. If the test process dies, the reaper kills it with its descendants
// and, if it leads a process group or a session, all of that. Outside of a guarded run it does nothing. It is safe for
// concurrent use.
func Child(pid int) { known.add(pid) }

// parentDir is the directory that the run directories of all test processes share.
func parentDir(temp string) string { return filepath.Join(temp, "codehand-test") }

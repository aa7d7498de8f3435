package leaktest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// reaperMark makes a test binary the reaper. Its value is the orders as JSON.
const reaperMark = "CODEHAND_TEST_REAPER"

const (
	reapFor = 10 * time.Second // how long the reaper goes on to kill
	// how long it waits for the end of `go`, which may have been killed with its tests
	buildWait = time.Second
	reapPace  = 20 * time.Millisecond // between two looks
	watchPace = 200 * time.Millisecond
)

// farewell is what the reaper reads last if the test process ends by itself.
const farewell = "bye"

// orders are what a reaper must know of the test process.
type orders struct {
	Dir         string // the run directory
	Tests       int    // process id of the test process
	Began       uint64 // when that started
	Parent      int    // process id of `go`
	ParentBegan uint64
	Build       string // directory in which `go` built the test binary; "": another one, which is kept
}

// A child is a process that was announced, and when it started.
type child struct {
	pid   int
	began uint64
}

// children are the announced processes, and the reaper that is told of them.
type children struct {
	mu     sync.Mutex
	list   []child
	pipe   io.WriteCloser // nil: there is no reaper
	reaper *exec.Cmd
}

var known children

func (c *children) add(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pipe == nil {
		return
	}
	began, _ := startOf(pid)
	c.list = append(c.list, child{pid, began})
	fmt.Fprintln(c.pipe, pid, began)
}

func (c *children) all() []child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list[:len(c.list):len(c.list)]
}

// reaperPID is the process id of the reaper; 0: there is none.
func reaperPID() int {
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.reaper == nil {
		return 0
	}
	return known.reaper.Process.Pid
}

// startReaper starts this test binary again as the reaper of this process.
func startReaper(run *runDir) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := orders{Dir: run.dir, Tests: os.Getpid(), Began: run.began, Parent: os.Getppid(),
		Build: buildDir(self, run.temp)}
	o.ParentBegan, _ = startOf(o.Parent)
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), reaperMark+"="+string(text))
	cmd.Dir = run.temp
	ownGroup(cmd) // a kill of the tests' process group spares the reaper
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	known.reaper, known.pipe = cmd, pipe
	return nil
}

// endReaper says farewell to the reaper and waits for its end.
func endReaper() {
	known.mu.Lock()
	defer known.mu.Unlock()
	fmt.Fprintln(known.pipe, farewell)
	_ = known.pipe.Close()
	_ = known.reaper.Wait()
	known.pipe, known.reaper = nil, nil
}

// buildPattern is the path of a test binary below the temporary directory in which `go test` built it.
var buildPattern = regexp.MustCompile(`^go-build[0-9]+[/\\]b[0-9]+[/\\][^/\\]+$`)

// buildDir is the directory that `go test` removes after its run; "" if the test binary lies elsewhere, or `go` does
// not run it itself.
func buildDir(binary, temp string) string {
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-test.fuzzworker") { // its parent is another test process
			return ""
		}
	}
	for _, dir := range []string{temp, os.Getenv("GOTMPDIR")} {
		if rel, err := filepath.Rel(dir, binary); err == nil && buildPattern.MatchString(rel) {
			return filepath.Join(dir, filepath.Dir(filepath.Dir(rel)))
		}
	}
	return ""
}

// reapIfAsked does the work of the reaper and ends the process, if it was started for that.
func reapIfAsked() {
	text := os.Getenv(reaperMark)
	if text == "" {
		return
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		os.Exit(1)
	}
	ignoreSignals()
	if list, alone := listen(os.Stdin); alone {
		o.reap(list)
	}
	os.Exit(0)
}

// listen reads the announcements until the test process ends. alone: it ended without a farewell.
func listen(from io.Reader) (list []child, alone bool) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if lines.Text() == farewell {
			return list, false
		}
		var c child
		if n, _ := fmt.Sscan(lines.Text(), &c.pid, &c.began); n == 2 {
			list = append(list, c)
		}
	}
	return list, true
}

// reap ends what a dead test process started and removes what it made. If `go` is dead, too, what that built goes.
func (o *orders) reap(list []child) {
	tick := time.NewTicker(reapPace)
	defer tick.Stop()
	for limit := time.Now().Add(reapFor); time.Now().Before(limit); <-tick.C {
		left := ofRun(o.Tests, o.Dir, o.Began, list, os.Getpid())
		if len(left) == 0 {
			break
		}
		kill(left)
	}
	discard(o.Dir)
	_ = os.Remove(filepath.Dir(o.Dir))
	if o.Build == "" {
		return
	}
	for limit := time.Now().Add(buildWait); alive(o.Parent, o.ParentBegan) && time.Now().Before(limit); {
		<-tick.C
	}
	if !alive(o.Parent, o.ParentBegan) {
		removeAll(o.Build)
	}
}

// watchParent ends this process soon after `go test` has died, and so everything that it started. (A signal at the
// death of the parent would come when the parent's thread ends that started this process.)
func watchParent() {
	parent := os.Getppid()
	go func() {
		tick := time.NewTicker(watchPace)
		for range tick.C {
			if os.Getppid() != parent {
				fmt.Fprintln(os.Stderr, "leaktest: the process that started the tests has died")
				os.Exit(1)
			}
		}
	}()
}

// Package probe tries, from inside a confined process, what its confinement must forbid. Attempts aim at a Scene of
// canaries that Prepare has made, so one that succeeds harms nothing.
//
// It knows neither levels of confinement nor how a process comes into one: tools/sandbox starts the program itself
// again with Argument, inside each profile, and judges what that says.
package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// Argument makes the program try all Probes in the Scene on its standard input, and write Outcomes to its standard
// output, one line of JSON each.
const Argument = "codehand-probe"

// Canary makes the program a process that others must not reach. It ends with its input.
const Canary = "codehand-probe-canary"

// Memory and Crowding make the program take more memory, or start more threads, than a control group of a probe
// allows. It exits with 0 if nothing stops it. Greed and Crowd are more than that.
const (
	Memory   = "codehand-probe-memory"
	Crowding = "codehand-probe-crowd"
	Greed    = 256 << 20 // bytes
	Crowd    = 256       // threads
)

// daemon detaches the program from its parent. It ends alone, long after the sandbox should have ended it.
const (
	daemon    = "codehand-probe-daemon"
	daemonFor = 5 * time.Second
)

// The probes run before the packages of the server are initialised, which takes longer than they do. In any other
// process this is a comparison or two.
func init() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case Argument:
		os.Exit(Serve(os.Stdin, os.Stdout, Probes()))
	case Canary:
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
		os.Exit(0)
	case Memory:
		takeMemory()
		os.Exit(0)
	case Crowding:
		crowd()
		os.Exit(0)
	case daemon:
		time.Sleep(daemonFor)
		os.Exit(0)
	}
}

// takeMemory uses Greed bytes of memory at once.
func takeMemory() {
	taken := make([]byte, Greed)
	for i := 0; i < len(taken); i += 4096 {
		taken[i] = 1
	}
	runtime.KeepAlive(taken)
}

// crowd has Crowd threads at once. The runtime ends the program if one cannot be started.
func crowd() {
	var ready sync.WaitGroup
	for range Crowd {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			ready.Done()
			time.Sleep(daemonFor)
		}()
	}
	ready.Wait()
}

// A Scene is where attempts take place. All paths are absolute.
type Scene struct {
	Root     string // root of a workspace, with a repository
	Seen     string // readable, not writable
	Unlisted string // neither readable nor writable
	Hidden   string // in Seen, and hidden
	Write    bool   // Root is writable

	Token     string   // content of the file "secret" in each directory, and of a variable of Victim
	Variables []string // names of what the environment may have
	TCP, UDP  int      // ports of 127.0.0.1 with a listener; the second one echoes
	Abstract  string   // abstract socket with a listener, as Go writes it
	Victim    int      // a process of the same user, outside
	// Namespaces outside, as the links in /proc/self/ns name them.
	PIDs, Net, IPC string
}

// An Attempt is one thing that a confined process must not be able to do.
type Attempt struct {
	Name  string
	Level int    // the lowest level that forbids it
	Gap   string // what a report calls it below
	Reads bool   // only a profile without a writable root forbids it
	Saves bool   // only for a profile with a writable root
	// Try does it. Errors: ErrAbsent, or what refused it.
	Try func(*Scene) error
}

// ErrAbsent means that an attempt proves nothing here: what it needs is not there, whether the process is confined or
// not.
var ErrAbsent = errors.New("not possible here")

// An Outcome is how an attempt ended.
type Outcome struct {
	Name    string
	Done    bool   // it succeeded, so nothing stood in its way
	Absent  bool   // it proves nothing
	Refused string // the error otherwise
}

// Applies reports whether an attempt says something about a profile.
func (a Attempt) Applies(write bool) bool { return !(a.Reads && write) && !(a.Saves && !write) }

// Serve reads a Scene, tries what applies and writes the outcomes. It returns the exit code of the process.
func Serve(in io.Reader, out io.Writer, attempts []Attempt) int {
	var s Scene
	if err := json.NewDecoder(bufio.NewReader(in)).Decode(&s); err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	answers := json.NewEncoder(out)
	for _, a := range attempts {
		if a.Applies(s.Write) {
			_ = answers.Encode(outcome(a, &s)) // the parent has closed its end
		}
	}
	return 0
}

// outcome tries one thing on a thread of its own, which ends with it: some attempts change the thread.
func outcome(a Attempt, s *Scene) Outcome {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- a.Try(s)
	}()
	err := <-result
	o := Outcome{Name: a.Name, Done: err == nil, Absent: errors.Is(err, ErrAbsent)}
	if err != nil {
		o.Refused = err.Error()
	}
	return o
}

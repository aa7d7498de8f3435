package agent

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/filestate/owner"
	"codehand/tools/agent/loop"
	"codehand/tools/permission"
)

// A Backend is what executes sub-agents. The zero value executes none.
type Backend string

// The back-ends, in the order in which they are looked for.
const (
	API      Backend = "api"      // a model behind an API
	Program  Backend = "command"  // the command line of another agent
	Sampling Backend = "sampling" // the client's own model
	None     Backend = ""         // there is no sub-agent but a Brief
)

// Options of a Runner.
type Options struct {
	Backend Backend // the only one that may be used; Auto: the first that is available
	Auto    bool

	Model    loop.Model // of API; nil: it is not available
	Models   []string   // that a call may name, the usual one first
	Pick     func(name string) loop.Model
	Command  Command // of Program
	Sampling bool    // Sampling may be used

	Tools func() []Offered // of the server; nil: none

	Limits
	Depth int // of this process below others

	Release func() // gives back what the models hold, when the Runner closes; nil: nothing

	Keep time.Duration    // how long a run that has ended can be gone on with; 0: 30 min
	Now  func() time.Time // nil: time.Now
}

// Limits bound what sub-agents use. A zero allows none.
type Limits struct {
	Depth, Parallel, Queue int
	PerHour                int // of one principal; 0: no limit
	Turns, Tokens          int
	Time                   time.Duration
	MaxOutput              int // tokens of one turn
}

// The errors of a Runner.
var (
	ErrDepth   = errors.New("sub-agents may not start others here")
	ErrQueue   = errors.New("too many sub-agents wait")
	ErrPerHour = errors.New("too many sub-agents were started")
	ErrUnknown = errors.New("no such sub-agent")
	ErrFull    = errors.New("too many messages wait")
	ErrNoReply = errors.New("it keeps no transcript")
	ErrClosed  = errors.New("the server ends")
)

// A Parent is the session that starts a sub-agent.
type Parent struct {
	Principal, Session string
	Depth              int // 0: no sub-agent
	Place              string
	Cwd                string
	Roots              []string
	Mode               permission.Mode
}

// Hands are what the server does for the sub-agents of one call.
type Hands interface {
	// Open opens a session for a sub-agent, or opens it again.
	Open(ctx context.Context, o Opening) (Child, error)
	// Begin tells the operator's hooks that a sub-agent is about to start. added is what they add to its instructions.
	// ended must be called once with how it ended, one of loop's constants. The error says why it must not start.
	Begin(ctx context.Context, id, kind string) (added string, ended func(how string), err error)
	// Sampler is the model of the client that called, for as long as its call waits; nil: it has none. turns is how
	// many answers it gives within this call at most; 0: there is no such limit.
	Sampler() (m loop.Model, turns int)
}

// An Opening says what the session of a sub-agent may do at most.
type Opening struct {
	ID      string // of the sub-agent
	Type    string
	Depth   int
	Tools   []string // names
	Mode    permission.Mode
	Narrows bool // Mode counts besides that of the parent
	Again   bool // it was open before
	Apart   Apart
}

// An Apart is a git work tree of its own, to which the files and commands of a sub-agent are narrowed. The zero value
// is none: it works where its parent does.
type Apart struct {
	Tree       string // canonical
	Repository string // the directory of git that knows Tree and lies outside of it; canonical
}

// A Child is the session of a sub-agent. It is safe for concurrent use.
type Child interface {
	// Do makes a call. What keeps it from being made is the text of its result.
	Do(ctx context.Context, c loop.Call) loop.Result
	// Alone says that the call which started the sub-agent is over, so that no client is there to be asked.
	Alone()
	// Close ends what the session runs. Forget drops what it remembers, too.
	Close()
	Forget()
}

// A Runner runs the sub-agents of a process. It is safe for concurrent use.
type Runner struct {
	Options
	self   owner.Hand // as directories of programs name it
	mu     sync.Mutex
	runs   []*Run // oldest first
	groups map[string]*group
	closed bool
}

// A group is the sub-agents of one principal.
type group struct {
	slots   chan struct{}
	waiting int
	started []time.Time // within the last hour
}

const (
	keepRuns = 30 * time.Minute
	maxRuns  = 200      // that have ended and can be gone on with
	maxKept  = 16 << 20 // bytes of what they know, all together; the newest is kept in any case
)

// New makes a Runner.
func New(o Options) *Runner {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keep <= 0 {
		o.Keep = keepRuns
	}
	r := &Runner{Options: o, groups: map[string]*group{}}
	if len(o.Command.Argv) > 0 {
		r.self = owner.Hand{Process: owner.ProcessOf(os.Getpid()), Host: owner.ThisHost()}
		r.sweepPrograms()
	}
	return r
}

// InForce says who executes sub-agents for a client whose model may be used, or may not.
func (r *Runner) InForce(sampler bool) Backend {
	if r == nil {
		return None
	}
	has := func(b Backend) bool { return r.Auto || r.Options.Backend == b }
	switch {
	case r.Model != nil && has(API):
		return API
	case len(r.Command.Argv) > 0 && has(Program):
		return Program
	case r.Options.Sampling && sampler && has(Sampling):
		return Sampling
	}
	return None
}

// Executor says in a sentence who executes the sub-agents of a session whose client may be asked; "": nobody does.
func (r *Runner) Executor() string {
	switch r.InForce(true) {
	case API:
		return "Here a model executes it: " + r.Models[0] + "."
	case Program:
		return "Here another agent executes it: " + filepath.Base(r.Command.Argv[0]) + "."
	case Sampling:
		return "Here the model of your client executes it, if the client lets it."
	}
	return ""
}

// Deeper says whether a session at this depth may start sub-agents.
func (r *Runner) Deeper(depth int) bool { return r.Options.Depth+depth < r.Limits.Depth }

// tools are those of the server.
func (r *Runner) tools() []Offered {
	if r.Tools == nil {
		return nil
	}
	return r.Tools()
}

// Offer returns the tools that a session whose tools have these names could give to a sub-agent.
func (r *Runner) Offer(names []string) []Offered {
	if r == nil {
		return nil
	}
	var out []Offered
	for _, x := range r.tools() {
		if slices.Contains(names, x.Name) {
			out = append(out, x)
		}
	}
	return out
}

// An Order is what a sub-agent is to do.
type Order struct {
	Parent  Parent
	Hands   Hands
	Backend Backend
	Type    Type
	System  string // the text of the type
	Name    string // "": it has none
	Title   string
	Prompt  string
	Model   string // "": the usual one
	Effort  string
	Tools   []loop.Tool
	Apart   Apart
}

// Start registers a sub-agent. Its Do must be called once, or its Drop. Errors: ErrDepth, ErrQueue, ErrPerHour,
// ErrClosed.
func (r *Runner) Start(o Order) (*Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if !r.Deeper(o.Parent.Depth) {
		return nil, ErrDepth
	}
	g := r.groups[o.Parent.Principal]
	if g == nil {
		g = &group{slots: make(chan struct{}, max(1, r.Parallel))}
		r.groups[o.Parent.Principal] = g
	}
	now := r.Now()
	g.started = slices.DeleteFunc(g.started, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	switch {
	case r.PerHour > 0 && len(g.started) >= r.PerHour:
		return nil, ErrPerHour
	case g.waiting >= r.Parallel+r.Queue:
		return nil, ErrQueue
	}
	g.waiting++
	g.started = append(g.started, now)
	x := &Run{ID: newID(), Apart: o.Apart, order: o, runner: r, group: g, inbox: make(chan string, 16),
		running: true}
	r.sweep(now)
	r.runs = append(r.runs, x)
	return x, nil
}

// sweep forgets what ended too long ago. The caller holds mu.
func (r *Runner) sweep(now time.Time) {
	over, size := 0, 0
	for _, x := range r.runs {
		if x.isOver() {
			over++
			size += x.weighs()
		}
	}
	r.runs = slices.DeleteFunc(r.runs, func(x *Run) bool {
		if !x.isOver() || now.Sub(x.endedAt()) < r.Keep && over <= maxRuns && (size <= maxKept || over == 1) {
			return false
		}
		over--
		size -= x.weighs()
		x.forget()
		return true
	})
}

// find returns the sub-agent of a session by its name, the newest one, or by its id. The caller holds mu.
func (r *Runner) find(p Parent, to string) *Run {
	for _, x := range slices.Backward(r.runs) {
		own := x.order.Parent
		if own.Principal == p.Principal && own.Session == p.Session && (x.ID == to || x.order.Name == to && to != "") {
			return x
		}
	}
	return nil
}

// Names are the sub-agents of a session that can be written to, newest first.
func (r *Runner) Names(p Parent) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(r.Now())
	var out []string
	for _, x := range slices.Backward(r.runs) {
		if own := x.order.Parent; own.Principal == p.Principal && own.Session == p.Session && len(out) < 20 {
			name := x.ID
			if x.order.Name != "" {
				name += " (" + x.order.Name + ")"
			}
			out = append(out, name)
		}
	}
	return out
}

// Send gives a message to a sub-agent of a session. delivered: it runs, and reads it before its next turn. Else it has
// ended, and the Run that is returned goes on with the message once its Do is called. Errors: ErrUnknown, ErrFull,
// ErrNoReply, and those of Start.
func (r *Runner) Send(p Parent, to, message string, hands Hands) (x *Run, delivered bool, err error) {
	r.mu.Lock()
	r.sweep(r.Now())
	x = r.find(p, to)
	closed := r.closed
	r.mu.Unlock()
	switch {
	case closed:
		return nil, false, ErrClosed
	case x == nil:
		return nil, false, ErrUnknown
	case x.order.Backend == Program && (len(r.Command.Resume) == 0 || !x.isOver()):
		return nil, false, ErrNoReply
	}
	return x.send(message, hands)
}

// Holds says whether a session has sub-agents that run.
func (r *Runner) Holds(principal, session string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.runs, func(x *Run) bool {
		return x.order.Parent.Principal == principal && x.order.Parent.Session == session && !x.isOver()
	})
}

// Leave forgets the sub-agents of a session that has ended. Those that run end by the jobs that they are.
func (r *Runner) Leave(principal, session string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = slices.DeleteFunc(r.runs, func(x *Run) bool {
		if x.order.Parent.Principal != principal || x.order.Parent.Session != session || !x.isOver() {
			return false
		}
		x.forget()
		return true
	})
}

// Close starts no sub-agent any more, and gives back what the models hold.
func (r *Runner) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed, r.runs = true, nil
	r.mu.Unlock()
	if r.Release != nil {
		r.Release()
	}
}

// newID returns agent_ and 60 random bits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "agent_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:12]
}

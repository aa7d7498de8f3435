package mounts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/mounts/pins"
	"codehand/tools/mounts/upstream"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A Scope says who shares one connection to a server.
type Scope string

// The scopes.
const (
	PerProcess   Scope = "process"
	PerPrincipal Scope = "principal"
	PerSession   Scope = "session"
)

// A Remote is an MCP server that the operator mounts.
type Remote struct {
	Name  string                           // of [a-z0-9_]
	Reach func() (upstream.Options, error) // where it is now; the error says what is missing
	// Sign adds the tokens of a principal to requests over HTTP; "" is whose process this is. nil, or a nil transport:
	// there are none.
	Sign    func(principal string) (http.RoundTripper, error)
	Scope   Scope         // "": PerProcess
	Only    []string      // names of the tools that count, as the server has them; empty: all
	Listed  []string      // those that are always listed, as the server has them
	Trusted bool          // its hints count
	Eager   bool          // it is started with the process
	Timeout time.Duration // of a call; 0: 2 min
	Start   time.Duration // of a start, with the list of its tools; 0: 1 min
}

// Options of Mounts.
type Options struct {
	Servers []Remote
	Log     *slog.Logger // nil: nothing is logged
	Pins    *pins.Book   // how tools were described when they were first seen; nil: nothing outlives the process
	Shared  bool         // by several people: none of them accepts for the others what a server changed
}

// Mounts are the mounted servers. Its methods are safe for concurrent use. A nil Mounts has none.
type Mounts struct {
	all     []*mount
	pins    *pins.Book
	shared  bool // as in Options
	changed chan struct{}
	ctx     context.Context // of all connections
	stop    context.CancelFunc
	work    sync.WaitGroup
}

// A mount is one of them.
type mount struct {
	Remote
	of  *Mounts
	log *slog.Logger

	mu      sync.Mutex
	links   map[string]*link      // by whom they are shared with
	sum     string                // of what tools were made of; "": none yet
	defined []upstream.Definition // what the server said last
	changed map[string]pins.Pin   // of tools that it described in another way before, by its names for them
	tools   []tool.Tool
	ended   bool

	// until the server answers, tools are what its pins tell of earlier runs. It is set once
	recalled bool
}

// New makes the mounts. Nothing is started.
func New(o Options) *Mounts {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Mounts{changed: make(chan struct{}, 1), pins: o.Pins, shared: o.Shared}
	if m.pins == nil {
		m.pins = pins.New("", nil)
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	for _, s := range o.Servers {
		s.Scope = cmp.Or(s.Scope, PerProcess)
		s.Timeout, s.Start = cmp.Or(s.Timeout, 2*time.Minute), cmp.Or(s.Start, time.Minute)
		x := &mount{Remote: s, of: m, log: o.Log.With("server", s.Name), links: map[string]*link{}}
		x.tools = x.make(m.pins.Known(s.Name), x.lateRunner)
		x.recalled = len(x.tools) > 0
		m.all = append(m.all, x)
	}
	return m
}

// Begin starts the servers that are Eager, in the background.
func (m *Mounts) Begin() {
	if m == nil {
		return
	}
	for _, x := range m.all {
		if x.Eager {
			x.link(session.Key{}).begin()
		}
	}
}

// Names are those of the servers, sorted.
func (m *Mounts) Names() []string {
	if m == nil {
		return nil
	}
	names := make([]string, len(m.all))
	for i, x := range m.all {
		names[i] = x.Name
	}
	slices.Sort(names)
	return names
}

// Tools are those of the servers that have answered, and of others what they had in earlier runs: a call of one starts
// its server.
func (m *Mounts) Tools() []tool.Tool {
	var all []tool.Tool
	for _, x := range m.all {
		x.mu.Lock()
		all = append(all, x.tools...)
		x.mu.Unlock()
	}
	return all
}

// Changed receives after each change of Tools.
func (m *Mounts) Changed() <-chan struct{} { return m.changed }

// Late is the tool of this name for who has not seen Tools since they changed. If its server has not answered yet, so
// that nobody knows what it has, the call starts the server and waits for it; it is taken to change things.
func (m *Mounts) Late(name string) (tool.Tool, bool) {
	for _, x := range m.all {
		if rest, ok := strings.CutPrefix(name, prefix+x.Name+"__"); !ok || rest == "" {
			continue
		}
		if x.known() {
			for _, t := range x.now() {
				if t.Spec.Name == name {
					return t, true
				}
			}
			continue
		}
		t, err := x.late(name)
		return t, err == nil
	}
	return tool.Tool{}, false
}

// Wake starts the servers that a session has not needed yet, in the background.
func (m *Mounts) Wake(key session.Key) {
	if m == nil {
		return
	}
	for _, x := range m.all {
		if l := x.link(key); !x.known() || x.Scope == PerProcess {
			l.begin()
		}
	}
}

const (
	// firstWait is how long after its start a search waits for the tools of a server that it has not named.
	firstWait = 1500 * time.Millisecond
	// namedWait is how long it waits where it needs them.
	namedWait = 5 * time.Second
)

// Await starts the servers and waits for those whose tools are not known, nor were in an earlier run, for a moment
// after their start, and for a longer one with needed. arrived: there are more tools than before. starting are the
// servers that still start.
func (m *Mounts) Await(ctx context.Context, key session.Key, needed func(server string) bool) (
	arrived bool, starting []string) {
	if m == nil {
		return false, nil
	}
	m.Wake(key)
	for _, x := range m.all {
		if x.known() || x.recalled {
			continue
		}
		patience := firstWait
		if needed(x.Name) {
			patience = namedWait
		}
		l := x.link(key)
		if l.await(ctx, patience); x.known() {
			arrived = true
		} else if l.starting() {
			starting = append(starting, x.Name)
		}
	}
	return arrived, starting
}

// Reach starts or reaches a server, and waits until its tools are known. The error says why it cannot be used.
func (m *Mounts) Reach(ctx context.Context, name string) error {
	if m != nil {
		for _, x := range m.all {
			if x.Name == name {
				_, err := x.link(session.Key{}).get(ctx)
				if errors.Is(err, upstream.ErrUnauthorized) && x.Sign != nil {
					return fmt.Errorf("%w; sign in with: codehand mcp login %s", err, name)
				}
				return err
			}
		}
	}
	return fmt.Errorf("there is no server of this name; there are: %s", strings.Join(m.Names(), ", "))
}

// Close ends all connections, and the processes that were started.
func (m *Mounts) Close() {
	if m == nil {
		return
	}
	m.stop()
	var all sync.WaitGroup
	for _, x := range m.all {
		x.mu.Lock()
		x.ended = true
		for _, l := range x.links {
			all.Go(l.close)
		}
		x.mu.Unlock()
	}
	all.Wait()
	m.work.Wait()
}

func (x *mount) known() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sum != ""
}

// link is the connection for the calls of a session.
func (x *mount) link(key session.Key) *link {
	shared, principal := "", ""
	switch x.Scope {
	case PerPrincipal:
		shared, principal = key.Principal, key.Principal
	case PerSession:
		shared, principal = key.Principal+"\x00"+key.Session, key.Principal
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.links[shared]
	if l == nil {
		l = &link{of: x, principal: principal, ended: x.ended}
		x.links[shared] = l
		x.retire()
	}
	return l
}

// mostLinks is how many connections there are to one server. Beyond it those that nobody uses are closed.
const mostLinks = 64

// retire closes connections that nobody uses. x.mu is held.
func (x *mount) retire() {
	for shared, l := range x.links {
		if len(x.links) <= mostLinks {
			return
		}
		if l.idle() {
			delete(x.links, shared)
			x.of.work.Go(l.close)
		}
	}
}

// define takes what a server says that it has.
func (x *mount) define(all []upstream.Definition, left int) {
	raw, err := json.Marshal(all)
	if err != nil {
		x.log.Warn("its list of tools cannot be kept", "cause", err)
		return
	}
	x.mu.Lock()
	same := x.sum == string(raw)
	x.mu.Unlock()
	if same {
		return
	}
	changed := x.hold(x.of.ctx, all)
	x.mu.Lock()
	x.sum, x.defined, x.changed = string(raw), all, changed
	x.tools = x.make(all, x.runner)
	made := len(x.tools)
	x.mu.Unlock()
	if left > 0 {
		x.log.Warn("tools of a mounted server are left out: they cannot be read, run as tasks only, or are too many",
			"tools", left)
	}
	x.log.Info("mounted server answered", "tools", made)
	x.tell()
}

// tell says that Tools changed.
func (x *mount) tell() {
	select {
	case x.of.changed <- struct{}{}:
	default: // a change that nobody has received yet stands for this one, too
	}
}

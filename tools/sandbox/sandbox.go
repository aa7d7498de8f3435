// Package sandbox starts a process with a filtered environment and its own session, and ends its whole tree.
//
// It is the only package that starts programs. On Linux a helper process stands between the server and each command:
// this program itself, started anew (package kernel). It asks the kernel to confine the command to its Profile, adopts
// what the command leaves behind, and ends all of it when the server dies.
//
// A tree is more than a process group: a daemon leaves its group and session and is adopted by init. On Linux each tree
// therefore carries a mark of its own, which every descendant inherits, and its members are found by walking /proc
// (mark.go, tree_linux.go). Elsewhere only the process group is known.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/sandbox/cgroup"
	"codehand/tools/sandbox/kernel"
)

// A Cmd is a program to start. There is no shell between: Args are its arguments.
type Cmd struct {
	Path           string // absolute
	Args           []string
	Env            []string
	Dir            *os.Root // working directory, entered through the handle; nil: the root directory
	Stdin          *os.File // nil: /dev/null
	Stdout, Stderr *os.File // nil: /dev/null
	// Terminal gives the program a terminal of this size in place of its streams, the controlling one of its session.
	// Start fails with ErrTerminal where none can be had: outside of Linux nothing proves how it behaves there. nil: it
	// has none
	Terminal *Window
	Limits   Limits   // besides those that every process has
	Profile  *Profile // how it is confined by the kernel; nil: not at all, which is LevelLimits
	// Level is how far the machine was proven to confine; 0: LevelFull. Start does as much of Profile as this level
	// can, and fails with ErrConfine rather than do less.
	Level Level
	// Groups limits the memory and the processes of the whole tree; nil: nothing does. It needs Profile and
	// LevelKernel: below that, a command could leave its group, so it gets none. A group that cannot be made is
	// ErrConfine.
	Groups *Groups
	// Spares has helpers that wait for a command, so that it starts sooner; nil: each command gets a new one, as it
	// does if none waits.
	Spares *Spares
}

// A Window is how many characters a terminal shows.
type Window = kernel.Window

// Groups is where commands get control groups of their own (Report.Groups).
type Groups = cgroup.Tree

// Bounds are the limits of a control group.
type Bounds = cgroup.Limits

// level is how far c will be confined.
func (c Cmd) level() Level {
	if c.Profile == nil {
		return LevelLimits
	}
	return cmp.Or(c.Level, LevelFull)
}

// argv is what the program sees as its arguments.
func (c Cmd) argv() []string { return append([]string{c.Path}, c.Args...) }

// Limits are for a program that needs little. A zero field adds nothing. They hold before the first instruction, and
// only on Linux: elsewhere its owner bounds what it can, time and output.
type Limits struct {
	Memory int64         // bytes of address space, from just after the start; Go and Node need more than they use
	CPU    time.Duration // of one process, in whole seconds, rounded up; then SIGKILL
	File   int64         // bytes of each file that it writes
}

// An Exit is how the direct child ended.
type Exit struct {
	Code   int    // 128 and the signal's number if a signal ended it, as shells count
	Signal string // "SIGSEGV"; "": it exited
	// Hit says which limits of Cmd.Groups stopped it, and what they are; 0: that one did not. Memory: the kernel ended
	// the whole tree. Processes: a process or thread could not be started, whatever the program made of that.
	Hit Bounds
}

// ErrCommand means that a Cmd cannot be started as it is written.
var ErrCommand = errors.New("not a command that can be started")

// ErrTerminal means that a Cmd cannot have a terminal here.
var ErrTerminal = errors.New("no terminal can be had")

// A Process is a running process tree. It is safe for concurrent use.
type Process struct {
	done   chan struct{}
	exit   Exit          // written before done is closed
	helper *helper       // what stands between; where there is none, it says so
	gone   chan struct{} // closed when the helper was collected
	names  *protection

	ending sync.Mutex // one End at a time, or both would count the same processes
	mu     sync.Mutex // covers tree; never held while waiting
	tree   *tree
	rush   atomic.Pointer[time.Time] // when grace is over at the latest; nil: it was not hastened
}

// Start starts c in a new session and process group, with no open file but its three streams. ctx is only looked at
// before: what ends a process is End, which its owner must call once even after Done, because the child may have left
// processes behind. Errors: ErrCommand, a ctx that has ended, or what the system said.
func Start(ctx context.Context, c Cmd) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(c.Path) || strings.ContainsRune(c.Path+strings.Join(c.Args, "")+strings.Join(c.Env, ""), 0) {
		return nil, fmt.Errorf("start %q: %w", c.Path, ErrCommand)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }() // nothing was written to it

	attr := &os.ProcAttr{Dir: string(filepath.Separator), Files: []*os.File{null, null, null}, Sys: session()}
	for i, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f != nil {
			attr.Files[i] = f
		}
	}
	var dir *os.File
	if c.Dir != nil {
		if dir, err = c.Dir.Open("."); err != nil {
			return nil, fmt.Errorf("open the working directory: %w", err)
		}
		defer func() { _ = dir.Close() }() // only read
	}
	mark := newMark()
	// A fresh slice, because a nil Env would mean the server's own.
	attr.Env = append(append(make([]string, 0, len(c.Env)+1), c.Env...), mark.variable())
	closeOnExec()

	names, err := protect(c)
	if err != nil {
		return nil, fmt.Errorf("%w: protect names: %w", ErrConfine, err)
	}
	h, err := launch(ctx, c, attr, dir, mark)
	if err != nil {
		names.end()
		return nil, err
	}
	p := &Process{
		tree: newTree(h, mark), helper: h, names: names, done: make(chan struct{}), gone: make(chan struct{}),
	}
	go func() {
		p.await()
		c.Spares.fill(c)
	}()
	return p, nil
}

// await learns how the child ended and collects the helper. It ends with the helper, which End ends at the latest.
func (p *Process) await() {
	exit, alone, told := p.helper.exited()
	if told {
		p.mu.Lock()
		p.tree.childEnded(alone)
		p.mu.Unlock()
		p.exit = exit
		close(p.done)
	}
	exit, clean := p.helper.wait()
	p.mu.Lock()
	p.tree.collected(clean)
	p.mu.Unlock()
	if !told {
		p.exit = exit
		close(p.done)
	}
	p.names.end()
	close(p.gone)
}

// Done is closed when the direct child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Listener returns what listens at ProxyAddress of a command with NetworkList, at LevelFull. It is the caller's, who
// closes it. nil: the command has another network, or the level is lower; then it has none.
func (p *Process) Listener() net.Listener { return p.helper.listening }

// Terminal returns our end of the terminal of a Cmd that asked for one: what the program prints can be read there, and
// what is written there is typed. It is the caller's, who closes it. nil: the program has none. Once no process has the
// terminal any more, a read fails.
func (p *Process) Terminal() *os.File { return p.helper.terminal }

// A Program is a process of a tree.
type Program struct {
	Name  string   // of its file, without a directory; where that cannot be read, what it calls itself
	Words []string // its command line, at least one
	Front bool     // it is in front of the terminal, and may read what is typed
}

// Aside follows the name of a protected file that a command made and that was renamed. Random characters follow it.
const Aside = ".refused-"

// Removed returns the protected files that were missing, or links, and that appeared while the command ran, sorted;
// complete after End. Each was renamed at once: Aside was added to its name, and a link was put back. What the command
// made as a link was removed instead, and what is empty after the eighth is removed in the end.
func (p *Process) Removed() []string { return p.names.gone() }

// Settle ends the watch over missing protected names, as of a command that goes on beside what a person does.
func (p *Process) Settle() { p.names.settle() }

// Exit returns how the direct child ended; valid after Done.
func (p *Process) Exit() Exit { return p.exit }

// Left returns how many processes of the tree are running, the direct child not counted.
func (p *Process) Left() int {
	n := 0
	for _, m := range p.look() {
		if m.id != p.tree.child {
			n++
		}
	}
	return n
}

// End ends every process of the tree: SIGTERM, then SIGKILL after grace. It returns how many were ended, the direct
// child not counted. It may be called after Done, to end what the child left running, and more than once. It returns
// at most half a second after grace, later only on a machine that has no time for it, even if a process is left that
// the kernel cannot or may not end (one that waits for a dead disk, one that became another user).
func (p *Process) End(grace time.Duration) int {
	p.ending.Lock()
	defer p.ending.Unlock()
	e := ending{
		look: p.look, cut: p.helper.cut, child: p.tree.child, rush: &p.rush, asked: map[id]bool{}, ended: map[id]bool{},
	}
	e.ask(grace)
	e.force()
	select {
	case <-p.gone:
	case <-time.After(lastWait):
		p.helper.kill()
		wait := slowWait
		if len(p.look()) > 0 {
			wait = lastWait
		}
		select {
		case <-p.gone:
		case <-time.After(wait):
		}
	}
	delete(e.ended, p.tree.child)
	return len(e.ended)
}

// Hasten leaves the End that is under way, and those that come, no more than grace from now on.
func (p *Process) Hasten(grace time.Duration) {
	at := time.Now().Add(grace)
	p.rush.Store(&at)
}

// look finds the living members of the tree.
func (p *Process) look() []member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.look()
}

package cgroup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits are what the processes of one group may have together. A field that is 0 or less is an error: no group is
// without limits.
type Limits struct {
	Memory    int64 // bytes, rounded down to pages; swap is not used
	Processes int   // processes and threads
}

// A Tree is where groups of commands are made. It is safe for concurrent use. A nil Tree makes no groups.
type Tree struct {
	host   *host
	dir    string
	prefix string // of the names of our groups
	limits Limits // of a group that says nothing else

	left *leftovers
}

// leftovers are groups that could not be removed yet, shared by all copies of a Tree.
type leftovers struct {
	mu   sync.Mutex
	dirs []string
}

// tree returns the Tree in dir, after it removed what dead servers left there.
func (h *host) tree(dir string) (*Tree, error) {
	owner, err := h.owner()
	if err != nil {
		return nil, none("%v", err)
	}
	t := &Tree{host: h, dir: dir, prefix: groupPrefix + owner + "-", left: &leftovers{}}
	t.sweep()
	return t, nil
}

// With returns a Tree whose groups have these limits unless New is told others.
func (t *Tree) With(l Limits) *Tree {
	if t == nil {
		return nil
	}
	c := *t
	c.limits = l
	return &c
}

// Limits returns the limits of groups.
func (t *Tree) Limits() Limits {
	if t == nil {
		return Limits{}
	}
	return t.limits
}

// owner names this process for good: its pid namespace, its number and when it was started.
func (h *host) owner() (string, error) {
	space, err := os.Readlink(filepath.Join(h.proc, "self/ns/pid")) // pid:[4026531836]
	if err != nil {
		return "", err
	}
	_, space, _ = strings.Cut(space, "[")
	start := h.started(h.pid)
	if start == "" {
		return "", fmt.Errorf("%s does not say when process %d was started", h.proc, h.pid)
	}
	return strings.TrimSuffix(space, "]") + "-" + strconv.Itoa(h.pid) + "-" + start, nil
}

// started returns when a process was started, in ticks since boot; "": there is none.
func (h *host) started(pid int) string {
	fields := h.stat(pid)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// Groups returns the groups that there are, of whichever server.
func (t *Tree) Groups() []string {
	all, _ := filepath.Glob(filepath.Join(t.dir, groupPrefix+"*")) // the pattern is right
	return all
}

// stat returns what follows the name of a program in its stat (proc_pid_stat(5)): its state, its parent; nil: it is
// gone.
func (h *host) stat(pid int) []string {
	text, err := os.ReadFile(filepath.Join(h.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	// The name, in parentheses, may hold blanks and parentheses itself.
	return strings.Fields(string(text[1+strings.LastIndexByte(string(text), ')'):]))
}

// sweep ends and removes groups of servers of this pid namespace that no longer run.
func (t *Tree) sweep() {
	entries, _ := os.ReadDir(t.dir) // what could be read counts
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), groupPrefix)
		if !ok || strings.HasPrefix(entry.Name(), t.prefix) {
			continue
		}
		fields := strings.Split(rest, "-") // namespace, pid, start, random
		if len(fields) != 4 || !strings.HasPrefix(t.prefix, groupPrefix+fields[0]+"-") {
			continue
		}
		pid, err := strconv.Atoi(fields[1])
		if err != nil || t.host.started(pid) == fields[2] {
			continue
		}
		_ = (&Group{tree: t, dir: filepath.Join(t.dir, entry.Name())}).end(sweepFor) // the next sweep tries again
	}
}

const (
	// removeFor is how long End tries to remove a group whose processes are being ended by the kernel.
	removeFor = time.Second
	// sweepFor is how long each group of a dead server may take.
	sweepFor = 200 * time.Millisecond
	// retryFor is how long a group that could not be removed may take when the next one is made.
	retryFor = time.Millisecond
)

// New makes a group with the limits l; the zero Limits are those of the Tree. nil, nil: the Tree is nil. After an error
// there is no group.
func (t *Tree) New(l Limits) (*Group, error) {
	if t == nil {
		return nil, nil
	}
	if l == (Limits{}) {
		l = t.limits
	}
	if l.Memory <= 0 || l.Processes <= 0 {
		return nil, errors.New("a group needs a limit of memory and of processes")
	}
	t.retry()
	g := &Group{tree: t, dir: filepath.Join(t.dir, t.prefix+rand.Text()), limits: l}
	if err := t.host.mkdir(g.dir); err != nil {
		return nil, err
	}
	if err := g.limit(l); err != nil {
		g.End()
		return nil, err
	}
	return g, nil
}

// retry removes what could not be removed before.
func (t *Tree) retry() {
	t.left.mu.Lock()
	dirs := t.left.dirs
	t.left.dirs = nil
	t.left.mu.Unlock()
	for _, dir := range dirs {
		if (&Group{tree: t, dir: dir}).end(retryFor) != nil {
			t.left.mu.Lock()
			t.left.dirs = append(t.left.dirs, dir)
			t.left.mu.Unlock()
		}
	}
}

// A Group holds the processes of one command. Its methods are for one goroutine at a time. A nil Group has no limits
// and holds nothing.
type Group struct {
	tree   *Tree
	dir    string
	limits Limits
}

// limit sets the limits and reads them back.
func (g *Group) limit(l Limits) error {
	page := int64(os.Getpagesize())
	for _, file := range []struct {
		name, value string
		optional    bool
	}{
		{"memory.oom.group", "1", false},
		{"memory.swap.max", "0", !g.tree.host.swaps()},
		{"memory.max", strconv.FormatInt(max(l.Memory/page, 1)*page, 10), false},
		{"pids.max", strconv.Itoa(l.Processes), false},
	} {
		path := filepath.Join(g.dir, file.name)
		err := g.tree.host.write(path, file.value)
		if file.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(string(text)); got != file.value {
			return fmt.Errorf("%s is %s and not %s", path, got, file.value)
		}
	}
	return nil
}

// swaps reports whether the machine may use swap. What cannot be read counts as yes.
func (h *host) swaps() bool {
	text, err := os.ReadFile(filepath.Join(h.proc, "swaps"))
	return err != nil && !errors.Is(err, fs.ErrNotExist) || strings.Count(string(text), "\n") > 1 // the first is a head
}

// Add moves a process into the group. What it starts afterwards begins there.
func (g *Group) Add(pid int) error {
	if g == nil {
		return nil
	}
	return g.tree.host.write(filepath.Join(g.dir, "cgroup.procs"), strconv.Itoa(pid))
}

// Hit says which limits stopped the processes of the group, and what they are. A field is 0 if its limit did not:
// Memory, that the kernel ended all of them; Processes, that one could not be started.
func (g *Group) Hit() Limits {
	var hit Limits
	if g == nil {
		return hit
	}
	if g.count("memory.events", "oom_kill") > 0 {
		hit.Memory = g.limits.Memory
	}
	if g.count("pids.events", "max") > 0 {
		hit.Processes = g.limits.Processes
	}
	return hit
}

// count returns a number of a file of names and numbers.
func (g *Group) count(file, name string) int {
	words := g.tree.host.list(g.dir, file)
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == name {
			n, _ := strconv.Atoi(words[i+1]) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// End kills what is left in the group and removes it. If the kernel needs longer than a second, the next New of the
// Tree tries again, or the next server.
func (g *Group) End() {
	if g == nil {
		return
	}
	if g.end(removeFor) != nil {
		g.tree.left.mu.Lock()
		defer g.tree.left.mu.Unlock()
		g.tree.left.dirs = append(g.tree.left.dirs, g.dir)
	}
}

func (g *Group) end(most time.Duration) error {
	h, step := g.tree.host, 100*time.Microsecond
	deadline := time.Now().Add(most)
	for round := 0; ; round++ {
		err := h.remove(g.dir) // the usual case: its processes have ended
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		// No process of the group can fork from here on, so none outruns the rounds on kernels without cgroup.kill.
		_ = h.write(filepath.Join(g.dir, "pids.max"), "0")
		if h.write(filepath.Join(g.dir, "cgroup.kill"), "1") != nil {
			g.killEach()
		}
		if round > 0 && time.Now().After(deadline) { // after one look at what the kill did, however busy the machine is
			return err
		}
		time.Sleep(step)
		step = min(2*step, 20*time.Millisecond)
	}
}

// killEach is for kernels before 5.14.
func (g *Group) killEach() {
	pids, _ := g.tree.host.members(g.dir) // what could be read counts
	for _, pid := range pids {
		if pid <= 1 || pid == g.tree.host.pid {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended
			_ = p.Release()
		}
	}
}

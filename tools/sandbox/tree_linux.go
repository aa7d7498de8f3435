package sandbox

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A tree knows how to find the descendants of one child. Process.mu covers it.
type tree struct {
	helper    id // between the server and the child; never a member
	child     id
	mark      mark
	seen      map[id]bool // members at the last look
	gone      bool        // the child was collected: its number may be in use again
	empty     int         // looks in a row that found nothing
	over      bool        // nothing is left, and so nothing can come
	older     map[int]bool
	olderAt   time.Time // when older was begun
	self      int
	ownGroup  int // of the server, never to be touched
	ownLeader int // session of the server, likewise
}

// newTree returns the tree of a command that was just started.
func newTree(h *helper, m mark) *tree {
	t := markedTree(idOf(h.process.Pid), m)
	t.child = idOf(h.childPid())
	t.seen[t.helper], t.seen[t.child] = true, true
	return t
}

// markedTree returns a tree of which nothing is known but its mark, and that it is younger than its helper.
func markedTree(helper id, m mark) *tree {
	t := &tree{helper: helper, mark: m, seen: map[id]bool{}, self: os.Getpid(), ownGroup: syscall.Getpgrp()}
	t.ownLeader, _ = unix.Getsid(0) // cannot fail for oneself
	return t
}

// idOf names a process that was not collected yet.
func idOf(pid int) id {
	s, _ := statOf(pid) // also one that has ended is there until it is collected
	return id{pid: pid, start: s.start}
}

// childEnded is called when the helper has collected the child. alone: the helper has no other child.
func (t *tree) childEnded(alone bool) {
	t.over = t.over || alone
}

// collected is called when the helper was waited for. clean: it had no child left. This is the last look that may use
// the helper's process id; it remembers each process that it finds.
func (t *tree) collected(clean bool) {
	t.over = t.over || clean
	left := t.look()
	t.gone = true
	for len(left) == 0 && !t.over {
		left = t.look()
	}
}

// look finds the living members. A process belongs to the tree if it was seen in it before, carries a mark, descends
// from a member, or shares a session or group with one: those of a member were made inside the tree, since its child
// began with setsid.
func (t *tree) look() []member {
	if t.over {
		return nil
	}
	all := t.younger()
	in := map[int]bool{}
	sessions, groups := map[int]bool{}, map[int]bool{}
	if !t.gone {
		sessions[t.helper.pid], groups[t.helper.pid] = true, true
	}
	admit := func(p stat) {
		in[p.pid] = true
		// 0 is the session of whatever came from outside a container.
		sessions[p.session] = p.session > 0 && p.session != t.ownLeader
		groups[p.group] = p.group > 0 && p.group != t.ownGroup
	}
	spread := func() {
		for grown := true; grown; {
			grown = false
			for _, p := range all {
				if !in[p.pid] && (in[p.parent] || sessions[p.session] || groups[p.group]) {
					admit(p)
					grown = true
				}
			}
		}
	}
	for _, p := range all {
		if t.seen[p.id] {
			admit(p)
		}
	}
	spread()
	for _, p := range all {
		if !in[p.pid] && t.carries(p.pid) {
			admit(p)
		}
	}
	spread()
	living := t.remember(all, in)
	if t.empty++; len(living) > 0 {
		t.empty = 0
	}
	t.over = t.gone && t.empty >= quietRounds
	return living
}

func (t *tree) remember(all []stat, in map[int]bool) []member {
	clear(t.seen)
	var living []member
	for _, p := range all {
		if in[p.pid] {
			t.seen[p.id] = true
			switch {
			case p.id == t.helper:
			case !p.dead:
				living = append(living, member{p.id, p.group})
			case p.parent == t.self:
				// An orphan that was given to us, as the first process of a container: no other process collects it.
				_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
			}
		}
	}
	return living
}

// olderFor is how long a process that is older than the tree is not looked at again. Looks come in bursts, and most of
// a machine's processes are older. A number is not given out anew before all others were, which takes longer.
const olderFor = 100 * time.Millisecond

// younger returns all processes but the server that were not started before the child.
func (t *tree) younger() []stat {
	if time.Since(t.olderAt) > olderFor {
		t.older, t.olderAt = map[int]bool{}, time.Now()
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)   // what could be read counts
	var all []stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == t.self || t.older[pid] {
			continue
		}
		s, ok := statOf(pid)
		switch {
		case ok && s.start >= t.helper.start:
			all = append(all, s)
		case ok:
			t.older[pid] = true
		}
	}
	return all
}

// carries reports whether a process has one of the marks.
func (t *tree) carries(pid int) bool {
	for line := range bytes.Lines(procFile(pid, "limits")) {
		if fields := bytes.Fields(line); len(fields) > 3 && bytes.HasPrefix(line, []byte("Max file locks")) {
			if string(fields[3]) == t.mark.limit() {
				return true
			}
		}
	}
	for v := range bytes.SplitSeq(procFile(pid, "environ"), []byte{0}) {
		if string(v) == t.mark.variable() {
			return true
		}
	}
	return false
}

// A stat is what /proc/<pid>/stat says (proc_pid_stat(5)).
type stat struct {
	id
	parent, group, session int
	dead                   bool // a zombie, or about to be none
}

func statOf(pid int) (stat, bool) {
	text := procFile(pid, "stat")
	// The second field is the program's name in parentheses, which may itself hold blanks and parentheses.
	at := bytes.LastIndexByte(text, ')')
	if at < 0 {
		return stat{}, false
	}
	fields := bytes.Fields(text[at+1:])
	if len(fields) < 20 {
		return stat{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i])) // the kernel writes numbers
		return n
	}
	start, _ := strconv.ParseUint(string(fields[19]), 10, 64)
	state := fields[0][0]
	return stat{
		id:      id{pid, start},
		parent:  number(1),
		group:   number(2),
		session: number(3),
		dead:    state == 'Z' || state == 'X',
	}, true
}

// maxProcFile bounds what is read of one file of a process: an environment may be as large as its owner likes.
const maxProcFile = 1 << 20

// procFile returns nothing for a process that is gone or that we may not look at.
func procFile(pid int, name string) []byte {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read
	text, _ := io.ReadAll(io.LimitReader(f, maxProcFile))
	return text
}

// signal sends s to this very process, not to one that got its number meanwhile: FindProcess holds a pidfd, and the
// start time is compared after it was taken. Errors do not matter, the next look shows what is left.
func (m member) signal(s syscall.Signal) {
	p, err := os.FindProcess(m.pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }() // nothing to lose
	if now, ok := statOf(m.pid); ok && now.id == m.id {
		_ = p.Signal(s)
	}
}

// wake lets a stopped process see its SIGTERM.
func (m member) wake() { m.signal(syscall.SIGCONT) }

// killGroup ends the group of a member in one step, which a program that forks without end cannot outrun.
func (m member) killGroup() {
	if now, ok := statOf(m.pid); ok && now.id == m.id && now.group > 1 && now.group != syscall.Getpgrp() {
		_ = syscall.Kill(-now.group, syscall.SIGKILL) // the next look shows what is left
	}
}

// startOf returns when a process was started, in clock ticks since boot; 0: there is none.
func startOf(pid int) uint64 {
	s, _ := statOf(pid)
	return s.start
}

func running(pid int) bool {
	s, ok := statOf(pid)
	return ok && !s.dead
}

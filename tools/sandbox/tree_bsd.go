//go:build unix && !linux

package sandbox

import (
	"errors"
	"syscall"
)

// A tree is the process group of the child: these systems do not tell more about others' processes without asking
// for each one. A daemon that leaves the group is not found.
type tree struct {
	child id
	gone  bool // the child was collected
	over  bool
}

func newTree(h *helper, _ mark) *tree { return &tree{child: id{pid: h.process.Pid}} }

func (t *tree) childEnded(bool) {} // only a helper tells

// collected notes whether the child left processes in its group. While one is there, the system does not reuse the
// number of the group.
func (t *tree) collected(bool) {
	t.gone = true
	t.look()
}

// look returns the group as a single member: the child while it is there, then an unknown number of others.
func (t *tree) look() []member {
	if t.over || syscall.Kill(-t.child.pid, 0) != nil {
		t.over = true
		return nil
	}
	m := member{id: t.child, group: t.child.pid}
	if t.gone {
		m.id = id{pid: -t.child.pid}
	}
	return []member{m}
}

func (m member) signal(s syscall.Signal) { _ = syscall.Kill(-m.group, s) } // the next look shows what is left

func (m member) wake() { m.signal(syscall.SIGCONT) }

func (m member) killGroup() {} // signal does

func startOf(int) uint64 { return 0 }

// running also holds for a process of another user, which may not be asked.
func running(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

package tenants

import (
	"path/filepath"
	"sync"

	"codehand/filestate/lock"
	"codehand/server/auth"
	"codehand/tools/session"
	"codehand/tools/tasks"
)

// taskLists are the shared lists of tasks of a process, by directory: its sessions at one list are served in order. It
// is safe for concurrent use, and its zero value is empty.
type taskLists struct {
	mu   sync.Mutex
	open map[string]*tasks.Directory
}

// TasksCell is the list of tasks of a session that shares none.
const TasksCell = "cell.tasks"

// TaskList returns the list of a session: its own, or its principal's if the operator shares lists. The person who
// started this process has the directory itself, together with that person's other processes. Every other principal has
// a directory of its own below it.
func (m *Maker) TaskList(t *Tenant, memory session.Memory) tasks.List {
	dir := m.Config.Tasks.Directory
	if dir == "" {
		return tasks.New(session.NewCell[tasks.Book](memory, TasksCell))
	}
	if t.Who.Via != auth.ModeNone {
		dir = filepath.Join(dir, auth.Slug(t.Who.ID))
	}
	l := &m.shared
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.open[dir]
	if d == nil {
		d = tasks.NewDirectory(dir, tasks.DirectoryOptions{
			Locker: lock.New(tasks.Locks(dir)), Fast: m.Config.Write.Durability == "fast",
		})
		if l.open == nil {
			l.open = map[string]*tasks.Directory{}
		}
		l.open[dir] = d
	}
	return tasks.New(d)
}

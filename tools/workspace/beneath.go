package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// maxAgain is how often the kernel is asked anew when something moved while it resolved a path.
const maxAgain = 8

// A shortcut opens a directory deep below a root with one question to the kernel, where it can: through no link, and
// never outside. It is shared by all copies of a Space and safe for concurrent use. Whatever it does not open, a walk
// does, one component at a time; so it decides nothing, and is only faster (BenchmarkOpen).
type shortcut struct {
	off atomic.Bool // this kernel has it not, or a filter forbids it
}

// leap goes to the last directory on the way that todo begins, below the area a, if it can. The walk then stands there,
// as if it had come by steps.
func (w *walk) leap(a *area, todo []string) (bool, error) {
	down := len(todo)
	if i := slices.Index(todo, ".."); i >= 0 {
		down = i
	}
	down-- // the last one is looked at by the walk
	if down < 1 || a.readOnly || a.file || w.space.short.off.Load() {
		return false, nil
	}
	way := filepath.Join(todo[:down]...)
	dir, err := a.beneath(w.space.short, way)
	if dir == nil || err != nil {
		return false, err
	}
	w.dir, w.at, w.todo = dir, filepath.Join(a.path, way), todo[down:]
	w.steps += down
	return true, nil
}

// beneath opens the directory way below a root. nil: only a walk can tell.
func (a *area) beneath(short *shortcut, way string) (dir *os.Root, err error) {
	if a.within != nil {
		return a.within.beneath(short, filepath.Join(filepath.Join(a.rest...), way))
	}
	err = a.fresh(func() error {
		dir = short.open(a.handle, way)
		return nil
	})
	return dir, err
}

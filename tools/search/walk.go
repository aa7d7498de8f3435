package search

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"codehand/tools/search/ignore"
	"codehand/tools/search/index"
)

const (
	// shareBatch is how many files a worker takes on before it looks whether another one is idle.
	shareBatch = 64
	// leftChecked is how many names left over are looked at for Coverage.Left, which is a lower bound.
	leftChecked = 1000
)

// A walk hands the files below a directory to workers. Paths are slash paths below that directory, "" is itself.
type walk struct {
	scope  Scope
	filter filter
	skip   map[string]bool // SkipDirs
	top    *shared
	halt   *halt
	log    *ledger
	ex     excludes
	memory *memory

	leads  func(rel string) bool // nil, or: a directory can have files that are wanted
	named  func(rel string) bool // nil, or: a file of that name is wanted
	start  func()                // starts one more worker
	behind func(rel string) bool // nil, or: rel comes later than all that the answer needs
	fixed  func()                // called once, when all that is left is behind
	worked func()                // nil, or called for each directory

	mu      sync.Mutex
	wake    *sync.Cond
	stack   []item // last in, first out: one worker alone goes in path order
	later   []item // behind
	busy    int    // items in work
	counted bool   // what was behind is searched now, too
	idle    atomic.Int32
	spare   atomic.Int32 // workers that may still be started; falls under mu
}

// An item is a directory to read, or some files of one.
type item struct {
	rel   string
	rules *ignore.Stack // of a directory: without its own files
	out   bool          // of a directory: ignore files leave it out
	files []listed      // nil: a directory
	in    *index.Dir    // that the files are listed in
	dir   *shared       // of the files; nil: to be opened
}

// A listed is a file of a listing.
type listed struct {
	rel    string
	number int // of its entry
}

// A visitor is called once for each file that a worker takes.
type visitor func(d *shared, in *index.Dir, f listed)

// A shared folder is closed by its last user.
type shared struct {
	folder
	users   atomic.Int32
	trusted bool // see folder.trusts
	// of a listing that is remembered: which files need not be looked at; nil: none
	calm *index.Calm
}

func (s *shared) retain() *shared {
	s.users.Add(1)
	return s
}

func (s *shared) release() {
	if s.users.Add(-1) == 0 {
		s.close()
	}
}

// hire starts workers for n further items, beside those that are idle. mu is held.
func (w *walk) hire(n int) {
	for n -= int(w.idle.Load()); n > 0 && w.spare.Load() > 0; n-- {
		w.spare.Add(-1)
		w.start()
	}
}

// work is one worker.
func (w *walk) work(visit visitor) {
	for {
		it, ok := w.take()
		if !ok {
			return
		}
		if it.files == nil {
			w.directory(visit, it)
		} else {
			w.batch(visit, it)
		}
		w.done()
	}
}

// take waits for an item. false: the walk is at its end, or stopped.
func (w *walk) take() (item, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.halt.stopped():
			return item{}, false
		case len(w.stack) > 0:
			it := w.stack[len(w.stack)-1]
			w.stack = w.stack[:len(w.stack)-1]
			if it.files == nil && it.rel != "" && w.putOff(it) {
				continue
			}
			w.busy++
			return it, true
		case w.busy > 0:
			w.idle.Add(1)
			w.wake.Wait()
			w.idle.Add(-1)
		case len(w.later) > 0:
			w.counted = true
			w.stack, w.later = w.later, nil
			w.hire(len(w.stack) - 1)
			w.fixed()
		default:
			w.wake.Broadcast()
			return item{}, false
		}
	}
}

// putOff keeps an item for later if all of it is behind what the answer needs. mu is held.
func (w *walk) putOff(it item) bool {
	if w.behind == nil || w.counted || !w.behind(it.rel) {
		return false
	}
	w.later = append(w.later, it)
	return true
}

func (w *walk) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	if w.busy == 0 && len(w.stack) == 0 {
		w.wake.Broadcast()
	}
}

func (w *walk) push(items ...item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, items...)
	w.wake.Broadcast()
	w.hire(len(items))
}

// stopWaiting wakes all workers, after a stop.
func (w *walk) stopWaiting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake.Broadcast()
}

// batch hands files to the visitor, and half of them to another worker that has nothing to do.
func (w *walk) batch(visit visitor, it item) {
	if it.dir == nil {
		var ok bool
		if it.dir, ok = w.open(it.rel); !ok {
			return
		}
	}
	defer it.dir.release()
	var behind []listed
	for i := 0; i < len(it.files); i++ {
		if rest := len(it.files) - i; i%shareBatch == 0 && rest > shareBatch && w.idle.Load()+w.spare.Load() > 0 {
			half := i + (rest+1)/2
			w.push(item{rel: it.rel, files: it.files[half:], in: it.in, dir: it.dir.retain()})
			it.files = it.files[:half]
		}
		switch {
		case w.halt.stopped():
			w.leaveFiles(it.files[i:])
			i = len(it.files)
		case w.isBehind(it.files[i].rel):
			behind = append(behind, it.files[i])
		default:
			visit(it.dir, it.in, it.files[i])
		}
	}
	w.keepForLater(item{rel: it.rel, files: behind, in: it.in})
}

func (w *walk) isBehind(rel string) bool {
	if w.behind == nil || !w.behind(rel) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.counted
}

// keepForLater notes files without their open directory: there may be many.
func (w *walk) keepForLater(it item) {
	if len(it.files) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counted {
		w.stack = append(w.stack, it)
		w.wake.Broadcast()
		w.hire(1)
		return
	}
	w.later = append(w.later, it)
}

// abs makes an absolute path.
func (w *walk) abs(rel string) string { return joinPath(w.scope.Place.Path, rel) }

func (w *walk) hidden(rel string) bool { return w.scope.Skip != nil && w.scope.Skip(w.abs(rel)) }

// note counts a path in the Coverage, unless it must not be mentioned.
func (w *walk) note(field func(*Coverage) *Some, rel string) {
	if !w.hidden(rel) {
		w.log.note(field, w.abs(rel))
	}
}

// leave counts what was not visited, if time is the reason.
func (w *walk) leave(rel string) {
	if why, _ := w.halt.reason(); why == timeUp {
		w.note(ofLeft, rel)
	}
}

func (w *walk) leaveFiles(files []listed) {
	for _, f := range files[:min(len(files), leftChecked)] {
		w.leave(f.rel)
	}
}

// leaveRest counts what is still queued. Directories on the stack have passed Skip; files are asked now.
func (w *walk) leaveRest() {
	w.mu.Lock()
	rest := slices.Concat(w.stack, w.later)
	w.stack, w.later = nil, nil
	w.mu.Unlock()
	for i, it := range rest {
		switch {
		case it.files == nil:
			if why, _ := w.halt.reason(); why == timeUp {
				w.log.note(ofLeft, w.abs(it.rel))
			}
		case i < leftChecked/shareBatch:
			w.leaveFiles(it.files)
		}
		if it.dir != nil {
			it.dir.release()
		}
	}
}

// joinPath joins slash paths; rel may be empty.
func joinPath(dir, rel string) string {
	switch {
	case rel == "":
		return dir
	case dir == "" || strings.HasSuffix(dir, "/"):
		return dir + rel
	}
	return dir + "/" + rel
}

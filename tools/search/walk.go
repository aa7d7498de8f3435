package search

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/search/ignore"
)

const (
	// readBatch is how many names are read from a directory at once.
	readBatch = 1024
	// nameBatch is how many names of one directory are held together, so that a million files in one need no memory for
	// a million names.
	nameBatch = 8192
	// shareBatch is how many files a worker takes on before it looks whether another one is idle.
	shareBatch = 64
	// leftChecked is how many names left over are looked at for Coverage.Left, which is a lower bound.
	leftChecked = 1000
	// fullWait is how long a directory waits for a free descriptor.
	fullWait = time.Second
)

// vcsNames are never entered nor searched.
var vcsNames = map[string]bool{".git": true, ".svn": true, ".hg": true, ".bzr": true, ".jj": true, ".sl": true}

// A walk hands the files below a directory to workers. Paths are slash paths below that directory, "" is itself.
type walk struct {
	scope  Scope
	filter filter
	skip   map[string]bool // SkipDirs
	top    *shared
	rules  *ignore.Stack // of what lies above the directory
	halt   *halt
	log    *ledger
	ex     excludes

	leads  func(rel string) bool                        // nil, or: a directory can have files that are wanted
	visit  func(worker int, d folder, rel, name string) // called from many goroutines, once for each file
	behind func(rel string) bool                        // nil, or: rel comes later than all that the answer needs
	fixed  func()                                       // called once, when all that is left is behind

	mu      sync.Mutex
	wake    *sync.Cond
	stack   []item // last in, first out: one worker alone goes in path order
	later   []item // behind
	busy    int    // items in work
	counted bool   // what was behind is searched now, too
	idle    atomic.Int32
}

// An item is a directory to read, or some files of one.
type item struct {
	rel   string
	rules *ignore.Stack // of a directory: without its own files
	names []string      // nil: a directory
	dir   *shared       // of the names; nil: to be opened
}

// A shared folder is closed by its last user.
type shared struct {
	folder
	users atomic.Int32
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

// work is one worker.
func (w *walk) work(worker int) {
	for {
		it, ok := w.take()
		if !ok {
			return
		}
		if it.names == nil {
			w.directory(worker, it)
		} else {
			w.batch(worker, it)
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
			if it.names == nil && it.rel != "" && w.putOff(it) {
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
}

// stopWaiting wakes all workers, after a stop.
func (w *walk) stopWaiting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake.Broadcast()
}

// directory reads one directory, hands its files on, and puts its directories on the stack.
func (w *walk) directory(worker int, it item) {
	dir, ok := w.open(it.rel)
	if !ok {
		return
	}
	defer dir.release()
	d := dir.folder
	var rules *ignore.Stack
	for first := true; ; first = false {
		entries, last, err := w.entries(d)
		if first && !w.scope.Ignored {
			rules = w.rulesOf(d, it, entries, last)
		}
		if len(entries) > 0 {
			files := w.sort(it.rel, rules, entries)
			w.batch(worker, item{rel: it.rel, names: files, dir: dir.retain()})
		}
		switch {
		case err != nil:
			w.note(ofUnreadable, it.rel)
			return
		case last:
			return
		case w.halt.stopped():
			w.leave(it.rel)
			return
		}
	}
}

// open opens a directory of the walk, to be released. false: it was counted, or is gone.
func (w *walk) open(rel string) (*shared, bool) {
	if rel == "" {
		return w.top.retain(), true
	}
	d, err := w.top.below(rel)
	for wait := time.Millisecond; full(err) && wait < fullWait && !w.halt.stopped(); wait *= 2 {
		time.Sleep(wait) // until another directory is closed
		d, err = w.top.below(rel)
	}
	switch {
	case err == nil:
		return (&shared{folder: d}).retain(), true
	case errors.Is(err, errSystem):
		w.note(ofSpecial, rel)
	case !vanished(err):
		w.note(ofUnreadable, rel)
	}
	return nil, false
}

// entries reads the next names of a directory, up to nameBatch, sorted.
func (w *walk) entries(d folder) (entries []fs.DirEntry, last bool, err error) {
	for len(entries) < nameBatch {
		more, err := d.entries(readBatch)
		entries = append(entries, more...)
		if err != nil || len(more) == 0 {
			if isEnd(err) {
				err = nil
			}
			slices.SortFunc(entries, byName)
			return entries, true, err
		}
	}
	slices.SortFunc(entries, byName)
	return entries, false, nil
}

func byName(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }

// sort decides about entries: directories go to the stack, names of files are returned, the rest is counted or dropped.
func (w *walk) sort(rel string, rules *ignore.Stack, entries []fs.DirEntry) []string {
	files := make([]string, 0, len(entries))
	var dirs []item
	for _, e := range entries {
		name := e.Name()
		if !goodName(name) || vcsNames[name] {
			continue
		}
		below := joinPath(rel, name)
		switch kind := e.Type(); {
		case kind.IsDir():
			if w.enters(below, name, rules) {
				dirs = append(dirs, item{rel: below, rules: rules})
			}
		case !w.wants(below, rules):
		case kind.IsRegular():
			files = append(files, name)
		default:
			w.note(ofSpecial, below)
		}
	}
	slices.Reverse(dirs)
	if len(dirs) > 0 {
		w.push(dirs...)
	}
	return files
}

// goodName refuses what no file system of the kernel's own gives, but a hostile one may.
func goodName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// enters decides about a directory.
func (w *walk) enters(rel, name string, rules *ignore.Stack) bool {
	if w.skip[name] || w.leads != nil && !w.leads(rel) || w.filter.excludesDir(rel) || rules.Ignored(w.abs(rel), true) {
		return false
	}
	if w.scope.Omit.Match(rel, true) == ignore.Ignore {
		w.note(ofOmitted, rel)
		return false
	}
	return !w.hidden(rel)
}

// wants decides about a file by its name.
func (w *walk) wants(rel string, rules *ignore.Stack) bool {
	in, sure := w.filter.file(rel)
	if !in || !sure && rules.Ignored(w.abs(rel), false) {
		return false
	}
	if w.scope.Omit.Match(rel, false) == ignore.Ignore {
		w.note(ofOmitted, rel)
		return false
	}
	return true
}

// batch hands files to the visitor, and half of them to another worker that has nothing to do.
func (w *walk) batch(worker int, it item) {
	if it.dir == nil {
		var ok bool
		if it.dir, ok = w.open(it.rel); !ok {
			return
		}
	}
	defer it.dir.release()
	var behind []string
	for i := 0; i < len(it.names); i++ {
		if rest := len(it.names) - i; i%shareBatch == 0 && rest > shareBatch && w.idle.Load() > 0 {
			half := i + (rest+1)/2
			w.push(item{rel: it.rel, names: it.names[half:], dir: it.dir.retain()})
			it.names = it.names[:half]
		}
		rel := joinPath(it.rel, it.names[i])
		switch {
		case w.halt.stopped():
			w.leaveNames(it.rel, it.names[i:])
			i = len(it.names)
		case w.isBehind(rel):
			behind = append(behind, it.names[i])
		default:
			w.visit(worker, it.dir.folder, rel, it.names[i])
		}
	}
	w.keepForLater(it.rel, behind)
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
func (w *walk) keepForLater(rel string, names []string) {
	if len(names) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counted {
		w.stack = append(w.stack, item{rel: rel, names: names})
		w.wake.Broadcast()
		return
	}
	w.later = append(w.later, item{rel: rel, names: names})
}

// abs makes an absolute path.
func (w *walk) abs(rel string) string { return joinPath(w.scope.Place.Path, rel) }

func (w *walk) hidden(rel string) bool { return w.scope.Skip != nil && w.scope.Skip(w.abs(rel)) }

// note counts a path in the Coverage, unless nobody may know of it.
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

func (w *walk) leaveNames(rel string, names []string) {
	for _, name := range names[:min(len(names), leftChecked)] {
		w.leave(joinPath(rel, name))
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
		case it.names == nil:
			if why, _ := w.halt.reason(); why == timeUp {
				w.log.note(ofLeft, w.abs(it.rel))
			}
		case i < leftChecked/shareBatch:
			w.leaveNames(it.rel, it.names)
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

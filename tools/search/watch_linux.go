package search

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"codehand/tools/search/index"
)

const (
	// maxWatches is how many directories are watched at most; a user's limit of the system is used by half.
	maxWatches = 65_536
	watchMask  = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE |
		unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
)

// unwatchedTypes are trusted file systems of which inotify does not tell everything: below an overlay, events may go to
// the file of a lower layer.
var unwatchedTypes = map[int64]bool{unix.OVERLAYFS_SUPER_MAGIC: true}

// tells says whether inotify tells of each change on the directory's file system.
func (d folder) tells() bool {
	var st unix.Statfs_t
	//nolint:unconvert // int32 on some architectures
	return unix.Fstatfs(d.fd, &st) == nil && trustedTypes[int64(st.Type)] && !unwatchedTypes[int64(st.Type)]
}

// A watcher knows in which directories something happened. Nothing reads its events but a query that begins, so that
// they cost nothing between queries; if there were too many to be kept, all directories count as changed. It is safe
// for concurrent use.
type watcher struct {
	mu    sync.Mutex
	fd    int // -1: there are no watches
	room  int // for further watches
	count uint64
	all   uint64 // of the last event that can concern every directory
	ids   map[int32]index.ID
	last  map[index.ID]uint64 // of the last event of a directory, or of its watch
	buf   []byte
}

// newWatcher returns a watcher; nil: the system gives none.
func newWatcher() *watcher {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &watcher{fd: fd, room: watchRoom(), ids: map[int32]index.ID{}, last: map[index.ID]uint64{},
		buf: make([]byte, 64<<10)}
}

// watchRoom is how many watches may be set.
func watchRoom() int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	n, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || convErr != nil {
		return 0
	}
	return min(n/2, maxWatches)
}

// drain takes down what has happened until now: the kernel queues an event before the call that causes it returns.
func (w *watcher) drain() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.fd >= 0 {
		n, err := retry(func() (int, error) { return unix.Read(w.fd, w.buf) })
		if err != nil || n < unix.SizeofInotifyEvent {
			if err != nil && !errors.Is(err, unix.EAGAIN) {
				w.end()
			}
			return
		}
		w.events(w.buf[:n])
	}
}

// events reads what the kernel tells. mu is held.
func (w *watcher) events(all []byte) {
	for len(all) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(all)) //nolint:gosec // it is one
		mask := binary.NativeEndian.Uint32(all[4:])
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(all[12:]))
		all = all[min(size, len(all)):]
		w.count++
		id, known := w.ids[wd]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			w.all = w.count
		case !known:
		case mask&unix.IN_IGNORED != 0: // the directory is gone, or its file system
			delete(w.ids, wd)
			delete(w.last, id)
			w.room++
		default:
			w.last[id] = w.count
		}
		// What is new may be another name of a file that is known, or a directory with such names, through which it can
		// change unseen.
		if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
			w.all = w.count
		}
	}
}

// since names the time that has passed in a directory: as long as it is the same, nothing has happened to the directory
// or a file in it. 0: that is not known. It begins to watch it, if there is room. Only what drain took down counts.
func (w *watcher) since(d folder, id index.ID) uint64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, known := w.last[id]; known {
		return max(last, w.all)
	}
	if w.fd < 0 || w.room <= 0 {
		return 0
	}
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(d.fd), watchMask)
	if err != nil {
		w.room = 0 // ENOSPC: the user has no more
		return 0
	}
	w.room--
	w.count++
	w.ids[int32(wd)], w.last[id] = id, w.count //nolint:gosec // the kernel's type
	return w.count
}

// close gives all watches back.
func (w *watcher) close() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end()
	}
}

// end is close. mu is held.
func (w *watcher) end() {
	if w.fd >= 0 {
		_ = unix.Close(w.fd) // nothing was written
	}
	w.fd, w.ids, w.last = -1, nil, nil
}

// watched is how many directories are watched.
func (w *watcher) watched() int {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.last)
}

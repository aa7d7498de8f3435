package kernel

import (
	"encoding/binary"
	"errors"
	slash "path"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// When a file is removed outside, or another one renamed onto it, the kernel takes away what is mounted over its name
// here. A git, an editor or a server outside does that, and a command that still runs could change, or read, the new
// file. So the helper covers each name again as soon as something appears there.

// watched are the names on the way to covers.
type watched struct {
	inotify int                        // -1: the user has as many as are allowed
	blind   bool                       // the kernel does not tell of every name
	dirs    map[int32]string           // by their descriptors
	names   map[string]map[string]bool // by the directory that has them
}

// coverAfter is how long a command runs before its names are watched. The end of a watch takes the kernel some 15 ms.
const coverAfter = 250 * time.Millisecond

// listen opens what watches names, before the command can take all that its user may have.
func (w *world) listen() {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		fd = -1
	}
	w.names = &watched{inotify: fd, blind: err != nil, dirs: map[int32]string{}, names: map[string]map[string]bool{}}
}

// watch begins to queue what appears on the way to covers.
func (w *world) watch() {
	for _, c := range w.covers {
		if c.free {
			continue
		}
		w.names.add(c.path)
		if real := c.real(); real != c.path {
			w.names.add(real)
		}
	}
}

// real is what is covered; "": nothing is there.
func (c *cover) real() string {
	if c.linked {
		return c.path
	}
	path, err := (&world{links: map[string]string{}}).resolve(c.path)
	if err != nil {
		return ""
	}
	return path
}

func (n *watched) add(path string) {
	for path != "" && path != "/" {
		dir, name := slash.Dir(path), slash.Base(path)
		if n.names[dir] == nil {
			n.names[dir] = map[string]bool{}
			n.follow(dir)
		}
		n.names[dir][name] = true
		path = dir
	}
}

// follow watches a directory, if it is there.
func (n *watched) follow(dir string) {
	wd, err := unix.InotifyAddWatch(n.inotify, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
	if err == nil {
		n.dirs[int32(wd)] = dir
	} else if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
		n.blind = true
	}
}

// coverAgain covers what appears, until the process ends. Where the kernel has no watches left, it looks by itself,
// with a tenth of a processor at most.
func (w *world) coverAgain() {
	time.Sleep(coverAfter)
	debug.SetGCPercent(100) // other helpers end before there is garbage
	w.watch()
	w.restore("/") // what has appeared meanwhile
	pause := coverAfter
	events := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for {
		if w.names.blind {
			time.Sleep(pause)
			began := time.Now()
			w.names.blind = w.names.inotify < 0 // others may have given watches back
			w.restore("/")
			pause = max(coverAfter, 9*time.Since(began))
			continue
		}
		n, err := unix.Read(w.names.inotify, events)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		for rest := events[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			dir := w.names.dirs[int32(binary.NativeEndian.Uint32(rest))]
			lost := binary.NativeEndian.Uint32(rest[4:])&unix.IN_Q_OVERFLOW != 0
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name, _, _ := strings.Cut(string(rest[unix.SizeofInotifyEvent:end]), "\x00")
			rest = rest[end:]
			if !lost && !w.names.names[dir][name] {
				continue
			}
			if lost {
				dir, name = "/", ""
			}
			w.restore(slash.Join(dir, name))
		}
	}
}

// restore covers what is not covered of what lies at or below a path, or is reached over it. What cannot be covered is
// gone again, or was covered by no mount before.
func (w *world) restore(path string) {
	w.held = nil // any of them may be gone
	for dir := range w.names.names {
		if inside(dir, path) { // before what is in it is looked at
			w.names.follow(dir)
		}
	}
	for i := range w.covers {
		c := &w.covers[i]
		real := c.real()
		if !c.free && (inside(c.path, path) || inside(real, path)) && !covered(real) {
			_ = c.put(c)
		}
	}
}

// covered says whether something is mounted at a path through which nothing can be changed.
func covered(path string) bool {
	at, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(at) }()
	var stat unix.Statfs_t
	return isMount(at, "") && unix.Fstatfs(at, &stat) == nil && stat.Flags&unix.ST_RDONLY != 0
}

// isMount says whether something is mounted at a path below dir.
func isMount(dir int, path string) bool {
	var info unix.Statx_t
	err := unix.Statx(dir, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, 0, &info)
	return err == nil && info.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

package sandbox

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// protection keeps missing protected names from being made while a command runs, and links from being replaced, which
// mounts cannot. What would stand in for a missing one would be seen by programs and people, so its name is watched,
// and what appears is set aside. A nil protection does nothing.
type protection struct {
	roots map[string]*os.Root // of Profile.Writable
	names []name
	aside map[name][]string // below the root of each; of the goroutine that sweeps

	inotify *os.File // nil: the user has as many as are allowed
	watched sync.WaitGroup
	stop    chan struct{} // closed when the names are no longer watched

	mu      sync.Mutex
	removed []string
	settled sync.Once
}

// A name is one below a writable directory.
type name struct {
	root  string
	below string
	link  string // what it leads to; "": it is missing
	shut  bool   // a person shut its directory, so nobody knows whether it is missing
}

func (n name) path() string { return filepath.Join(n.root, n.below) }

// protect begins what Profile.Protected promises and mounts cannot do.
func protect(c Cmd) (p *protection, err error) {
	if c.level() < LevelFull || len(c.Profile.Protected) == 0 || c.Profile.Unwatched {
		return nil, nil
	}
	p = &protection{roots: map[string]*os.Root{}, aside: map[name][]string{}, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	for _, path := range c.Profile.Protected {
		if err = p.add(path, c.Profile.Writable); err != nil {
			return nil, err
		}
	}
	p.watch()
	return p, nil
}

// maxLinks is how many links the kernel follows on the way to one file.
const maxLinks = 40

// add finds what mounts cannot protect of path: each link that leads there, and what is missing in the end. The helper
// protects what is there.
func (p *protection) add(path string, writable []string) error {
	at, links := "/", 0
	for rest := path; rest != ""; {
		var first string
		first, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		next := filepath.Join(at, first)
		n, ok := nameOf(next, writable)
		if !ok { // no command changes it
			if target, err := os.Readlink(next); err == nil {
				n.link = target
			}
		} else if err := p.open(n.root); err != nil {
			return err
		} else if info, err := p.roots[n.root].Lstat(n.below); err != nil {
			if n, ok = nameOf(filepath.Join(next, rest), writable); ok {
				n.shut = errors.Is(err, fs.ErrPermission)
				if err := p.open(n.root); err != nil {
					return err
				}
				p.remember(n)
			}
			return nil
		} else if info.Mode()&os.ModeSymlink != 0 {
			n.link, _ = p.roots[n.root].Readlink(n.below) // gone by now: it is missing
			p.remember(n)
		}
		if n.link == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil // it leads nowhere, as long as the links stay
		}
		if rest = n.link + "/" + rest; filepath.IsAbs(n.link) {
			at = "/"
		}
	}
	return nil
}

// open opens a writable directory once.
func (p *protection) open(path string) (err error) {
	if p.roots[path] == nil {
		p.roots[path], err = os.OpenRoot(path)
	}
	return err
}

func (p *protection) remember(n name) {
	if !slices.Contains(p.names, n) {
		p.names = append(p.names, n)
	}
}

// nameOf finds the writable directory that path is in, the innermost.
func nameOf(path string, writable []string) (found name, ok bool) {
	for _, root := range writable {
		below, err := filepath.Rel(root, path)
		if err == nil && filepath.IsLocal(below) && len(root) >= len(found.root) {
			found, ok = name{root: root, below: below}, below != "."
		}
	}
	return found, ok
}

// watch begins to look for the names.
func (p *protection) watch() {
	if len(p.names) == 0 {
		return
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		p.watched.Go(p.lookAgain)
		return
	}
	p.inotify = os.NewFile(uintptr(fd), "inotify")
	told := p.follow(fd)
	p.watched.Go(func() {
		events := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
		for told {
			// What happened does not matter: all names are looked at.
			if _, err := p.inotify.Read(events); err != nil {
				return
			}
			told = p.follow(fd)
			p.sweep()
		}
		p.lookAgain()
	})
}

// lookAfter is how long names are left alone where the kernel does not tell what happens to them.
const lookAfter = 250 * time.Millisecond

// lookAgain looks at the names where the kernel has no watches left, as when a command took them all. It takes a tenth
// of a processor at most.
func (p *protection) lookAgain() {
	for pause := lookAfter; ; {
		select {
		case <-p.stop:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		p.sweep()
		pause = max(lookAfter, 9*time.Since(began))
	}
}

// changes are what happens to a name.
const changes = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_MOVED_FROM

// follow watches the deepest directory that is there on the way to each name. told: the kernel will tell of each.
func (p *protection) follow(fd int) (told bool) {
	told = true
	for _, n := range p.names {
		for dir := filepath.Dir(n.below); ; dir = filepath.Dir(dir) {
			if f, err := p.roots[n.root].Open(dir); err == nil {
				// By its handle: a path could lead somewhere else by then.
				path := "/proc/self/fd/" + strconv.FormatUint(uint64(f.Fd()), 10)
				_, err := unix.InotifyAddWatch(fd, path, changes|unix.IN_ONLYDIR)
				told = told && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.ENOMEM)
				_ = f.Close()
				break
			}
			if dir == "." {
				break
			}
		}
	}
	return told
}

// sweep takes away what has appeared, and puts links back.
func (p *protection) sweep() {
	for _, n := range p.names {
		if shut := p.sweepName(n); !shut || n.shut {
			continue
		}
		// The command took its own right to its directory, and so ours.
		was := Unshut(n.root, filepath.Dir(n.path()), 0o700)
		p.sweepName(n)
		for _, s := range slices.Backward(was) {
			s.Again()
		}
	}
}

// sweepName does it for one name, and says whether its directory is shut.
func (p *protection) sweepName(n name) (shut bool) {
	root := p.roots[n.root]
	target, err := root.Readlink(n.below)
	if err == nil && n.link == target {
		return false
	}
	if _, err = root.Lstat(n.below); err == nil {
		if err = p.setAside(n); err == nil {
			p.mu.Lock()
			p.removed = append(p.removed, n.path())
			p.mu.Unlock()
		}
	}
	if out, leads := p.leadsOut(n, err); leads && p.setAside(out) == nil {
		p.mu.Lock()
		p.removed = append(p.removed, out.path())
		p.mu.Unlock()
	}
	if n.link != "" && !errors.Is(err, fs.ErrPermission) {
		err = root.Symlink(n.link, n.below) // its directory may be gone, too
	}
	return errors.Is(err, fs.ErrPermission)
}

// leadsOut returns the link on the way to a name that makes programs find it, while our handle follows it nowhere: it
// is absolute, or leads out of the writable directory. err is why the handle did not find the name.
func (p *protection) leadsOut(n name, err error) (link name, leads bool) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return name{}, false
	}
	if _, err := os.Lstat(n.path()); err != nil {
		return name{}, false // nothing is there yet; the next command has what the link leads to watched
	}
	for i := range n.below {
		if n.below[i] != '/' {
			continue
		}
		if _, err := p.roots[n.root].Readlink(n.below[:i]); err == nil {
			return name{root: n.root, below: n.below[:i]}, true
		}
	}
	return name{}, false
}

// settle stops looking for the names, but for a last time.
func (p *protection) settle() {
	if p == nil {
		return
	}
	p.settled.Do(func() {
		close(p.stop)
		if p.inotify != nil {
			_ = p.inotify.Close()
		}
		p.watched.Wait()
		p.sweep()
		p.removeEmpty()
	})
}

// end is called when the last process of the command has ended.
func (p *protection) end() {
	if p == nil {
		return
	}
	p.settle()
	for _, root := range p.roots {
		_ = root.Close()
	}
}

// maxEmpty is how many files of one name are kept without a look at what they hold: a command in a loop could fill the
// directory.
const maxEmpty = 8

// setAside renames a file that has a protected name, in its directory. It deletes links only, which have no content to
// lose: a person may have made the file meanwhile.
func (p *protection) setAside(n name) error {
	root, aside := p.roots[n.root], n.below+Aside+rand.Text()[:6]
	if err := root.Rename(n.below, aside); err != nil {
		return err
	}
	if _, err := root.Readlink(aside); err == nil {
		_ = root.Remove(aside) // else it stays aside
		return nil
	}
	p.aside[n] = append(p.aside[n], aside)
	return nil
}

// removeEmpty removes what was set aside and is empty, but for the first maxEmpty of each name. While the command runs,
// a file may be empty because it is just being written.
func (p *protection) removeEmpty() {
	for n, all := range p.aside {
		for _, path := range all[min(maxEmpty, len(all)):] {
			info, err := p.roots[n.root].Lstat(path)
			// A directory that is not empty is not removed.
			if err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0) {
				_ = p.roots[n.root].Remove(path) // else it stays aside
			}
		}
	}
}

// gone returns what was taken away, sorted.
func (p *protection) gone() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Clone(p.removed)
	slices.Sort(list)
	return slices.Compact(list)
}

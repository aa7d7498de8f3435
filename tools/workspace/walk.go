package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	// maxLinks is how many links one path may lead through, as in the Linux kernel.
	maxLinks = 40
	// maxSteps is how many components are looked at for one path. Targets may go down and up again thousands of times,
	// and each way up begins anew at an area; no honest path comes near this.
	maxSteps = 4 * maxComponents
	// maxSwaps is how often one component is looked at anew because it was swapped in between.
	maxSwaps = 8
)

// Open resolves path and returns its Place. Links are followed while their targets lie in an area. With Read the
// path must exist (*MissingError); with Write it may be missing, also with missing parents: Name then has several
// components, and nothing is created through a dangling link that leads outside. One that leads inside gives the
// place of its target, so the link stays. Open does not open the last component itself, so a FIFO does not block it.
//
// Errors: *OutsideError, *MissingError, ErrSpelling, *InvalidError, ErrTooManyLinks, ErrChanging, ErrSystem,
// os.ErrClosed, what the system said (ENOTDIR for a file that stands where a directory is needed), or what the Guard
// said.
func (s *Space) Open(path string, a Access) (Place, error) { return openBy(s, path, a, s.guard) }

// openBy is Open with that Guard; nil: to learn about a path.
func openBy(s *Space, path string, a Access, guard Guard) (Place, error) {
	abs, err := s.spell(path)
	if err != nil {
		return Place{}, err
	}
	w := walk{space: s, abs: abs, access: a, guarded: guard != nil}
	place, err := w.resolve()
	if err != nil || guard == nil {
		return place, err
	}
	o := Opened{Asked: abs, Path: place.Path, Access: a, space: s, place: place, info: w.info}
	if err = guard(o); err == nil && w.absent {
		err = &MissingError{Path: abs}
	}
	if err != nil {
		w.drop()
		return Place{}, err
	}
	place.Linked = func(info fs.FileInfo) error {
		o.info = info
		return guard(o)
	}
	return place, nil
}

// A walk is one resolution. It goes down by handles, one component at a time; whenever the way leaves the current
// directory upwards or jumps elsewhere, it begins anew at an area.
type walk struct {
	space  *Space
	abs    string // as asked for: absolute, clean
	access Access

	dir  *os.Root // where the walk stands; nil: nowhere yet
	at   string   // canonical path of dir
	todo []string // components still to go; `..` only from link targets
	only bool     // it stands in the directory of a file that is an area: there is nothing there but this file
	base *area    // that it began at last

	links, steps int
	link, target string // the last link that was followed

	info    fs.FileInfo // of what stands at the end; nil: nothing, or it is an area
	guarded bool        // where nothing is there to read, that is absent, and no error: the Guard is asked before
	absent  bool
}

// resolve runs the walk to its end.
func (w *walk) resolve() (Place, error) {
	place, err := w.run()
	if err != nil {
		w.drop()
		return Place{}, err
	}
	// A link may lead down into a read-only area that lies inside a root, which find tells only now.
	a, below, ok := w.space.areas.find(place.Path)
	if !ok || a.readOnly && w.access == Write || a.file && len(below) > 0 {
		w.drop()
		return Place{}, w.outside()
	}
	return place, nil
}

func (w *walk) run() (Place, error) {
	if err := w.anchor(w.abs, nil); err != nil {
		return Place{}, err
	}
	for len(w.todo) > 0 {
		if w.steps++; w.steps > maxSteps {
			return Place{}, failed(w.abs, ErrTooManyLinks)
		}
		name := w.todo[0]
		if name == ".." {
			if err := w.anchor(filepath.Dir(w.at), w.todo[1:]); err != nil {
				return Place{}, err
			}
			continue
		}
		place, done, err := w.step(name)
		if done || err != nil {
			return place, err
		}
	}
	return Place{Dir: w.dir, Name: ".", Path: w.at}, nil // an area itself
}

// anchor goes to the innermost area on the way to base and then todo. base is absolute and clean. `..` at the
// beginning of todo is applied to base, which holds no links then. After a component outside the areas it cannot be
// applied: that component may be a link.
func (w *walk) anchor(base string, todo []string) error {
	w.drop()
	for {
		down := 0
		for down < len(todo) && todo[down] != ".." {
			down++
		}
		a, rest, ok := w.space.areas.find(filepath.Join(append([]string{base}, todo[:down]...)...))
		if ok {
			return w.enter(a, append(rest, todo[down:]...))
		}
		if down > 0 || down == len(todo) {
			return w.outside()
		}
		base, todo = filepath.Dir(base), todo[1:]
	}
}

// enter opens an area and stands there.
func (w *walk) enter(a *area, todo []string) error {
	if a.readOnly && w.access == Write {
		return w.outside()
	}
	w.only, w.base = a.file, a
	leapt, err := w.leap(a, todo)
	if leapt {
		return nil
	}
	var dir *os.Root
	if err == nil {
		dir, err = a.open()
	}
	switch {
	case gone(err):
		return &MissingError{Path: w.abs}
	case errors.Is(err, errRedirected):
		w.link, w.target = a.path, realAsFarAsItGoes(a.path)
		return w.outside()
	case err != nil:
		return failed(w.abs, err)
	}
	w.dir, w.at, w.todo = dir, a.path, todo
	if a.file {
		w.at, w.todo = filepath.Dir(a.path), append([]string{filepath.Base(a.path)}, todo...)
	}
	return nil
}

// step takes the next component. done: place is the answer.
func (w *walk) step(name string) (place Place, done bool, err error) {
	for range maxSwaps {
		info, err := w.dir.Lstat(name)
		switch {
		case gone(err):
			place, err = w.missing()
			return place, true, err
		case err != nil:
			return Place{}, true, failed(w.abs, err)
		case w.only && info.Mode()&fs.ModeSymlink != 0:
			w.link, w.target = filepath.Join(w.at, name), realAsFarAsItGoes(filepath.Join(w.at, name))
			return Place{}, true, w.outside()
		case info.Mode()&fs.ModeSymlink != 0:
			ok, err := w.follow(name)
			if ok || err != nil {
				return Place{}, false, err
			}
		case w.base.foreign(w.dir, name, info):
			return Place{}, true, failed(w.abs, ErrSystem)
		case len(w.todo) == 1:
			w.info = info
			return Place{Dir: w.dir, Name: name, Path: filepath.Join(w.at, name)}, true, nil
		case !info.IsDir():
			return Place{}, true, failed(w.abs, syscall.ENOTDIR)
		default:
			ok, err := w.down(name, info)
			if ok || err != nil {
				return Place{}, false, err
			}
		}
	}
	return Place{}, true, failed(w.abs, ErrChanging)
}

// down goes into the directory name, if it is still the one that info describes. OpenRoot follows links below the
// current directory; the comparison turns that into "follows none".
func (w *walk) down(name string, info os.FileInfo) (ok bool, err error) {
	sub, err := openDir(w.dir, name)
	if err != nil {
		if now, again := w.dir.Lstat(name); Swapped(err) || metLink(err) || again != nil || !os.SameFile(now, info) {
			return false, nil //nolint:nilerr // swapped meanwhile: looking again is the answer
		}
		if cause, system := errors.AsType[syscall.Errno](err); system && errors.Is(cause, fs.ErrPermission) {
			return false, failed(w.abs, &UnlistedError{Dir: filepath.Join(w.at, name), Err: cause})
		}
		return false, failed(w.abs, err)
	}
	if opened, err := sub.Stat("."); err != nil || !os.SameFile(opened, info) {
		_ = sub.Close() // never used
		if errors.Is(err, fs.ErrPermission) {
			return false, failed(w.abs, err) // it may be listed but not entered, and looking again does not help
		}
		return false, nil
	}
	w.drop()
	w.dir, w.at, w.todo = sub, filepath.Join(w.at, name), w.todo[1:]
	return true, nil
}

// follow replaces the link name by its target. ok is false if it is no link any more.
func (w *walk) follow(name string) (ok bool, err error) {
	target, err := w.dir.Readlink(name)
	if err != nil {
		if now, again := w.dir.Lstat(name); metLink(err) || again != nil || now.Mode()&fs.ModeSymlink == 0 {
			return false, nil //nolint:nilerr // swapped meanwhile: looking again is the answer
		}
		return false, failed(w.abs, err)
	}
	if w.links++; w.links > maxLinks {
		return false, failed(w.abs, ErrTooManyLinks)
	}
	w.link = filepath.Join(w.at, name)
	rest := w.todo[1:]
	if !rooted(target) {
		w.target = filepath.Join(w.at, target)
		if w.todo = append(components(target), rest...); len(w.todo) > maxComponents {
			return false, failed(w.abs, ErrTooManyLinks)
		}
		return true, nil
	}
	w.target = filepath.Clean(target)
	if checkText(target, onWindows) != nil || !filepath.IsAbs(target) {
		return false, w.outside()
	}
	volume := filepath.VolumeName(target)
	top := volume + string(filepath.Separator)
	return true, w.anchor(top, append(components(target[len(volume):]), rest...))
}

// rooted says that a link's target does not start at the link's own directory.
func rooted(target string) bool {
	return filepath.IsAbs(target) || filepath.VolumeName(target) != "" ||
		onWindows && target != "" && isSlash(target[0])
}

// components splits a link's target. `.` and empty components mean nothing.
func components(path string) []string {
	all := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || onWindows && r == '\\' })
	kept := make([]string, 0, len(all))
	for _, name := range all {
		if name != "." {
			kept = append(kept, name)
		}
	}
	return kept
}

// missing is the answer when the next component is not there.
func (w *walk) missing() (Place, error) {
	if w.access == Read && !w.guarded {
		return Place{}, &MissingError{Path: w.abs}
	}
	w.absent = w.access == Read
	for _, name := range w.todo {
		if name == ".." { // the way back up is as missing as the way down
			return Place{}, &MissingError{Path: w.abs}
		}
	}
	name := filepath.Join(w.todo...)
	return Place{Dir: w.dir, Name: name, Path: filepath.Join(w.at, name)}, nil
}

func (w *walk) outside() error {
	e := &OutsideError{Path: w.abs, Link: w.link, Target: w.target, Roots: w.space.Roots(),
		Whole: slices.Clone(w.space.whole)}
	if len(e.Roots) == 0 {
		e.Wanted = slices.Clone(w.space.wanted)
	}
	return e
}

// drop closes the handle of where the walk stands.
func (w *walk) drop() {
	if w.dir != nil {
		_ = w.dir.Close() // a directory handle: nothing can be lost
		w.dir = nil
	}
}

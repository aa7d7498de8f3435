package kernel

import (
	"errors"
	"io/fs"
	"os"
	slash "path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// void holds an empty directory and an empty file that no command may open, until all mounts are made.
const void = "/void"

func (w *world) makeVoid() error {
	tree, err := newMount("tmpfs", inert, "mode=0755", "size=64k")
	if err == nil {
		err = attach(tree, void)
	}
	if err == nil {
		err = os.Mkdir(void+"/dir", 0)
	}
	if err == nil {
		err = os.WriteFile(void+"/file", nil, 0)
	}
	return failed(err, "make something to hide with")
}

// guard hides the hidden paths and makes the protected ones read-only.
func (w *world) guard() error {
	bound := map[string]bool{}
	for _, path := range w.profile.Protected {
		if err := w.protect(path, bound); err != nil {
			return err
		}
	}
	for _, l := range w.profile.Linked {
		if err := w.link(l, bound); err != nil {
			return err
		}
	}
	hidden := w.profile.Hidden
	for _, pattern := range secret {
		dir, name := slash.Split(pattern)
		entries, _ := os.ReadDir(dir) // what could be read counts
		for _, entry := range entries {
			if ok, _ := slash.Match(name, entry.Name()); ok { // the patterns are right
				hidden = append(slices.Clip(hidden), dir+entry.Name())
			}
		}
	}
	for _, path := range hidden {
		if err := w.hide(path, bound); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) hide(named string, bound map[string]bool) error {
	path, err := (&world{links: map[string]string{}}).resolve(named)
	if missing(err) || errors.Is(err, unix.ELOOP) { // links in a circle lead nowhere
		return nil
	}
	if err != nil {
		return failed(err, "look for %s", named)
	}
	if !slices.ContainsFunc(w.places, func(at place) bool { return inside(path, at.path) || inside(at.path, path) }) {
		return nil // nothing of the profile is there, only what each command has for itself, as /tmp and /dev
	}
	info, err := os.Lstat(path)
	if missing(err) || err == nil && w.needed(path) && path != named {
		return nil
	}
	if err != nil {
		return failed(err, "look at %s", path)
	}
	if err := w.hold(path, bound); err != nil {
		return err
	}
	from := void + "/file"
	if info.IsDir() {
		from = void + "/dir"
	}
	return cover(from, path)
}

// cover mounts what is at one path over another one, read-only.
func cover(from, to string) error {
	tree, err := copyTree(from)
	if err == nil {
		err = setAttributes(tree, unix.MOUNT_ATTR_RDONLY, true)
	}
	if err != nil {
		return failed(err, "copy the mount of %s", from)
	}
	return attach(tree, to)
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

func (w *world) protect(named string, bound map[string]bool) error {
	path, err := (&world{links: map[string]string{}}).resolve(named)
	if missing(err) || errors.Is(err, unix.ELOOP) { // links in a circle lead nowhere
		return nil // the server watches it
	}
	if err != nil {
		return failed(err, "look at %s", named)
	}
	if above := w.above(path); above == nil || !above.write {
		return nil // no command changes what is there for others; a link that leads there is watched by the server
	} else if path != named && (above.path == path || w.needed(path)) {
		return nil // the server watches the link
	}
	if err := w.hold(path, bound); err != nil {
		return err
	}
	return w.coverAround(path)
}

// coverAround makes what is at path read-only, but for the writable directories below it.
func (w *world) coverAround(path string) (err error) {
	type opened struct {
		tree int
		path string
	}
	var inner []opened
	defer func() {
		for _, one := range inner { // those that were not attached
			_ = unix.Close(one.tree)
		}
	}()
	for _, dir := range w.profile.Writable {
		if strings.HasPrefix(dir, path+"/") {
			tree, err := copyTree(dir)
			if err != nil {
				return failed(err, "copy the mount of %s", dir)
			}
			inner = append(inner, opened{tree, dir})
		}
	}
	if err := cover(path, path); err != nil {
		return err
	}
	for len(inner) > 0 {
		one := inner[0]
		inner = inner[1:]
		if err := attach(one.tree, one.path); err != nil {
			return err
		}
	}
	return nil
}

// link mounts a link over a file. Programs that write a file by renaming another one onto it follow links first, as git
// does; a mount of a file could not be renamed onto.
func (w *world) link(l Link, bound map[string]bool) error {
	info, err := os.Lstat(l.Path)
	if err == nil && !info.Mode().IsRegular() {
		err = unix.EINVAL
	}
	if err != nil {
		return failed(err, "look at %s", l.Path)
	}
	if err := w.hold(l.Path, bound); err != nil {
		return err
	}
	from := void + "/link"
	if err := os.Symlink(l.Target, from); err != nil {
		return failed(err, "make a link in place of %s", l.Path)
	}
	if err := cover(from, l.Path); err != nil {
		return err
	}
	return failed(os.Remove(from), "make a link in place of %s", l.Path)
}

// needed says whether a path is, or is above, what the command must find as the profile says: the root that it works
// in, what it may change, or the system's. A link to that, as one of a cloned repository to `/` or `.`, makes nothing
// of it read-only or hidden: no command would start.
func (w *world) needed(path string) bool {
	if path == "/" || path == "/dev" || path == "/proc" {
		return true
	}
	return slices.ContainsFunc(w.places, func(at place) bool {
		return inside(at.path, path) &&
			(at.write && at.path != path || inside(w.cwd, at.path) || slices.Contains(system, at.path))
	})
}

// hold mounts each directory between a writable place and path onto itself. Renaming one would take the mount of path
// along and leave its name free; a mount cannot be renamed.
func (w *world) hold(path string, bound map[string]bool) error {
	above := w.above(path)
	if above == nil || !above.write {
		return nil
	}
	for i := len(above.path) + 1; i < len(path); i++ {
		if path[i] != '/' || bound[path[:i]] {
			continue
		}
		if err := bind(path[:i], path[:i]); err != nil {
			return err
		}
		bound[path[:i]] = true
	}
	return nil
}

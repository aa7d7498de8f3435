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

// makeVoid makes an empty directory and an empty file that no command may open, and room for links, on a mount at path.
// The caller mounts something else there, so that no path leads to it.
func (w *world) makeVoid(path string) error {
	tree, err := newMount("tmpfs", inert, "mode=0755", "size=64k")
	if err != nil {
		return failed(err, "make something to hide with")
	}
	w.void = tree
	for _, err := range []error{
		unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH),
		unix.Mkdirat(tree, "dir", 0), unix.Mknodat(tree, "file", unix.S_IFREG, 0),
	} {
		if err != nil {
			return failed(err, "make something to hide with")
		}
	}
	return nil
}

// A cover is what is mounted over one path of the profile, so that the command does not change it, or does not see it.
type cover struct {
	path   string // as the profile names it
	linked bool   // it is one of Profile.Linked: what is there is no link of a person's to follow
	// free is that nothing was there in the beginning: the server decides about what appears, see Profile.Protected
	free bool
	put  func(*cover) error
}

// guard hides the hidden paths and makes the protected ones read-only.
func (w *world) guard() error {
	for _, at := range w.places { // where one lies in a writable one, its name stays what the next profile finds
		if err := w.hold(slash.Dir(at.path) + "/"); err != nil {
			return err
		}
	}
	for _, path := range w.profile.Protected {
		w.covers = append(w.covers, cover{path: path, put: w.protect})
	}
	for _, l := range w.profile.Linked {
		if !w.above(l.Path).shows() {
			continue // attachAll makes it
		}
		w.covers = append(w.covers, cover{path: l.Path, linked: true, put: func(*cover) error { return w.link(l) }})
	}
	for _, path := range w.profile.Held {
		w.covers = append(w.covers, cover{path: path, put: w.keepName})
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
		w.covers = append(w.covers, cover{path: path, put: w.hide})
	}
	// The last: a link that another command put in place of the copy leads to no more than what is shown.
	for _, l := range w.profile.Copied {
		w.covers = append(w.covers, cover{path: l.Path, put: func(*cover) error { return w.copied(l) }})
	}
	for i := range w.covers {
		if err := w.covers[i].put(&w.covers[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) hide(c *cover) error {
	named := c.path
	path, err := resolved(named)
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
	from := "file"
	if info.IsDir() {
		from = "dir"
	}
	return w.coverWith(from, path)
}

// resolved returns what a path leads to. Where this user shut a directory on the way, it is that directory: whoever
// found the path could look into it a moment ago, and a command opens it again.
func resolved(named string) (string, error) {
	path, err := (&world{links: map[string]string{}}).resolve(named)
	if !errors.Is(err, fs.ErrPermission) {
		return path, err
	}
	for dir := slash.Dir(path); ; dir = slash.Dir(dir) {
		var info unix.Stat_t
		if unix.Lstat(dir, &info) != nil {
			continue // the one that is shut is above
		}
		if info.Uid != uint32(os.Geteuid()) {
			return path, err // no command opens it
		}
		return dir, nil
	}
}

// coverWith mounts something of the void over a path.
func (w *world) coverWith(from, path string) error {
	if err := w.hold(path); err != nil {
		return err
	}
	tree, err := copyTree(w.void, from)
	if err == nil {
		err = setAttributes(tree, unix.MOUNT_ATTR_RDONLY, true)
	}
	if err != nil {
		return failed(err, "copy what to cover %s with", path)
	}
	return attach(tree, path)
}

// ontoItself mounts what is at a path over it, with further attributes. Both are one handle, since a command may move
// it meanwhile.
func ontoItself(path string, attributes uint64) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err, "open %s", path)
	}
	defer func() { _ = unix.Close(at) }()
	tree, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err == nil {
		defer func() { _ = unix.Close(tree) }()
		err = setAttributes(tree, attributes, true)
	}
	if err != nil {
		return failed(err, "copy the mount of %s", path)
	}
	err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return failed(err, "mount %s", path)
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

func (w *world) protect(c *cover) error {
	named := c.path
	path, err := resolved(named)
	if missing(err) || errors.Is(err, unix.ELOOP) { // links in a circle lead nowhere
		c.free = w.names == nil
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
	if err := w.hold(path); err != nil {
		return err
	}
	return w.coverAround(path)
}

// keepName mounts a directory, and those on the way there, onto itself.
func (w *world) keepName(c *cover) error {
	path, err := resolved(c.path)
	if missing(err) || errors.Is(err, unix.ELOOP) || err == nil && path != c.path {
		return nil // it was made or led elsewhere after the profile was
	}
	if err != nil {
		return failed(err, "look at %s", path)
	}
	return w.hold(path + "/")
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
			tree, err := copyTree(unix.AT_FDCWD, dir)
			if err != nil {
				return failed(err, "copy the mount of %s", dir)
			}
			inner = append(inner, opened{tree, dir})
		}
	}
	if err := ontoItself(path, unix.MOUNT_ATTR_RDONLY); err != nil {
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
func (w *world) link(l Link) error {
	info, err := os.Lstat(l.Path)
	if err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSocket {
		err = unix.EINVAL
	}
	if err != nil {
		return failed(err, "look at %s", l.Path)
	}
	if err := unix.Symlinkat(l.Target, w.void, "link"); err != nil {
		return failed(err, "make a link in place of %s", l.Path)
	}
	err = w.coverWith("link", l.Path)
	return errors.Join(err, failed(unix.Unlinkat(w.void, "link", 0), "make a link in place of %s", l.Path))
}

// copied mounts a directory of Profile.Temp over another one.
func (w *world) copied(l Link) error {
	if isMount(unix.AT_FDCWD, l.Path) {
		return nil // it is there
	}
	if path, err := resolved(l.Path); missing(err) || path != l.Path {
		return nil // it leads elsewhere by now, where it has no copy
	}
	if err := w.hold(l.Path); err != nil {
		return err
	}
	return bind(l.Target, l.Path)
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
func (w *world) hold(path string) error {
	above := w.above(path)
	if above == nil || !above.write {
		return nil
	}
	for i := len(above.path) + 1; i < len(path); i++ {
		if path[i] != '/' || w.held[path[:i]] || w.held == nil && isMount(unix.AT_FDCWD, path[:i]) {
			continue
		}
		if err := ontoItself(path[:i], 0); err != nil {
			return err
		}
		if w.held != nil {
			w.held[path[:i]] = true
		}
	}
	return nil
}

package kernel

import (
	"cmp"
	"io/fs"
	"os"
	slash "path" // path/filepath comes late when the program starts
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// system is what every command may read. The link /etc/resolv.conf leads out of /etc where systemd resolves names.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/etc/resolv.conf", "/nix/store",
	"/sys/devices/system",
}

// Reads returns the directory of the system that holds path, which has no links, and that every command reads; "": none
// does.
func Reads(path string) string {
	for _, dir := range system {
		if inside(path, dir) {
			return dir
		}
	}
	return ""
}

// secret is what no command may read of that, as patterns.
var secret = []string{
	"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/*_key", "/etc/security/opasswd",
}

// devices are those that a command finds in /dev.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// temporaries are the temporary directories that programs know.
var temporaries = []string{"/tmp", "/var/tmp"}

// inert are the attributes of a mount of which nothing is executed and no device opened.
const inert = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC

// privateSize is the room of a private temporary directory, and of /dev/shm, and privateFiles how many files it has:
// the kernel's own memory for those is no part of the room.
const privateSize, privateFiles = "64m", "65536"

// A place is a file or directory that the command sees.
type place struct {
	path  string // without links
	tree  int    // a detached mount of it
	dir   bool
	write bool
	mask  bool // tree is an empty directory
}

// A world is the tree of files that a command sees. It is built of copies of mounts on an empty root, so a path that
// the profile does not name is missing.
type world struct {
	profile *Profile
	places  []place
	links   map[string]string // links on the way to places
	device  []int             // copies of devices
	proc    int
	temp    []int // copies of the mount of Profile.Temp
	void    int   // a mount with what covers others, which no path leads to
	covers  []cover
	held    map[string]bool // directories that were mounted onto themselves; nil: those may be gone
	names   *watched        // of covers; nil: they are not watched
	cwd     string
	cwdStat unix.Stat_t
}

// build replaces the tree of files of this process by that of the profile, in its own mount namespace.
func build(s *Spec) (*world, error) {
	w := &world{profile: s.Profile, links: map[string]string{}, held: map[string]bool{}, cwd: "/"}
	if err := failed(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), "make mounts private"); err != nil {
		return nil, err
	}
	if s.Dir {
		path, err := os.Readlink("/proc/self/fd/4")
		if err == nil {
			err = unix.Fstat(dirFD, &w.cwdStat)
		}
		if err != nil {
			return nil, failed(err, "find the working directory")
		}
		_ = unix.Close(dirFD)
		w.cwd = path
	}
	for _, step := range []func() error{w.collect, w.replace, w.furnish, nullStreams, w.attachAll, w.guard, w.finish} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// collect takes copies of all that the command will see.
func (w *world) collect() error {
	p := w.profile
	var list []place
	for i, path := range slices.Concat(system, p.Readable) {
		at, err := w.find(path, false)
		if missing(err) {
			continue
		}
		if err == nil && i >= len(system) && at.path != path {
			err = unix.ELOOP
		}
		if err != nil {
			return failed(err, "look at %s", path)
		}
		list = append(list, at)
	}
	writable := p.Writable
	if p.Temp != "" {
		writable = append(slices.Clip(writable), p.Temp)
	}
	for _, path := range writable {
		at, err := w.find(path, true)
		if err == nil && at.path != path {
			err = unix.ELOOP
		}
		if err != nil {
			return failed(err, "look at %s", path)
		}
		list = append(list, at)
	}
	if p.Temp != "" {
		temp := list[len(list)-1]
		for range temporaries {
			tree, err := temp.copy()
			if err != nil {
				return err
			}
			w.temp = append(w.temp, tree)
		}
	}
	for _, path := range p.Masked {
		at, err := (&world{links: map[string]string{}}).find(path, false)
		if missing(err) || err == nil && !at.dir {
			continue
		}
		if err != nil {
			return failed(err, "look at %s", path)
		}
		at.mask = true
		list = append(list, at)
	}
	if err := w.copyPlaces(list); err != nil {
		return err
	}
	for _, l := range p.Linked {
		if !w.above(l.Path).shows() {
			w.links[l.Path] = l.Target
		}
	}
	for _, name := range devices {
		tree, err := copyTree(unix.AT_FDCWD, "/dev/"+name)
		if err == nil {
			// A device can be written on a read-only mount; its mode and times cannot be changed.
			err = setAttributes(tree, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, false)
		}
		if err != nil {
			return failed(err, "copy /dev/%s", name)
		}
		w.device = append(w.device, tree)
	}
	var err error
	if w.proc, err = newMount("proc", inert); err == nil {
		limitInotify(w.proc)
		err = setAttributes(w.proc, unix.MOUNT_ATTR_RDONLY, false)
	}
	return failed(err, "mount a new /proc")
}

// limitInotify bounds how many instances of inotify the command, its helper and what it leaves behind may have. The
// user has 128, and a command that takes them all leaves none to editors and to other helpers. A kernel without this
// limit has its own.
func limitInotify(proc int) {
	fd, err := unix.Openat(proc, "sys/user/max_inotify_instances", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, _ = unix.Write(fd, []byte("64"))
		_ = unix.Close(fd)
	}
}

// find returns the place that path leads to.
func (w *world) find(path string, write bool) (place, error) {
	at, err := w.resolve(path)
	if err != nil {
		return place{}, err
	}
	info, err := os.Lstat(at)
	if err != nil {
		return place{}, err
	}
	return place{path: at, dir: info.IsDir(), write: write}, nil
}

// copyPlaces takes copies of those places of list that others do not contain.
func (w *world) copyPlaces(list []place) error {
	// From above to below; of two places with one path the writable one comes first, and counts, a mask is the last.
	slices.SortStableFunc(list, func(a, b place) int {
		return cmp.Or(strings.Compare(a.path, b.path), a.rank()-b.rank())
	})
	for _, at := range list {
		above := w.above(at.path)
		if above == nil && at.mask || above != nil && (above.rank() == at.rank() || above.path == at.path) {
			continue
		}
		var err error
		if at.tree, err = at.copy(); err != nil {
			return err
		}
		w.places = append(w.places, at)
	}
	return nil
}

// rank orders places with one path.
func (p place) rank() int {
	switch {
	case p.write:
		return 0
	case p.mask:
		return 2
	}
	return 1
}

// copy returns a detached copy of the mounts of a place as the command may use them.
func (p place) copy() (int, error) {
	if p.mask {
		tree, err := newMount("tmpfs", inert, "mode=0755", "size=1m")
		return tree, failed(err, "mask %s", p.path)
	}
	tree, err := copyTree(unix.AT_FDCWD, p.path)
	if err != nil {
		return -1, failed(err, "copy the mount of %s", p.path)
	}
	set := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !p.write {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	return tree, failed(setAttributes(tree, set, true), "protect the mount of %s", p.path)
}

// above returns the innermost place that holds path, nil: none.
func (w *world) above(path string) (found *place) {
	for i, at := range w.places {
		if inside(path, at.path) && (found == nil || len(at.path) > len(found.path)) {
			found = &w.places[i]
		}
	}
	return found
}

// shows says whether what lies in a place is to be seen. Nothing does of no place.
func (p *place) shows() bool { return p != nil && !p.mask }

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// resolve returns path without links, and notes the links on the way, so that the command can go the same way.
func (w *world) resolve(path string) (string, error) {
	const maxLinks = 40
	for range maxLinks {
		next, err := w.follow(path)
		if err != nil || next == "" {
			return path, err
		}
		path = next
	}
	return "", unix.ELOOP
}

// follow replaces the first link in path by what it leads to; "": there is none.
func (w *world) follow(path string) (string, error) {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		info, err := os.Lstat(path[:i])
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(path[:i])
		if err != nil {
			return "", err
		}
		w.links[path[:i]] = target
		if !slash.IsAbs(target) {
			target = slash.Join(slash.Dir(path[:i]), target)
		}
		return slash.Join(target, path[i:]), nil
	}
	return "", nil
}

// replace makes an empty root and drops the old one.
func (w *world) replace() error {
	root, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode=0755", "size=1m")
	if err != nil {
		return failed(err, "make a root directory")
	}
	// Any directory will do: it is left at once.
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return failed(err, "mount a root directory")
	}
	for _, err := range []error{
		unix.Fchdir(root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), unix.Close(root),
		unix.Chdir("/"),
	} {
		if err != nil {
			return failed(err, "change the root directory")
		}
	}
	return nil
}

// furnish makes what every tree of files has: /dev, /proc and temporary directories.
func (w *world) furnish() error {
	for _, dir := range []string{"/dev", "/dev/pts", "/dev/shm", "/proc", "/tmp", "/var", "/var/tmp"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return failed(err, "make %s", dir)
		}
	}
	for i, name := range devices {
		if err := os.WriteFile("/dev/"+name, nil, 0o644); err != nil {
			return failed(err, "make /dev/%s", name)
		}
		if err := attach(w.device[i], "/dev/"+name); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx", "core": "/proc/kcore",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return failed(err, "make /dev/%s", name)
		}
	}
	if err := w.makeVoid("/proc"); err != nil {
		return err
	}
	if err := attach(w.proc, "/proc"); err != nil {
		return err
	}
	pts, err := newMount("devpts", inert&^unix.MOUNT_ATTR_NODEV, "newinstance", "ptmxmode=0666", "mode=0620")
	if err == nil {
		err = attach(pts, "/dev/pts")
	}
	if err != nil {
		return failed(err, "mount /dev/pts")
	}
	return w.temporary()
}

// nullStreams opens streams anew that are /dev/null: the server opened them on its own mounts, where root could change
// the mode of the device through them.
func nullStreams() error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err, "open /dev/null")
	}
	defer func() { _ = unix.Close(null) }()
	var device unix.Stat_t
	if err := unix.Fstat(null, &device); err != nil {
		return failed(err, "look at /dev/null")
	}
	for fd := range 3 {
		var stream unix.Stat_t
		if unix.Fstat(fd, &stream) != nil || stream.Mode&unix.S_IFMT != unix.S_IFCHR || stream.Rdev != device.Rdev {
			continue
		}
		if err := unix.Dup3(null, fd, 0); err != nil {
			return failed(err, "open the streams")
		}
	}
	return nil
}

// temporary mounts the temporary directories. They come before the places, which may lie inside.
func (w *world) temporary() error {
	private := func(path string) error {
		tree, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode=1777", "size="+privateSize,
			"nr_inodes="+privateFiles)
		if err == nil {
			err = attach(tree, path)
		}
		return failed(err, "mount %s", path)
	}
	if err := private("/dev/shm"); err != nil {
		return err
	}
	if w.profile.Temp == "" {
		if err := private("/tmp"); err != nil {
			return err
		}
		return bind("/tmp", "/var/tmp")
	}
	for i, path := range temporaries {
		if err := attach(w.temp[i], path); err != nil {
			return err
		}
	}
	return nil
}

// attachAll mounts the places, from above to below.
func (w *world) attachAll() error {
	for _, at := range w.places {
		if err := mountPoint(at.path, at.dir); err != nil {
			return failed(err, "make a place for %s", at.path)
		}
		if err := attach(at.tree, at.path); err != nil {
			return err
		}
	}
	for path, target := range w.links {
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(slash.Dir(path), 0o755); err != nil {
			return failed(err, "make a place for %s", path)
		}
		if err := os.Symlink(target, path); err != nil {
			return failed(err, "make the link %s", path)
		}
	}
	return nil
}

// mountPoint makes an empty directory or file to mount something on, if there is none.
func mountPoint(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(slash.Dir(path), 0o755); err != nil {
		return err
	}
	if dir {
		return os.Mkdir(path, 0o755)
	}
	return os.WriteFile(path, nil, 0o644)
}

// finish makes the root read-only and enters the working directory, which must be the one that the server opened.
func (w *world) finish() error {
	for _, at := range w.places {
		if !at.mask {
			continue
		}
		if err := fixate(at.path); err != nil {
			return err
		}
	}
	if err := fixate("/"); err != nil {
		return err
	}
	if err := unix.Chdir(w.cwd); err != nil {
		return failed(err, "enter %s", w.cwd)
	}
	if w.cwdStat.Ino == 0 {
		return nil
	}
	var now unix.Stat_t
	if err := unix.Stat(".", &now); err != nil {
		return failed(err, "look at %s", w.cwd)
	}
	if now.Dev != w.cwdStat.Dev || now.Ino != w.cwdStat.Ino {
		return failed(unix.ESTALE, "enter %s", w.cwd)
	}
	return nil
}

// fixate makes one mount read-only, in which the places for others have been made.
func fixate(path string) error {
	mount, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err, "open %s", path)
	}
	defer func() { _ = unix.Close(mount) }()
	return failed(setAttributes(mount, unix.MOUNT_ATTR_RDONLY, false), "protect %s", path)
}

// copyTree returns a detached copy of the mounts at path, which is below dir and no link.
func copyTree(dir int, path string) (int, error) {
	return unix.OpenTree(dir, path,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
}

// attach mounts a detached tree and closes it.
func attach(tree int, path string) error {
	err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	_ = unix.Close(tree)
	return failed(err, "mount %s", path)
}

// bind mounts what is at one path at another one, too.
func bind(from, to string) error {
	tree, err := copyTree(unix.AT_FDCWD, from)
	if err != nil {
		return failed(err, "copy the mount of %s", from)
	}
	return attach(tree, to)
}

func setAttributes(tree int, set uint64, recursive bool) error {
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return unix.MountSetattr(tree, "", flags, &unix.MountAttr{Attr_set: set})
}

// newMount returns a detached mount of a new file system. Options are names or name=value.
func newMount(kind string, attributes int, options ...string) (int, error) {
	system, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(system) }()
	for _, option := range options {
		name, value, ok := strings.Cut(option, "=")
		if ok {
			err = unix.FsconfigSetString(system, name, value)
		} else {
			err = unix.FsconfigSetFlag(system, name)
		}
		if err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(system); err != nil {
		return -1, err
	}
	return unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, attributes)
}

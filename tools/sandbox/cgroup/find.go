package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNone means that this process has no part of a cgroup v2 tree in which it may make groups.
var ErrNone = errors.New("no delegated cgroup v2 tree")

func none(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNone, fmt.Sprintf(format, args...))
}

// A host is what this package touches of the machine.
type host struct {
	proc      string // where procfs is mounted
	pid, user int
	mkdir     func(path string) error
	remove    func(path string) error // of an empty directory
	write     func(path, text string) error
	delegated func(dir string) bool // the owner of dir gave it to this process, beyond what permission bits say
}

func thisHost() *host {
	return &host{
		proc: "/proc", pid: os.Getpid(), user: os.Geteuid(),
		mkdir: func(path string) error { return os.Mkdir(path, 0o755) }, remove: os.Remove,
		write: func(path, text string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(text)
			return errors.Join(err, f.Close())
		},
		delegated: delegated,
	}
}

const (
	// serverLeaf is the group into which a server moves that owns a delegated group: a group with processes of its own
	// cannot have children with limits.
	serverLeaf = "codehand-server"
	// groupPrefix begins the name of every group of a command.
	groupPrefix = "codehand-command-"
)

// controllers are those that limit a command.
var controllers = []string{"memory", "pids"}

// Find returns the tree in which this process may make groups, and removes what servers that were killed left there. If
// only this process and its children are in a group that was delegated to it, Find first moves them into a child of it.
// The error is ErrNone with the reason; then nothing was changed.
func Find() (*Tree, error) { return find(thisHost()) }

func find(h *host) (*Tree, error) {
	self, err := h.self()
	if err != nil {
		return nil, err
	}
	mount, dir, err := h.locate(self)
	if err != nil {
		return nil, err
	}
	if above := filepath.Dir(dir); filepath.Base(dir) == serverLeaf && h.enabled(above) && h.writable(above) {
		return h.tree(above) // we moved before
	}
	why := h.settle(mount, dir)
	if why == nil {
		return h.tree(dir)
	}
	// A desktop session: systemd delegates the groups above ours, and ours has other processes. Commands leave our
	// group only if it and those above it limit nothing: else they would escape from what the operator limited.
	for dir != mount && h.unlimited(dir) {
		dir = filepath.Dir(dir)
		if h.enabled(dir) && h.writable(dir) && h.ownedAbove(mount, dir) {
			return h.tree(dir)
		}
	}
	return nil, why
}

// unlimited reports whether a group limits neither memory nor the processor. systemd limits the processes of every
// group; ours have a lower limit.
func (h *host) unlimited(dir string) bool {
	for _, name := range []string{"memory.max", "memory.high", "cpu.max"} {
		if words := h.list(dir, name); len(words) > 0 && words[0] != "max" {
			return false
		}
	}
	return true
}

// ownedAbove is owned for a group that does not hold this process. The root of all groups belongs to systemd, or to
// what else manages the machine.
func (h *host) ownedAbove(mount, dir string) bool {
	return h.owned(mount, dir) && (dir != mount || !h.isRoot(dir))
}

// isRoot reports whether dir is the root of all groups, which has no type.
func (h *host) isRoot(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "cgroup.type"))
	return errors.Is(err, fs.ErrNotExist)
}

// self returns the path of our group, as the kernel names it.
func (h *host) self() (string, error) {
	text, err := os.ReadFile(filepath.Join(h.proc, "self/cgroup"))
	if err != nil {
		return "", none("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::")
		if !ok {
			continue
		}
		// Names that lead out of our namespace begin with /.. and are found in no mount.
		if !strings.HasPrefix(path, "/") || path != filepath.Clean(path) || strings.HasPrefix(path, "/..") {
			return "", none("the group %q is not visible here", path)
		}
		return path, nil
	}
	return "", none("the kernel has no cgroup v2")
}

// locate returns the directory of our group and the top of the mount that shows it.
func (h *host) locate(self string) (mount, dir string, err error) {
	text, err := os.ReadFile(filepath.Join(h.proc, "self/mountinfo"))
	if err != nil {
		return "", "", none("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		// 41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate (proc_pid_mountinfo(5))
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 6 || len(kind) < 1 || kind[0] != "cgroup2" {
			continue
		}
		if slices.Contains(strings.Split(fields[5], ","), "ro") {
			continue
		}
		root, top := unescape(fields[3]), unescape(fields[4])
		below, err := filepath.Rel(root, self)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		at := filepath.Join(top, below)
		// The proof that this directory is our group: another mount may lie over it.
		if pids, err := h.members(at); err == nil && slices.Contains(pids, h.pid) {
			return top, at, nil
		}
	}
	return "", "", none("no writable mount of cgroup2 shows the group %s", self)
}

// unescape undoes what mountinfo does to blanks and backslashes.
func unescape(text string) string {
	for _, r := range []struct{ from, to string }{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		text = strings.ReplaceAll(text, r.from, r.to)
	}
	return text
}

// settle makes our own group one that can have children with limits. After an error all is as it was.
func (h *host) settle(mount, dir string) error {
	has := h.list(dir, "cgroup.controllers")
	for _, c := range controllers {
		if !slices.Contains(has, c) {
			return none("the controller %s is not available in %s", c, dir)
		}
	}
	switch {
	case !h.writable(dir):
		return none("%s is not writable", dir)
	case !h.owned(mount, dir):
		return none("%s was not delegated (Delegate=yes of systemd does that)", dir)
	case h.enabled(dir): // the root of all groups may have processes and children
		return nil
	}
	if h.isRoot(dir) {
		return h.enable(dir)
	}
	if err := h.checkOurs(dir); err != nil {
		return err
	}
	leaf := filepath.Join(dir, serverLeaf)
	if err := h.mkdir(leaf); err != nil && !errors.Is(err, fs.ErrExist) {
		return none("%v", err)
	}
	err := h.empty(dir, leaf)
	if err != nil {
		_ = h.moveAll(leaf, dir) // what stays there stays alive, too
		_ = h.remove(leaf)       // it is empty, or something else uses it
	}
	return err
}

// emptyRounds is how often the processes of a group are moved: some may be starting others meanwhile.
const emptyRounds = 8

// empty moves this process and its children from dir to leaf, and hands the controllers to the children of dir.
func (h *host) empty(dir, leaf string) (err error) {
	for range emptyRounds {
		if err = h.checkOurs(dir); err != nil {
			return err
		}
		if err = h.moveAll(dir, leaf); err != nil {
			return none("%v", err)
		}
		if err = h.enable(dir); err == nil {
			return nil
		}
	}
	return err
}

// moveAll moves all processes of one group to another one. One that ended meanwhile is none.
func (h *host) moveAll(from, to string) error {
	pids, err := h.members(from)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		err := h.write(filepath.Join(to, "cgroup.procs"), strconv.Itoa(pid))
		if err != nil && h.started(pid) != "" {
			return err
		}
	}
	return nil
}

// checkOurs says what is wrong if a group has processes that this one did not start.
func (h *host) checkOurs(dir string) error {
	pids, err := h.members(dir)
	if err != nil {
		return none("%v", err)
	}
	others := 0
	for _, pid := range pids {
		if !h.ours(pid) {
			others++
		}
	}
	if others > 0 {
		return none("%d other processes are in %s", others, dir)
	}
	return nil
}

// ours reports whether a process is this one or descends from it.
func (h *host) ours(pid int) bool {
	const deepest = 16
	for range deepest {
		if pid == h.pid {
			return true
		}
		fields := h.stat(pid)
		if len(fields) < 2 {
			return false
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil || parent == 0 {
			return false
		}
		pid = parent
	}
	return false
}

// enable hands the controllers to the children of dir.
func (h *host) enable(dir string) error {
	if err := h.write(filepath.Join(dir, "cgroup.subtree_control"), "+memory +pids"); err != nil {
		return none("%v", err)
	}
	if !h.enabled(dir) {
		return none("%s keeps the controllers for itself", dir)
	}
	return nil
}

// enabled reports whether the children of dir have limits.
func (h *host) enabled(dir string) bool {
	on := h.list(dir, "cgroup.subtree_control")
	return !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(on, c) })
}

// owned reports whether dir or a group above it was given to this process. What permission bits say is not enough for
// root, who may write everywhere: systemd's own groups are not ours to change. The top of a mount is all that a
// container sees, and no other manager of groups runs there.
func (h *host) owned(mount, dir string) bool {
	if dir == mount {
		return true
	}
	if h.user != 0 {
		return h.ownedByUser(dir)
	}
	for ; dir != mount; dir = filepath.Dir(dir) {
		if h.delegated(dir) {
			return true
		}
	}
	return false
}

// members returns the processes of a group, without those of its children.
func (h *host) members(dir string) (pids []int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	for field := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, n) // 0: a process of another pid namespace
	}
	return pids, nil
}

// list reads a file of words.
func (h *host) list(dir, name string) []string {
	text, _ := os.ReadFile(filepath.Join(dir, name)) // what cannot be read has no words
	return strings.Fields(string(text))
}

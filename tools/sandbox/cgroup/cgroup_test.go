//go:build unix

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
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A machine is a tree of files that behaves as cgroup v2 does, as far as this package looks.
type machine struct {
	*host
	t     *testing.T
	top   string // the mount
	fails map[string]error
	busy  int // how many more times a group cannot be removed
}

const ownPid = 4242

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, fails: map[string]error{}}
	base := leaktest.Dir(t)
	m.top = filepath.Join(base, "cg roup") // a blank, which mountinfo escapes
	m.host = &host{
		proc: filepath.Join(base, "proc"), pid: ownPid, user: os.Geteuid(),
		mkdir: m.make, remove: m.unmake, write: m.put, delegated: func(string) bool { return false },
	}
	m.user = 0
	for _, dir := range []string{"self/ns", strconv.Itoa(ownPid)} {
		m.must(os.MkdirAll(filepath.Join(m.proc, dir), 0o755))
	}
	m.must(os.Symlink("pid:[99]", filepath.Join(m.proc, "self/ns/pid")))
	m.process(ownPid, 1000)
	m.file(filepath.Join(m.proc, "self/mountinfo"),
		"22 1 8:1 / / rw - ext4 /dev/sda rw\n"+
			"30 22 0:1 / "+strings.ReplaceAll(m.top, " ", `\040`)+" rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n")
	m.file(filepath.Join(m.proc, "swaps"), "Filename Type Size Used Priority\n")
	m.must(m.make(m.top))
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) file(path, text string) {
	m.t.Helper()
	m.must(os.WriteFile(path, []byte(text), 0o644))
}

func (m *machine) text(path string) string {
	b, err := os.ReadFile(path)
	m.must(err)
	return strings.TrimSpace(string(b))
}

// process makes a process that was started at a time.
func (m *machine) process(pid int, start int) {
	m.must(os.MkdirAll(filepath.Join(m.proc, strconv.Itoa(pid)), 0o755))
	m.file(filepath.Join(m.proc, strconv.Itoa(pid), "stat"),
		fmt.Sprintf("%d (a ) b) S 1%s %d 0 0\n", pid, strings.Repeat(" 0", 17), start))
}

// inside puts processes into a group below the top, the first into /proc/self/cgroup, too.
func (m *machine) inside(group string, pids ...int) string {
	dir := m.top
	for part := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		if part == "" {
			continue
		}
		if dir = filepath.Join(dir, part); os.Mkdir(dir, 0o755) == nil {
			m.furnish(dir)
		}
	}
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	m.file(filepath.Join(dir, "cgroup.procs"), text.String())
	m.file(filepath.Join(m.proc, "self/cgroup"), "4:memory:/old\n0::"+group+"\n")
	return dir
}

func (m *machine) furnish(dir string) {
	for name, text := range map[string]string{
		"cgroup.procs": "", "cgroup.subtree_control": "", "cgroup.controllers": "cpu memory pids", "cgroup.kill": "",
	} {
		m.file(filepath.Join(dir, name), text)
	}
	if dir == m.top {
		return
	}
	m.file(filepath.Join(dir, "cgroup.type"), "domain")
	if m.enabled(filepath.Dir(dir)) {
		for name, text := range map[string]string{
			"memory.max": "max", "memory.high": "max", "memory.swap.max": "max", "memory.oom.group": "0",
			"pids.max": "max", "memory.events": "low 0\noom 0\noom_kill 0\n", "pids.events": "max 0\n",
		} {
			m.file(filepath.Join(dir, name), text)
		}
	}
}

func (m *machine) make(dir string) error {
	if err := m.fails["mkdir"]; err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	m.furnish(dir)
	return nil
}

func (m *machine) unmake(dir string) error {
	pids, err := m.members(dir)
	if err != nil {
		return err
	}
	if len(pids) > 0 || m.busy > 0 {
		m.busy = max(m.busy-1, 0)
		return errors.New("busy")
	}
	return os.RemoveAll(dir)
}

func (m *machine) put(path, text string) error {
	dir, name := filepath.Split(path)
	if err := m.fails[name]; err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	switch name {
	case "cgroup.procs":
		m.move(text, dir)
	case "cgroup.kill":
		m.file(filepath.Join(dir, "cgroup.procs"), "")
	case "cgroup.subtree_control":
		if pids, _ := m.members(dir); len(pids) > 0 && !m.isRoot(filepath.Clean(dir)) {
			return errors.New("device or resource busy")
		}
		m.file(path, strings.ReplaceAll(text, "+", ""))
	default:
		m.file(path, text)
	}
	return nil
}

// move puts a process into a group, and out of all others.
func (m *machine) move(pid, to string) {
	m.must(filepath.WalkDir(m.top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" {
			pids := strings.Fields(m.text(path))
			if pids = slices.DeleteFunc(pids, func(p string) bool { return p == pid }); filepath.Dir(path) == filepath.Clean(to) {
				pids = append(pids, pid)
			}
			m.file(path, strings.Join(pids, "\n"))
		}
		return err
	}))
}

// here is where the groups of commands are, below the top.
func (m *machine) here(t *Tree) string { return strings.TrimPrefix(t.dir, m.top) }

// TestFindAlone: a server that is alone in a group that was delegated to it moves into a child.
func TestFindAlone(t *testing.T) {
	m := newMachine(t)
	dir := m.inside("/system.slice/codehand.service", ownPid)
	m.delegated = func(d string) bool { return d == dir }
	tree, err := find(m.host)
	m.must(err)
	if got := m.here(tree); got != "/system.slice/codehand.service" {
		t.Errorf("groups are made in %s", got)
	}
	if got := m.text(filepath.Join(dir, serverLeaf, "cgroup.procs")); got != strconv.Itoa(ownPid) {
		t.Errorf("%s holds %q", serverLeaf, got)
	}
	if got := m.text(filepath.Join(dir, "cgroup.procs")); got != "" {
		t.Errorf("%q stayed in the group", got)
	}
	// The next process of the service, or another look, finds it as it is.
	m.inside("/system.slice/codehand.service/"+serverLeaf, ownPid)
	tree, err = find(m.host)
	m.must(err)
	if got := m.here(tree); got != "/system.slice/codehand.service" {
		t.Errorf("the second time groups are made in %s", got)
	}
}

// TestFindWithChildren: what the server has started moves with it, also what starts meanwhile.
func TestFindWithChildren(t *testing.T) {
	m := newMachine(t)
	dir := m.inside("/a", ownPid, 60)
	m.delegated = func(string) bool { return true }
	child := func(pid, parent int) {
		m.must(os.MkdirAll(filepath.Join(m.proc, strconv.Itoa(pid)), 0o755))
		m.file(filepath.Join(m.proc, strconv.Itoa(pid), "stat"),
			fmt.Sprintf("%d (git) S %d%s 9 0 0\n", pid, parent, strings.Repeat(" 0", 17)))
	}
	child(60, ownPid)
	child(61, 60)
	late := true
	m.write = func(path, text string) error {
		if filepath.Base(path) == "cgroup.subtree_control" && late {
			late = false
			m.file(filepath.Join(dir, "cgroup.procs"), "61\n")
		}
		return m.put(path, text)
	}
	tree, err := find(m.host)
	m.must(err)
	if got := m.text(filepath.Join(dir, serverLeaf, "cgroup.procs")); m.here(tree) != "/a" || got != "4242\n60\n61" {
		t.Errorf("groups in %q, and the leaf holds %q", m.here(tree), got)
	}
}

// TestFindTop: what is the top of a mount in a container needs no mark; the root of all groups needs no move.
func TestFindTop(t *testing.T) {
	m := newMachine(t)
	m.inside("/", ownPid, 7)
	tree, err := find(m.host)
	m.must(err)
	if m.here(tree) != "" || m.text(filepath.Join(m.top, "cgroup.procs")) != "4242\n7" {
		t.Errorf("root: groups in %q", m.here(tree))
	}
	m = newMachine(t)
	m.file(filepath.Join(m.top, "cgroup.type"), "domain")
	m.inside("/", ownPid)
	tree, err = find(m.host)
	m.must(err)
	if m.here(tree) != "" || m.text(filepath.Join(m.top, serverLeaf, "cgroup.procs")) != "4242" {
		t.Errorf("container: groups in %q", m.here(tree))
	}
}

// TestFindSession: among other programs of a desktop session, groups are made beside that of the server.
func TestFindSession(t *testing.T) {
	session := func(t *testing.T) (*machine, string) {
		m := newMachine(t)
		m.user = os.Geteuid()
		if m.user == 0 {
			m.delegated = func(d string) bool { return filepath.Base(d) == "user@1000.service" }
		}
		slice := m.inside("/user.slice/user@1000.service/app.slice")
		m.file(filepath.Join(slice, "cgroup.subtree_control"), "memory pids")
		return m, m.inside("/user.slice/user@1000.service/app.slice/terminal.scope", ownPid, 7, 8)
	}
	m, _ := session(t)
	tree, err := find(m.host)
	m.must(err)
	if got := m.here(tree); got != "/user.slice/user@1000.service/app.slice" {
		t.Errorf("groups are made in %s", got)
	}
	if text, _ := os.ReadFile(filepath.Join(m.top, "user.slice/user@1000.service/app.slice", serverLeaf)); text != nil {
		t.Error("the server moved")
	}
	for name, text := range map[string]string{"memory.max": "1073741824", "memory.high": "4096", "cpu.max": "50000 100000"} {
		m, scope := session(t)
		m.file(filepath.Join(scope, name), text)
		if tree, err := find(m.host); !errors.Is(err, ErrNone) {
			t.Errorf("a group with %s: commands would escape from it to %+v", name, tree)
		}
	}
}

// TestFindNone: nothing is claimed, and nothing changed, where the tree is not ours.
func TestFindNone(t *testing.T) {
	for name, prepare := range map[string]func(*machine){
		"not delegated": func(m *machine) { m.inside("/system.slice/sshd.service", ownPid) },
		"others inside": func(m *machine) {
			m.inside("/a", ownPid, 7)
			m.delegated = func(string) bool { return true }
		},
		"no controllers": func(m *machine) {
			m.file(filepath.Join(m.inside("/a", ownPid), "cgroup.controllers"), "hugetlb")
			m.delegated = func(string) bool { return true }
		},
		"no v2":         func(m *machine) { m.file(filepath.Join(m.proc, "self/cgroup"), "4:memory:/\n") },
		"out of sight":  func(m *machine) { m.file(filepath.Join(m.proc, "self/cgroup"), "0::/../a\n") },
		"another group": func(m *machine) { m.inside("/a", 7) },
		"read-only": func(m *machine) {
			m.inside("/", ownPid)
			mounts := filepath.Join(m.proc, "self/mountinfo")
			m.file(mounts, strings.ReplaceAll(m.text(mounts), "rw,nosuid", "ro,nosuid")+"\n")
		},
		"cannot move": func(m *machine) {
			m.inside("/a", ownPid)
			m.delegated = func(string) bool { return true }
			m.fails["cgroup.procs"] = errors.New("permission denied")
		},
		"cannot enable": func(m *machine) {
			m.inside("/a", ownPid)
			m.delegated = func(string) bool { return true }
			m.fails["cgroup.subtree_control"] = errors.New("permission denied")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			prepare(m)
			before := m.all()
			tree, err := find(m.host)
			if !errors.Is(err, ErrNone) || tree != nil {
				t.Errorf("got %+v, %v", tree, err)
			}
			if after := m.all(); after != before {
				t.Errorf("changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// all is the whole tree as text.
func (m *machine) all() string {
	var b strings.Builder
	m.must(filepath.WalkDir(m.top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&b, "%s: %s\n", strings.TrimPrefix(path, m.top), strings.ReplaceAll(m.text(path), "\n", " "))
		}
		return err
	}))
	return b.String()
}

func rooted(t *testing.T) (*machine, *Tree) {
	t.Helper()
	m := newMachine(t)
	m.inside("/", ownPid)
	tree, err := find(m.host)
	m.must(err)
	return m, tree.With(Limits{Memory: 64<<20 + 5, Processes: 40})
}

func TestGroup(t *testing.T) {
	m, tree := rooted(t)
	g, err := tree.New(Limits{})
	m.must(err)
	for name, want := range map[string]string{
		"memory.max": strconv.Itoa(64 << 20), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "40",
	} {
		if got := m.text(filepath.Join(g.dir, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	m.must(g.Add(77))
	if got := m.text(filepath.Join(g.dir, "cgroup.procs")); got != "77" {
		t.Errorf("the group holds %q", got)
	}
	if got := g.Hit(); got != (Limits{}) {
		t.Errorf("no limit was hit, got %+v", got)
	}
	m.file(filepath.Join(g.dir, "memory.events"), "low 0\noom 3\noom_kill 2\noom_group_kill 1\n")
	m.file(filepath.Join(g.dir, "pids.events"), "max 9\n")
	if got := g.Hit(); got != (Limits{64<<20 + 5, 40}) {
		t.Errorf("hit %+v", got)
	}
	m.busy = 2
	g.End()
	if left := m.groups(); left != nil {
		t.Errorf("left: %q", left)
	}
	other, err := tree.New(Limits{Memory: 1 << 20, Processes: 2})
	m.must(err)
	if filepath.Base(other.dir) == filepath.Base(g.dir) || len(filepath.Base(other.dir)) < len(tree.prefix)+26 {
		t.Errorf("the name %s can be guessed", other.dir)
	}
	other.End()
}

func (m *machine) groups() (names []string) {
	dirs, err := filepath.Glob(filepath.Join(strings.ReplaceAll(m.top, "[", "\\["), groupPrefix+"*"))
	m.must(err)
	for _, dir := range dirs {
		names = append(names, filepath.Base(dir))
	}
	return names
}

// TestGroupFails: a group of which a limit is not kept is no group.
func TestGroupFails(t *testing.T) {
	for _, name := range []string{"mkdir", "memory.oom.group", "memory.max", "memory.swap.max", "pids.max"} {
		m, tree := rooted(t)
		m.fails[name] = errors.New("refused")
		if g, err := tree.New(Limits{}); err == nil || g != nil {
			t.Errorf("%s: got %+v, %v", name, g, err)
		}
		if left := m.groups(); left != nil {
			t.Errorf("%s: left: %q", name, left)
		}
	}
	m, tree := rooted(t)
	m.write = func(path, text string) error { // the kernel takes it and keeps another value
		if filepath.Base(path) == "memory.max" {
			text = "max"
		}
		return m.put(path, text)
	}
	if _, err := tree.New(Limits{}); err == nil {
		t.Error("a limit that reads back otherwise was believed")
	}
	for _, l := range []Limits{{Memory: 1}, {Processes: 1}, {-1, 5}} {
		if _, err := tree.New(l); err == nil {
			t.Errorf("%+v is a limit", l)
		}
	}
	if left := m.groups(); left != nil {
		t.Errorf("left: %q", left)
	}
}

// TestNoSwapFile: a kernel without accounting of swap is enough for a machine without swap.
func TestNoSwapFile(t *testing.T) {
	m, tree := rooted(t)
	m.fails["memory.swap.max"] = fs.ErrNotExist
	g, err := tree.New(Limits{})
	m.must(err)
	g.End()
	m.file(filepath.Join(m.proc, "swaps"), "Filename Type Size Used Priority\n/dev/sda2 partition 9 0 -2\n")
	if _, err := tree.New(Limits{}); err == nil {
		t.Error("memory has a way out to swap")
	}
}

// TestNil: no tree, no group, no harm.
func TestNil(t *testing.T) {
	var tree *Tree
	g, err := tree.With(Limits{1, 1}).New(Limits{})
	if g != nil || err != nil || g.Add(1) != nil || g.Hit() != (Limits{}) || tree.Limits() != (Limits{}) {
		t.Error("a nil Tree limits something")
	}
	g.End()
}

// TestSweep: groups of servers of this pid namespace that are gone are ended and removed, and no others.
func TestSweep(t *testing.T) {
	m, _ := rooted(t)
	m.process(50, 500)
	keep := []string{"99-50-500-AAAA", "98-51-500-AAAA", "99-4242-1000-AAAA", "99-x-1-AAAA", "strange"}
	for _, name := range append([]string{"99-50-499-AAAA", "99-51-500-AAAA"}, keep...) {
		dir := filepath.Join(m.top, groupPrefix+name)
		m.must(m.make(dir))
		m.file(filepath.Join(dir, "cgroup.procs"), "77\n")
	}
	if _, err := find(m.host); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range keep {
		want = append(want, groupPrefix+name)
	}
	slices.Sort(want)
	if got := m.groups(); !slices.Equal(got, want) {
		t.Errorf("left\n%q, want\n%q", got, want)
	}
}

// TestRemovedLater: a group that stays busy is removed when the next one is made.
func TestRemovedLater(t *testing.T) {
	m, tree := rooted(t)
	g, err := tree.New(Limits{})
	m.must(err)
	tree.left.dirs = append(tree.left.dirs, g.dir)
	m.must(g.Add(77))
	next, err := tree.New(Limits{})
	m.must(err)
	next.End()
	if left := m.groups(); left != nil || len(tree.left.dirs) > 0 {
		t.Errorf("left: %q, %q", left, tree.left.dirs)
	}
}

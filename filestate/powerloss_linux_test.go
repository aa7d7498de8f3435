package filestate_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"codehand/filestate"
)

// A powered is the built program with its workspace and its state on a lossyDisk, whose power goes out and comes back.
type powered struct {
	*testing.T
	program, dir string
	disk         *lossyDisk
	server       *fuse.Server
	cmd          *exec.Cmd
	in           *json.Encoder
	out          *bufio.Reader
	close        func()
	calls        int
	boots        int // starts of the machine, each of which the kernel gives an id of its own
}

func newPowered(t *testing.T, random *rand.Rand) *powered {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("%v: this kernel, or container, has no FUSE, and nothing that could be installed brings it", err)
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "test", "-w", "/dev/fuse").CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" && os.Geteuid() == 0 {
			t.Fatalf("FUSE in a mount namespace: %v %s", err, out)
		}
		t.Skipf("FUSE in a mount namespace: %v %s; run the tests as root, with /dev/fuse and SYS_ADMIN", err, out)
	}
	m := &powered{T: t, dir: realTemp(t), disk: newLossyDisk(random)}
	t.Cleanup(m.off)
	m.mount()
	for _, dir := range []string{"work", "home"} {
		if err := os.Mkdir(filepath.Join(m.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.sync()
	return m
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sync is sync(8): all that there is survives.
func (m *powered) sync() {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.choice = leavesAny
	for _, n := range m.disk.nodes {
		n.kept, n.names, n.waiting, n.safe = append([]byte(nil), n.data...), cloned(n.entries), nil, n.attr
	}
}

func cloned(names map[string]uint64) map[string]uint64 {
	if names == nil {
		return nil
	}
	all := make(map[string]uint64, len(names))
	for name, id := range names {
		all[name] = id
	}
	return all
}

func (m *powered) mount() {
	m.Helper()
	var err error
	m.server, err = fuse.NewServer(m.disk, m.dir, &fuse.MountOptions{DirectMount: true, FsName: "lossy", Name: "lossy", DisableReadDirPlus: true, DisableSplice: true})
	if err != nil {
		if os.Getenv("CI") != "" && os.Geteuid() == 0 {
			m.Fatalf("mount: %v", err)
		}
		m.Skipf("mount: %v; run the tests as root, or install fuse3", err)
	}
	go m.server.Serve() // until it is unmounted
	if err := m.server.WaitMount(); err != nil {
		m.Fatalf("mount: %v", err)
	}
}

// on starts the program, which is built for the first time, and says hello.
func (m *powered) on() {
	m.Helper()
	if m.program == "" {
		m.program = filepath.Join(m.TempDir(), "codehand")
		if out, err := exec.CommandContext(m.Context(), "go", "build", "-o", m.program, "codehand/cmd/codehand").CombinedOutput(); err != nil {
			m.Fatalf("build: %v\n%s", err, out)
		}
	}
	home := filepath.Join(m.dir, "home")
	m.boots++
	boot := filepath.Join(filepath.Dir(m.program), "boot_id")
	if err := os.WriteFile(boot, fmt.Appendf(nil, "00000000-0000-4000-8000-%012d\n", m.boots), 0o600); err != nil {
		m.Fatal(err)
	}
	m.cmd = exec.Command("unshare", "--mount", "sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`,
		boot, m.program, "stdio", m.work(""), "--edit-guard=relaxed")
	m.cmd.Dir, m.cmd.Stderr = "/", m.Output()
	m.cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "CODEHAND_SESSION=power-loss"}
	in, err := m.cmd.StdinPipe()
	if err != nil {
		m.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.in, m.out = json.NewEncoder(in), bufio.NewReader(out)
	m.close = func() { _ = in.Close() }
	if _, err := m.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "power", "version": "1"}}); err != nil {
		m.Fatalf("hello: %v", err)
	}
}

// ask sends a request and returns its answer.
func (m *powered) ask(method string, params map[string]any) (json.RawMessage, error) {
	m.calls++
	if err := m.in.Encode(map[string]any{"jsonrpc": "2.0", "id": m.calls, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		line, err := m.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var r struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		if r.ID == m.calls && r.Result != nil {
			return r.Result, nil
		}
	}
}

// call calls a tool. acknowledged: it said that the change is made and on the disk.
func (m *powered) call(name string, args map[string]any) (text string, acknowledged bool) {
	m.Helper()
	raw, err := m.ask("tools/call", map[string]any{"name": name, "arguments": args})
	var r struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err != nil || json.Unmarshal(raw, &r) != nil || len(r.Content) == 0 {
		m.Fatalf("%s %v: %v, %s", name, args, err, raw)
	}
	text = r.Content[0].Text
	return text, !r.IsError && !strings.Contains(text, "[written; durability unknown: ")
}

// off ends the program and the mount.
func (m *powered) off() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait() // it was killed, and says so
		m.close()
		m.cmd = nil
	}
	if m.server == nil {
		return
	}
	if m.server.Unmount() != nil {
		_ = syscall.Unmount(m.dir, syscall.MNT_DETACH)
	}
	m.server.Wait()
	m.server = nil
}

// crash is a power loss, now if there was none yet, and the power again.
func (m *powered) crash() {
	m.Helper()
	left := m.disk.cut()
	m.off()
	m.disk = left
	m.mount()
}

func (m *powered) work(name string) string { return filepath.Join(m.dir, "work", name) }

// held is what a file holds; "": there is none.
func (m *powered) held(name string) string {
	m.Helper()
	b, err := os.ReadFile(m.work(name))
	if err != nil && !os.IsNotExist(err) {
		m.Fatal(err)
	}
	return string(b)
}

// agrees fails unless the newest change of each file ends with what that holds, and none is open.
func (m *powered) agrees(names ...string) {
	m.Helper()
	dirs, err := filepath.Glob(filepath.Join(m.dir, "home", "codehand", "journal", "*"))
	if err == nil && len(dirs) == 0 && m.held("a.txt") == powerVersion(0) {
		return // there was no change yet
	}
	if err != nil || len(dirs) != 1 {
		m.Fatalf("the journals are %v, %v", dirs, err)
	}
	j := openJournal(m.T, dirs[0])
	defer func() {
		if err := j.Close(); err != nil {
			m.Fatal(err)
		}
	}()
	for _, name := range names {
		entries, err := j.History(m.Context(), filestate.Query{Path: m.work(name), Limit: 1})
		if err != nil {
			m.Fatal(err)
		}
		if len(entries) == 0 && (m.held(name) == "" || m.held(name) == powerVersion(0)) {
			continue
		}
		if len(entries) == 0 || entries[0].Open || entries[0].Unsure {
			m.Fatalf("%s holds %.40q, its newest change is %+v", name, m.held(name), entries)
		}
		_, after, err := j.Contents(m.Context(), entries[0].ID, m.work(name))
		if err != nil || string(after) != m.held(name) {
			m.Fatalf("%s holds %.40q, its newest change left %.40q, %v", name, m.held(name), after, err)
		}
	}
}

// swept fails if a temporary file is left after the first change in each directory that has one.
func (m *powered) swept() (found int) {
	m.Helper()
	long := time.Now().Add(-time.Hour) // after another start of the machine a process looks like one of another machine
	for again := range 2 {
		var dirs []string
		if err := filepath.WalkDir(m.work(""), func(path string, e fs.DirEntry, err error) error {
			if err == nil && filestate.Temporary(e.Name()) {
				dirs = append(dirs, filepath.Dir(path))
				err = os.Chtimes(path, long, long)
			}
			return err
		}); err != nil {
			m.Fatal(err)
		}
		if again > 0 && len(dirs) > 0 {
			m.Fatalf("temporary files are left in %v", dirs)
		}
		for _, dir := range dirs {
			found++
			if text, ok := m.call("write_file", map[string]any{"file_path": filepath.Join(dir, fmt.Sprintf("sweep%d", m.calls)), "content": "x\n"}); !ok {
				m.Fatal(text)
			}
		}
	}
	return found
}

// powerVersion is a content that is torn unless each line is the same.
func powerVersion(n int) string { return strings.Repeat(fmt.Sprintf("version %d.\n", n), 2000) }

// Without fsync, and with an fsync that does not reach the name, the double loses what was written; what is synced it keeps.
// So it proves something.
func TestLossyDisk(t *testing.T) {
	m := newPowered(t, rand.New(rand.NewPCG(1, 1)))
	write := func(name, content string, sync bool) {
		t.Helper()
		f, err := os.Create(m.work(name))
		if err == nil {
			_, err = f.WriteString(content)
		}
		if err == nil && sync {
			err = f.Sync()
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("kept", "old", true)
	write("renamed", "old", true)
	write("in place", "old", true)
	d, err := os.Open(m.work(""))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	write("nameless", "new", true) // its directory is not synced
	write("x", "new", false)
	if err := os.Rename(m.work("x"), m.work("renamed")); err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	write("in place", "new", false)
	write("after", "new", true)
	m.disk.arm(0, leavesNothing)
	m.crash()
	for name, want := range map[string]string{"kept": "old", "nameless": "new", "renamed": "", "in place": "old", "after": ""} {
		if got := m.held(name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// A powerRound makes changes until the power goes out.
type powerRound struct {
	*powered
	a, b  int      // versions of the files that are edited
	files []string // that were made, each holds its own name
}

// edit makes the next change: of one file, of two, or a new one. acknowledged is false if the power went out meanwhile.
func (r *powerRound) edit(kind int) (acknowledged bool) {
	r.Helper()
	item := func(name string, n int) map[string]any {
		return map[string]any{"file_path": r.work(name), "old_string": fmt.Sprintf("version %d.", n), "new_string": fmt.Sprintf("version %d.", n+1), "replace_all": true}
	}
	var text string
	switch kind {
	case 0:
		text, acknowledged = r.call("edit_file", item("a.txt", r.a))
	case 1:
		text, acknowledged = r.call("multi_edit", map[string]any{"edits": []any{item("a.txt", r.a), item("s/b.txt", r.b)}})
	default:
		name := fmt.Sprintf("new%d/dir/f.txt", r.calls)
		r.files = append(r.files, name)
		text, acknowledged = r.call("write_file", map[string]any{"file_path": r.work(name), "content": strings.Repeat(name+"\n", 1000)})
	}
	if out, _ := r.disk.off(); !out && !acknowledged {
		r.Fatalf("change %d, with the power on: %s", kind, text)
	}
	if acknowledged && kind < 2 {
		r.a++
		r.b += kind
	}
	return acknowledged
}

// newest is how many new files are compared with the journal: each comparison reads all of it.
const newest = 3

// check looks at all files after the next start. flight is the kind of the change that was not acknowledged; -1: none was.
func (r *powerRound) check(flight int) (made bool) {
	r.Helper()
	a, b := r.held("a.txt"), r.held("s/b.txt")
	switch {
	case a == powerVersion(r.a) && b == powerVersion(r.b):
	case flight == 0 && a == powerVersion(r.a+1) && b == powerVersion(r.b):
		r.a++
		made = true
	case flight == 1 && a == powerVersion(r.a+1) && b == powerVersion(r.b+1):
		r.a++
		r.b++
		made = true
	default:
		r.Fatalf("versions %d and %d were acknowledged, in flight was %d; a.txt holds %.40q (%d bytes), b.txt %.40q (%d bytes)", r.a, r.b, flight, a, len(a), b, len(b))
	}
	for i, name := range r.files {
		switch got := r.held(name); {
		case got == strings.Repeat(name+"\n", 1000):
			made = made || flight == 2 && i == len(r.files)-1
		case got == "" && flight == 2 && i == len(r.files)-1:
			r.files = r.files[:i]
			if _, err := os.Lstat(r.work(name)); err == nil {
				r.Fatalf("%s is there and empty", name)
			}
		default:
			r.Fatalf("%s holds %.40q (%d bytes)", name, got, len(got))
		}
	}
	r.agrees(append([]string{"a.txt", "s/b.txt"}, r.files[max(0, len(r.files)-newest):]...)...)
	return made
}

func newPowerRound(t *testing.T) *powerRound {
	t.Helper()
	seeded := *seed
	if seeded == 0 {
		seeded = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seeded)
	r := &powerRound{powered: newPowered(t, rand.New(rand.NewPCG(seeded, 0)))}
	if err := os.Mkdir(r.work("s"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "s/b.txt"} {
		if err := os.WriteFile(r.work(name), []byte(powerVersion(0)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.sync()
	r.on()
	return r
}

// The power goes out at random operations of several changes, and some or all of what was not synced is gone. After the
// next start each file holds what was acknowledged, or for the change in flight old or new, whole; a change of two files is
// in both or in none; the journal agrees; and the first change in a directory leaves no temporary file there (SEC-13).
func TestSEC13PowerLoss(t *testing.T) {
	rounds := 25
	if os.Getenv("CODEHAND_LONG") == "1" {
		rounds = 200
	}
	r := newPowerRound(t)
	edits, made, left := 0, 0, 0
	for range rounds {
		r.disk.arm(1+r.disk.random.IntN(100), r.disk.random.IntN(choices))
		flight := -1
		for range 1 + r.disk.random.IntN(5) {
			kind := r.disk.random.IntN(3)
			if !r.edit(kind) {
				flight = kind
				break
			}
			edits++
		}
		r.crash()
		r.on()
		if r.check(flight) {
			made++
		}
		left += r.swept()
	}
	t.Logf("%d power losses, %d changes acknowledged, %d of those in flight made; %d temporary files came back and were removed; 0 damaged", rounds, edits, made, left)
}

// The power goes out at every operation of one change, of each kind, and nothing or any part is left of what was not synced
// (SEC-13).
func TestSEC13EveryOperation(t *testing.T) {
	r := newPowerRound(t)
	if !r.edit(1) { // so that the directories of the state are there
		t.Fatal("the first change")
	}
	ways := []int{leavesNothing, leavesAny}
	if os.Getenv("CODEHAND_LONG") == "1" {
		ways = append(ways, leavesPrefix, leavesAny, leavesAny, leavesAny)
	}
	for kind, name := range []string{"edit_file", "multi_edit", "write_file"} {
		losses, made, acknowledged := 0, 0, 0
		for _, way := range ways {
			for at := 1; ; at++ {
				r.disk.arm(at, way)
				acked := r.edit(kind)
				out, _ := r.disk.off()
				flight := kind
				if acked {
					flight = -1
					acknowledged++
				}
				r.crash()
				r.on()
				if r.check(flight) {
					made++
				}
				r.swept()
				if !out {
					break
				}
				losses++
			}
		}
		t.Logf("%s: %d power losses, one at each operation in %d ways; %d times the change was made without an answer, %d times acknowledged; 0 damaged", name, losses, len(ways), made, acknowledged)
		if losses < 10*len(ways) {
			t.Error("too few: the changes did not reach the disk")
		}
	}
}

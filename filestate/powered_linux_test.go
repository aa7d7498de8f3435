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
	"testing"
	"time"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/filestate/owner"
)

// A powered is the built program with its workspace and its state on a lossyDisk, whose power goes out and comes back.
type powered struct {
	*testing.T
	program, dir string
	disk         *diskProcess
	random       *rand.Rand // chooses the changes
	cmd          *exec.Cmd
	in           *json.Encoder
	out          *bufio.Reader
	close        func()
	calls        int
	boots        int // starts of the machine, each of which the kernel gives an id of its own
}

func newPowered(t *testing.T, seeded uint64) *powered {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("%v: this kernel, or container, has no FUSE, and nothing that could be installed brings it", err)
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "test", "-w", "/dev/fuse").CombinedOutput(); err != nil {
		lacks(t, "FUSE in a mount namespace: %v %s", err, out)
	}
	m := &powered{T: t, dir: realTemp(t), random: rand.New(rand.NewPCG(seeded, 0))}
	m.disk = startDisk(t, m.dir, seeded)
	t.Cleanup(func() {
		m.off()
		m.disk.end()
	})
	if a := m.disk.order(diskOrder{Do: "mount"}); a.Err != "" {
		lacks(t, "mount: %s", a.Err)
	}
	for _, dir := range []string{"work", "home"} {
		if err := os.Mkdir(filepath.Join(m.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.disk.order(diskOrder{Do: "sync"})
	return m
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir := leaktest.Dir(t)
	return dir
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
	return text, !r.IsError && !strings.Contains(text, "[written, but it may not survive a power loss: ")
}

// off ends the program.
func (m *powered) off() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait() // it was killed, and says so
		m.close()
		m.cmd = nil
	}
}

// crash is a power loss, now if there was none yet, and the power again.
func (m *powered) crash() {
	m.Helper()
	m.disk.order(diskOrder{Do: "cut"})
	m.off()
	m.disk.order(diskOrder{Do: "crash"})
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
		entries, err := j.History(m.Context(), journal.Query{Path: m.work(name), Limit: 1})
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
			if err == nil && owner.Temporary(e.Name()) {
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

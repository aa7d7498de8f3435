package leaktest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// sceneMark makes the test binary the tests of another package; its value says what these leave behind.
const sceneMark = "CODEHAND_TEST_SCENE"

// sitMark makes it a process that must be killed.
const sitMark = "CODEHAND_TEST_SIT"

// scenes are what the tests of a package do. Those that hang say so in a line, with what is to die with them.
var scenes = map[string]func(){
	"nothing":   func() {},
	"goroutine": func() { go func() { select {} }() },
	"file":      func() { kept, _ = os.Open(os.Args[0]) },
	"directory": func() {
		dir, _ := os.MkdirTemp("", "left")
		_ = os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
	},
	"empty directory": func() { _, _ = os.MkdirTemp("", "left") },
	"process":         func() { sit(nil) },
	"killed": func() {
		announced := sit(func(cmd *exec.Cmd) {
			cmd.Dir, cmd.Env = "/", []string{sitMark + "=1"} // only its announcement tells whose it is
			ownGroup(cmd)
		})
		Child(announced)
		seen := sit(ownGroup)
		fmt.Printf("hangs %d %d %q\n", announced, seen, os.Getenv("TMPDIR"))
		<-time.After(time.Hour)
	},
}

// kept is open for as long as the process lives.
var kept *os.File

// sit starts a process that does not end by itself.
func sit(prepare func(*exec.Cmd)) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sitMark+"=1")
	if prepare != nil {
		prepare(cmd)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process.Pid
}

type scene func()

func (s scene) Run() int {
	s()
	return 0
}

func TestMain(m *testing.M) {
	if os.Getenv(sitMark) != "" {
		<-time.After(time.Hour)
	}
	if name := os.Getenv(sceneMark); name != "" {
		patience = 100 * time.Millisecond
		Main(scene(scenes[name]))
	}
	Main(m)
}

// stage is the test binary as the tests of another package, with a temporary directory of its own.
func stage(t *testing.T, name string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	temp = filepath.Join(t.TempDir(), "t")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), sceneMark+"="+name, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	return cmd, temp
}

// empty fails the test if there is anything in dir.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// TestLeaks: a package that leaves something behind fails and is told what; the system is as before.
func TestLeaks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nothing": "", "empty directory": "", "goroutine": "goroutines are left", "directory": "left: remove what the tests make",
		"file": "is still open: close what the tests open", "process": "is left, end what the tests start",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && (name == "process" || name == "file") {
				t.Skip("only /proc says what is open and what runs")
			}
			cmd, temp := stage(t, name)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
				t.Errorf("%v, want %q in its output:\n%s", err, want, out)
			}
			empty(t, temp)
		})
	}
}

// TestKilled: what a killed test process started dies, whether it was announced or works in the run directory, and the
// directory goes.
func TestKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the processes are looked up in /proc")
	}
	cmd, temp := stage(t, "killed")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var announced, seen int
	var dir string
	if _, err := fmt.Sscanf(line, "hangs %d %d %q", &announced, &seen, &dir); err != nil {
		t.Fatal(line, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 || filepath.Dir(dir) != parentDir(temp) {
		t.Errorf("the run directory %s: %v, %v", dir, info, err)
	}
	if !alive(announced, 0) || !alive(seen, 0) {
		t.Fatal("what is to die does not live")
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	gone := func() bool {
		_, err := os.Stat(parentDir(temp))
		return errors.Is(err, fs.ErrNotExist) && !alive(announced, 0) && !alive(seen, 0)
	}
	for limit := time.Now().Add(time.Minute); !gone(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("announced lives: %t, seen lives: %t, or %s is there", alive(announced, 0), alive(seen, 0), parentDir(temp))
		}
	}
}

// TestSweep: the next run removes what dead runs left, also what has no lock file or is not writable, and leaves alone
// what a live run holds.
func TestSweep(t *testing.T) {
	t.Parallel()
	cmd, temp := stage(t, "nothing")
	parent := parentDir(temp)
	for _, dir := range []string{"1/a/b", "2"} {
		if err := os.MkdirAll(filepath.Join(parent, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(parent, "1"+lockSuffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(parent, "1", "a"), 0o500); err != nil {
		t.Fatal(err)
	}
	live, err := makeRun(parent)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, _ := os.ReadDir(parent)
	if len(entries) != 2 || entries[0].Name() != filepath.Base(live.dir) {
		t.Errorf("left are %v, want %s and its lock file", entries, live.dir)
	}
	live.remove()
	empty(t, temp)
}

func TestBuildDir(t *testing.T) {
	t.Parallel()
	temp := filepath.FromSlash("/t m p")
	for path, want := range map[string]string{
		"/t m p/go-build12/b001/x.test":      "/t m p/go-build12",
		"/t m p/go-build12/b001/exe/x.test":  "",
		"/t m p/go-build/b001/x.test":        "",
		"/t m p/mine/go-build12/b001/x.test": "",
		"/home/x.test":                       "",
	} {
		if got := buildDir(filepath.FromSlash(path), temp); got != filepath.FromSlash(want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

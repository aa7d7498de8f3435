//go:build unix

package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestNewcomer is the way of a person who has only the program and an empty home directory: codehand is installed into two
// clients, doctor finds nothing wrong, and each entry, started as it stands in its file, lists the tools and reads a file.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	base := leaktest.Public(t)
	home, work, exe := filepath.Join(base, "home"), filepath.Join(base, "home", "work"), filepath.Join(base, "bin", "codehand")
	for _, dir := range []string{work, filepath.Dir(exe), filepath.Join(base, "tmp")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(work, "hello.txt"), []byte("hello\n"), 0o644))
	if out, err := exec.Command("cp", replaytest.Program(t), exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.Chmod(exe, 0o755))
	// run is a command of the newcomer, who is never root.
	command := func(dir, name string, env []string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append([]string{"HOME=" + home, "PATH=" + filepath.Dir(exe) + ":" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(base, "tmp")}, env...)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return cmd
	}
	if os.Getuid() == 0 {
		must(t, filepath.WalkDir(base, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(p, nobody, nobody)
		}))
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := command(work, exe, nil, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("codehand %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("install", "claude-code", "--yes")
	run("install", "lm-studio", work, "--yes") // which starts servers anywhere
	if found := run("doctor"); strings.Contains(found, "FAIL") {
		t.Errorf("doctor: %s", found)
	}
	for _, c := range []struct{ file, dir string }{{".claude.json", work}, {".lmstudio/mcp.json", "/"}} {
		var said struct {
			Servers map[string]struct {
				Command string
				Args    []string
				Env     map[string]string
			} `json:"mcpServers"`
		}
		text, err := os.ReadFile(filepath.Join(home, c.file))
		must(t, err)
		must(t, json.Unmarshal(text, &said))
		entry := said.Servers["codehand"]
		if entry.Command != exe {
			t.Fatalf("%s starts %q, want %s:\n%s", c.file, entry.Command, exe, text)
		}
		var env []string
		for name, value := range entry.Env {
			env = append(env, name+"="+value)
		}
		p := replaytest.Speak(t, command(c.dir, entry.Command, env, entry.Args...), c.file, false)
		listed, err := p.Request("tools/list", nil)
		must(t, err)
		if !strings.Contains(string(listed.Result), `"name":"read_file"`) {
			t.Errorf("%s: listed: %s", c.file, listed.Result)
		}
		if got := p.Must(t, "read_file", `{"file_path":`+string(quoted(t, filepath.Join(work, "hello.txt")))+`}`); got != "hello" {
			t.Errorf("%s: read_file: %s", c.file, got)
		}
	}
}

func quoted(t *testing.T, s string) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	must(t, err)
	return b
}

package blackbox

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestReadOnlyGo: go list started git status, which a repository can make start anything, and each go wrote an index, a
// telemetry count and more below the home directory. No form that is read-only changes a file of the home or the
// repository, or starts what the file of `go env -w`, a toolchain line or the operator's variables name.
func TestReadOnlyGo(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: go list would start it")
		}
		t.Skip("git is not installed: go list would start it")
	}
	work, home, bin := leaktest.Dir(t), leaktest.Dir(t), leaktest.Dir(t)
	ran := filepath.Join(bin, "ran")
	spy := filepath.Join(bin, "spy")
	write := func(path, text string, mode fs.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(spy, "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\nexit 1\n", 0o755)
	write(filepath.Join(bin, "git"), "#!/bin/sh\necho \"git $*\" >> "+ran+"\nexec "+gitPath(t)+" \"$@\"\n", 0o755)
	write(filepath.Join(home, ".config/go/env"), "GOFLAGS=-mod=mod -toolexec="+spy+"\nGOCACHEPROG="+spy+"\nCC="+spy+"\nPKG_CONFIG="+spy+
		"\nGOAUTH="+spy+"\nGOTOOLCHAIN=auto\nGOPROXY=direct\nGOVCS=*:all\n", 0o644)
	write(filepath.Join(work, "main/go.mod"), "module example.com/main\n\ngo 1.21\n\ntoolchain go1.99.0\n", 0o644)
	write(filepath.Join(work, "main/main.go"), "package main\n\nfunc main() {}\n", 0o644)
	write(filepath.Join(work, "cgo/go.mod"), "module example.com/cgo\n\ngo 1.21\n", 0o644)
	write(filepath.Join(work, "cgo/c.go"), "package main\n\n// #cgo pkg-config: zlib\nimport \"C\"\n\nfunc main() {}\n", 0o644)
	write(filepath.Join(work, "all/go.work"), "go 1.21\n\ntoolchain go1.99.0\n\nuse ./one\n", 0o644)
	write(filepath.Join(work, "all/one/go.mod"), "module example.com/one\n\ngo 1.21\n", 0o644)
	write(filepath.Join(work, "all/one/one.go"), "// Package one is one.\npackage one\n", 0o644)
	write(filepath.Join(work, "missing/go.mod"), "module example.com/missing\n\ngo 1.21\n\nrequire example.com/other v1.0.0\n", 0o644)
	write(filepath.Join(work, "missing/m.go"), "package missing\n\nimport _ \"example.com/other\"\n", 0o644)
	const other = "module example.com/other\n\ngo 1.21\n"
	hash := sha256.Sum256([]byte(other))
	sum := sha256.Sum256(fmt.Appendf(nil, "%x  go.mod\n", hash))
	write(filepath.Join(work, "half/go.mod"), "module example.com/half\n\ngo 1.21\n\nrequire example.com/other v1.0.0\n", 0o644)
	write(filepath.Join(work, "half/m.go"), "package half\n\nimport _ \"example.com/other\"\n", 0o644)
	write(filepath.Join(work, "half/go.sum"), "example.com/other v1.0.0 h1:"+base64.StdEncoding.EncodeToString(hash[:])+
		"\nexample.com/other v1.0.0/go.mod h1:"+base64.StdEncoding.EncodeToString(sum[:])+"\n", 0o644)
	at := filepath.Join(home, "go/pkg/mod/cache/download/example.com/other/@v") // its contents were not fetched yet
	write(filepath.Join(at, "v1.0.0.mod"), other, 0o644)
	write(filepath.Join(at, "v1.0.0.info"), `{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}`, 0o644)
	init := exec.CommandContext(t.Context(), gitPath(t), "init", "-q", work)
	init.Env = []string{"HOME=" + home}
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(replaytest.Program(t), "stdio", work, "--state-dir="+filepath.Join(bin, "state"), "--sandbox-policy=off", "--shell-env-allow=RIPGREP_CONFIG_PATH",
		"--shell-env-allow=GOCACHEPROG", "--shell-env-allow=NODE_OPTIONS")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "RIPGREP_CONFIG_PATH=" + spy, "GOCACHEPROG=" + spy, "NODE_OPTIONS=-r " + spy}
	p := replaytest.Speak(t, cmd, "claude-code", false)
	if env := p.Must(t, "run_readonly", `{"command":"printenv"}`); strings.Contains(env, spy) {
		t.Errorf("a variable that programs obey came through:\n%s", env)
	}
	call := func(command string) string {
		t.Helper()
		text, err := p.Call("run_readonly", json.RawMessage(replaytest.AsJSON(t, "command", command)))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := fileStamps(t, home, work)
	loads := []string{"go list", "go list -m all", "go list -e -deps ./...", "go mod graph", "go mod why fmt"}
	all := append([]string{"go list -f {{.Dir}} ./...", "go list -json=Name,GoFiles ./...", "go list -m -json all", "go doc", "go doc -all fmt.Println",
		"go env GOFLAGS GOPATH", "go env -json GOOS", "go version", "go help list", "gofmt -l ."}, loads...)
	for _, c := range []struct {
		dir   string
		forms []string
		locks bool // a module is missing, for which go makes a lock in the module cache before it learns that there is no network
	}{{"main", all, false}, {"cgo", loads, false}, {"all", loads, false}, {"all/one", loads, false}, {"missing", loads, true}, {"half", loads, true}} {
		for _, form := range c.forms {
			text := call("cd " + c.dir + " && " + form)
			if strings.Contains(text, "NOT_READ_ONLY") || strings.Contains(text, "command not found") {
				t.Errorf("%s: %s", form, text)
			}
			if after := fileStamps(t, home, work); after != before {
				for line := range strings.Lines(newLines(before, after)) {
					if !c.locks || !strings.HasPrefix(line, filepath.Join(home, "go/pkg/mod/cache/download")) {
						t.Errorf("%s in %s changed %s", form, c.dir, line)
					}
				}
				before = after
			}
			if text, err := os.ReadFile(ran); err == nil {
				t.Errorf("%s in %s started %s", form, c.dir, text)
				_ = os.Remove(ran)
			}
		}
	}
	for _, form := range []string{"go env", "go env -json", "go env CC CGO_CFLAGS", "go env PKG_CONFIG", "go list -json ./...", "go list -json=true", "go list -json= .",
		"go list -json=Name,Stale", "go list -f {{.StaleReason}}", "go list -test ./...", "go list -export", "go list -compiled"} {
		if text := call(form); !strings.Contains(text, "NOT_READ_ONLY") {
			t.Errorf("%s starts the compiler: %s", form, text)
		}
	}
}

func gitPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fileStamps says of every file below dirs what lstat says, but for when it was read; a line for each.
func fileStamps(t *testing.T, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				fmt.Fprintf(&b, "%s %v %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// newLines are those of after that before has not.
func newLines(before, after string) string {
	var b strings.Builder
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

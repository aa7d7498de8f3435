package blackbox

import (
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
// telemetry count and more below the home directory. Where no kernel holds them, no form of go is read-only but the one
// that prints its version: that changes no file of the home or the repository, and starts nothing that the file of
// `go env -w`, a toolchain line or the operator's variables name.
func TestReadOnlyGo(t *testing.T) {
	t.Parallel()
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
	write(filepath.Join(home, ".config/go/env"), "GOFLAGS=-mod=mod -toolexec="+spy+"\nGOCACHEPROG="+spy+"\nCC="+spy+"\nPKG_CONFIG="+spy+
		"\nGOAUTH="+spy+"\nGOTOOLCHAIN=auto\nGOPROXY=direct\nGOVCS=*:all\n", 0o644)
	write(filepath.Join(work, "go.mod"), "module example.com/main\n\ngo 1.21\n\ntoolchain go1.99.0\n", 0o644)
	write(filepath.Join(work, "main.go"), "package main\n\nfunc main() {}\n", 0o644)
	cmd := exec.Command(replaytest.Program(t), "stdio", work, "--state-dir="+filepath.Join(bin, "state"), "--sandbox-policy=off", "--shell-env-allow=RIPGREP_CONFIG_PATH",
		"--shell-env-allow=GOCACHEPROG", "--shell-env-allow=NODE_OPTIONS")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "RIPGREP_CONFIG_PATH=" + spy, "GOCACHEPROG=" + spy, "NODE_OPTIONS=-r " + spy}
	p := replaytest.Speak(t, cmd, "claude-code", false)
	before := fileStamps(t, home, work)
	for form, runs := range map[string]bool{"go version": true, "gofmt -l .": false, "go list": false, "go list -m all": false, "go mod graph": false, "go mod why fmt": false,
		"go doc": false, "go env": false, "go env GOFLAGS": false, "go list -json ./...": false, "go help list": false, "go version -m x": false} {
		text, err := p.Call("run_readonly", json.RawMessage(replaytest.AsJSON(t, "command", form)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "NOT_READ_ONLY") == runs || strings.Contains(text, "command not found") {
			t.Errorf("%s: %s", form, text)
		}
		if after := fileStamps(t, home, work); after != before {
			t.Errorf("%s changed %s", form, newLines(before, after))
			before = after
		}
		if text, err := os.ReadFile(ran); err == nil {
			t.Errorf("%s started %s", form, text)
			_ = os.Remove(ran)
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

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/clients/install"
	"codehand/server/doctor"
	"codehand/server/logging"
)

// TestGuide: the guide names what was found and one command to type next.
func TestGuide(t *testing.T) {
	t.Parallel()
	entry := &install.Entry{Name: "codehand", Command: "/usr/bin/codehand"}
	zed := install.Found{Client: "zed", Name: "Zed", Present: true}
	code := install.Found{Client: "claude-code", Name: "Claude Code", Present: true}
	connected, off, broken, absent := code, code, code, code
	connected.Entry, absent.Present = entry, false
	off.Entry = &install.Entry{Name: "codehand", Command: "/usr/bin/codehand", Disabled: true}
	foreign := code
	foreign.Entry = &install.Entry{Name: "codehand", Command: "docker"}
	broken.Err = errors.New("line 3")
	goose := install.Found{Client: "goose", Name: "Goose", Present: true}
	studio := install.Found{Client: "lm-studio", Name: "LM Studio", Present: true}
	project := connected
	project.Project = true
	for _, c := range []struct {
		name          string
		found         []install.Found
		here, advised string
	}{
		{"none", []install.Found{absent}, "none in its usual place", "Next, to see what a model would: codehand try"},
		{"one", []install.Found{code, {Client: "zed", Name: "Zed"}}, "Claude Code", "Next, to connect it: codehand install claude-code"},
		{"two", []install.Found{code, zed}, "Claude Code, Zed", "Next, to connect them: codehand install --all"},
		{"one of two", []install.Found{connected, zed}, "Claude Code (connected), Zed", "Next, to connect it: codehand install zed"},
		{"in the project", []install.Found{code, project}, "Claude Code (connected)", "Next, to see that each client works: codehand doctor"},
		// The guide named install --all for ever, which leaves out clients that need a directory.
		{"one needs a directory", []install.Found{connected, goose}, "Claude Code (connected), Goose", "Next, to connect it: codehand install goose DIRECTORY"},
		{"all need a directory", []install.Found{connected, goose, studio}, "Claude Code (connected), Goose, LM Studio", "Next, to connect them: codehand install goose lm-studio DIRECTORY"},
		{"some need a directory", []install.Found{zed, goose, studio}, "Zed, Goose, LM Studio", "Next, to connect them: codehand install --all"},
		{"switched off", []install.Found{off}, "Claude Code", "Next, to connect it: codehand install claude-code"},
		{"another program", []install.Found{foreign}, "Claude Code", "Next, to connect it: codehand install claude-code"},
		{"broken", []install.Found{broken, zed}, "Claude Code, Zed", "Next, since the file of a client cannot be read: codehand doctor"},
	} {
		text := surroundings{clients: c.found, git: "/usr/bin/git", bash: "/bin/bash", sandbox: "level 1"}.guide(false)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if want := "  clients  " + c.here; lines[4] != want {
			t.Errorf("%s: %q, want %q", c.name, lines[4], want)
		}
		if got := lines[len(lines)-1]; got != c.advised {
			t.Errorf("%s: %q, want %q", c.name, got, c.advised)
		}
	}
	_, next, _ := surroundings{passing: true, clients: []install.Found{code}}.advice()
	if next != "go install ./cmd/codehand" {
		t.Errorf("after go run: %q", next)
	}
	found := surroundings{clients: []install.Found{code}, git: "/usr/bin/git", bash: "/bin/bash",
		sandbox: "level 1: " + doctor.LevelText(1)}
	golden(t, "testdata/guide.txt", []byte(found.guide(false)))
	if text := found.guide(true); !strings.Contains(text, "\x1b[1mcodehand install claude-code\x1b[0m\n") {
		t.Errorf("the command is not bold: %q", text)
	}
}

// TestGuideDoesNotWait: where the sandbox cannot be tried in time, the guide names the command that does.
func TestGuideDoesNotWait(t *testing.T) {
	dir := leaktest.Dir(t)
	t.Setenv("TMPDIR", dir)
	ended, end := context.WithCancel(t.Context())
	end()
	if got, want := sandboxHere(ended, &terminal{}), "codehand doctor tells"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestSecondSignal: what a command keeps in a scratch directory goes with the process that a second signal ends at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(leaktest.Dir(t), "scratch")
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	on := &terminal{log: logging.NewWriter(io.Discard)}
	on.scratch.Store(&dir)
	on.last()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scratch directory is still there: %v", err)
	}
}

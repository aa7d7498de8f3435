package bash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox"
)

// needBash returns the path of bash.
func needBash(t *testing.T) string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("bash is not installed: it says what commands do")
		}
		t.Skip("bash is not installed: it says what commands do")
	}
	return bash
}

// runLimit ends commands that wait for something, also where the machine is busy.
const runLimit = time.Minute

// TestReadOnlyChangesNothing runs every command of the corpora that is ReadOnly in a repository, and looks at each file
// afterwards.
func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	bash := needBash(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: commands run in a repository")
	}
	batches := make(chan []string)
	var workers sync.WaitGroup
	for range 2 {
		ws := newRunWorkspace(t, bash)
		workers.Go(func() {
			for batch := range batches {
				ws.mustNotChange(t, batch)
			}
		})
	}
	var commands []string
	for _, name := range corpora {
		for _, r := range corpus(t, name) {
			if Analyze(r.command, inRoot).Class == ReadOnly {
				commands = append(commands, r.command)
			}
		}
	}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	commands = leaktest.Some(4, commands)
	for batch := range slices.Chunk(commands, inBatch) {
		batches <- batch
	}
	close(batches)
	workers.Wait()
	t.Logf("%d commands ran, 0 changed anything", len(commands))

	ws := newRunWorkspace(t, bash)
	for _, c := range []string{"echo x >> a.txt", "touch new", "chmod 600 a.txt", "git branch new", "xxd a.bin -p", "uniq [ab].txt"} {
		before := ws.sum(t)
		ws.run(t, c)
		if ws.sum(t) == before {
			t.Errorf("%q changed nothing that this test sees", c)
		}
	}
}

// A runWorkspace is a small repository to run commands in.
type runWorkspace struct {
	bash, dir, home string
}

func newRunWorkspace(t *testing.T, bash string) *runWorkspace {
	t.Helper()
	ws := &runWorkspace{bash: bash, dir: t.TempDir(), home: t.TempDir()}
	for name, text := range map[string]string{
		"README.md": "# codehand\nfoo TODO --flag naïve café\n", "go.mod": "module example.com/m\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() {\n\tprintln(1) // TODO\n}\n", "src/a.go": "package src\n\n// F is foo.\nfunc F() {}\n",
		"src/b.go": "package src\n", "src/tests/c.txt": "c\n", "tests/a.go": "package tests\n", "a.txt": "a foo\nb bar 12\n", "b.txt": "a foo\nc\n",
		"my file.txt": "mine\n", "datei ä.txt": "x\n", "-odd-name.txt": "x\n", "-weird-file": "foo\n", "file.go": "a|b\n", "log.txt": "error x\nwarn y\n",
		"data.csv": "1,b,3\n2,c,4\n", "data2.csv": "1,x\n", "data.json": `{"items":[{"name":"one","n":1}]}` + "\n", "x.json": `{"a":[1]}` + "\n",
		"package.json": `{"name":"m","scripts":{"test":"x"},"dependencies":{"d":"1"}}` + "\n", "a.bin": "\x00\x01binary text\xff", "b.bin": "\x00\x02",
		"a.b64": "YQo=\n", "sums.txt": "d41d8cd9  nope\n", ".gitignore": "*.log\n", "a.log": "x\n", "node_modules/m.js": "foo\n",
	} {
		file := filepath.Join(ws.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	ws.run(t, `git init -q -b main . && git add . && git -c user.name=a -c user.email=a@b commit -q -m "fix: one" && echo 2 >> a.txt && git stash -q &&
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two && git tag v1 && git branch feature/x && git remote add origin https://example.com/x &&
git update-ref refs/remotes/origin/main HEAD && git branch -q -u origin/main && echo 3 >> main.go && ln -s a.txt link && mkdir sub && git init -q sub`)
	return ws
}

// commandIn returns a command of the corpora, which are written for the root /proj, for the root dir. The path of dir may
// contain spaces.
func commandIn(dir, command string) string {
	return strings.ReplaceAll(command, "/proj", strings.ReplaceAll(dir, " ", `\ `))
}

// run runs a command in the environment that the product gives to what was proved.
func (ws *runWorkspace) run(t *testing.T, command string) {
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, ws.bash, "--noprofile", "--norc", "-c", commandIn(ws.dir, command))
	cmd.Dir = ws.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + ws.home, "LANG=C.UTF-8", "PAGER=cat", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "npm_config_update_notifier=false"}, sandbox.Neutral(nil)...)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && ctx.Err() != nil {
		t.Errorf("%q did not end within %v", command, runLimit)
	}
}

// inBatch is how many commands run in one shell before a test looks at what they changed.
const inBatch = 8

// inOne is a text that runs commands one after the other, each in a subshell.
func inOne(commands []string) string { return "(" + strings.Join(commands, "\n)\n(") + "\n)" }

// mustNotChange runs commands in one shell, and each alone if anything changed.
func (ws *runWorkspace) mustNotChange(t *testing.T, commands []string) {
	before := ws.sum(t)
	ws.run(t, inOne(commands))
	after := ws.sum(t)
	if after == before {
		return
	}
	t.Errorf("%q are ReadOnly, but they changed the workspace", commands)
	for _, c := range commands {
		ws.run(t, c)
		if before, after = after, ws.sum(t); after != before {
			t.Errorf("%q changes it", c)
		}
	}
}

// sum stands for names, modes, links and contents of all files.
func (ws *runWorkspace) sum(t *testing.T) (sum [sha256.Size]byte) {
	h := sha256.New()
	err := filepath.WalkDir(ws.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var data []byte
		switch {
		case d.Type().IsRegular():
			data, err = os.ReadFile(path)
		case d.Type()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(path)
			data = []byte(to)
		}
		fmt.Fprintf(h, "%q %v %d\n%s", path, info.Mode(), len(data), data)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

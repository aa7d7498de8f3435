package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A run is a started bash and the file it prints to.
type run struct {
	*Process
	path string
}

// bash starts text in dir with a small environment and ends it with the test.
func bash(t *testing.T, dir, text string, env ...string) run {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Start(t.Context(), Cmd{
		Path: bashPath(t), Args: []string{"--noprofile", "--norc", "-c", text},
		Env: append([]string{"PATH=" + defaultPath}, env...), Dir: root, Stdout: f, Stderr: f,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End(0) })
	return run{p, f.Name()}
}

func bashPath(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("needs bash in /usr/bin, /bin or /usr/local/bin")
	return ""
}

// text waits for the child and returns what was printed.
func (r run) text(t *testing.T) string {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(hang):
		t.Fatal("the child does not end")
	}
	return r.soFar(t)
}

func (r run) soFar(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStartEnvironmentIsAsGiven(t *testing.T) {
	t.Parallel()
	r := bash(t, t.TempDir(), "env", "ONE=1", "TWO=a b")
	var names []string
	for line := range strings.Lines(r.text(t)) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	// PWD, SHLVL and _ are bash's own.
	if want := []string{"CODEHAND_TREE", "ONE", "PATH", "PWD", "SHLVL", "TWO", "_"}; !slices.Equal(names, want) {
		t.Errorf("variables %v, want %v", names, want)
	}
}

func TestStartWithoutEnvironment(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), Cmd{Path: bashPath(t), Args: []string{"-c", `test -z "$HOME"`}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.End(0)
	<-p.Done()
	if p.Exit() != (Exit{}) {
		t.Errorf("a nil Env handed on the server's own HOME: %+v", p.Exit())
	}
}

func TestStartStreams(t *testing.T) {
	t.Parallel()
	r := bash(t, t.TempDir(), "cat; echo out; echo err >&2")
	if got := r.text(t); got != "out\nerr\n" {
		t.Errorf("got %q, want both streams and an empty stdin", got)
	}
}

func TestStartStdin(t *testing.T) {
	t.Parallel()
	in, feed, err := os.Pipe()
	must(t, err)
	defer in.Close()
	out, err := os.CreateTemp(t.TempDir(), "output")
	must(t, err)
	defer out.Close()
	p, err := Start(t.Context(), Cmd{Path: bashPath(t), Args: []string{"-c", "cat"}, Env: []string{"PATH=" + defaultPath}, Stdin: in, Stdout: out})
	must(t, err)
	defer p.End(0)
	_, err = feed.WriteString("fed")
	must(t, err)
	must(t, feed.Close())
	if got := (run{p, out.Name()}).text(t); got != "fed" {
		t.Errorf("the child read %q", got)
	}
}

// The directory is entered through its handle: a path that leads somewhere else by then does not matter.
func TestStartDirectoryByHandle(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can enter an open directory")
	}
	dir := t.TempDir()
	was := filepath.Join(dir, "was")
	must(t, os.Mkdir(was, 0o700))
	root, err := os.OpenRoot(was)
	must(t, err)
	defer root.Close()
	must(t, os.Rename(was, filepath.Join(dir, "is")))
	must(t, os.Mkdir(was, 0o700))
	p, err := Start(t.Context(), Cmd{Path: bashPath(t), Args: []string{"-c", "echo > here"}, Dir: root})
	must(t, err)
	defer p.End(0)
	<-p.Done()
	if _, err := os.Stat(filepath.Join(dir, "is", "here")); err != nil {
		t.Errorf("the command ran in another directory: %v, %+v", err, p.Exit())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file that the server was born with, or that was opened without close-on-exec, is not the child's.
func TestStartHandsOnNoFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/fd")
	}
	fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	must(t, err)
	defer syscall.Close(fd)
	r := bash(t, t.TempDir(), "echo /proc/self/fd/*")
	// The last one is the directory that bash lists.
	if got := strings.Fields(r.text(t)); len(got) > 4 {
		t.Errorf("the child has files %v", got)
	}
}

func TestStartOwnSession(t *testing.T) {
	t.Parallel()
	r := bash(t, t.TempDir(), `read -r _ _ _ _ group session _ < /proc/self/stat; echo $(($$ == group)) $(($$ == session))`)
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/stat")
	}
	if got := r.text(t); got != "1 1\n" {
		t.Errorf("leader of group and session: %q, want 1 1", got)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Exit{
		"true":             {},
		"exit 3":           {Code: 3},
		"exit 255":         {Code: 255},
		"kill -SEGV $$":    {Code: 139, Signal: "SIGSEGV"},
		"kill -KILL $$":    {Code: 137, Signal: "SIGKILL"},
		"exec kill -9 $$":  {Code: 137, Signal: "SIGKILL"},
		"no-such-program":  {Code: 127},
		"kill -TERM $$ ; ": {Code: 143, Signal: "SIGTERM"},
	} {
		r := bash(t, t.TempDir(), text)
		r.text(t)
		if got := r.Exit(); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the client went away")
	cancel(cause)
	closed, err := os.OpenRoot(t.TempDir())
	must(t, err)
	must(t, closed.Close())
	for name, c := range map[string]struct {
		ctx  context.Context
		cmd  Cmd
		want error
	}{
		"relative path":    {t.Context(), Cmd{Path: "bash"}, ErrCommand},
		"empty path":       {t.Context(), Cmd{}, ErrCommand},
		"NUL in argument":  {t.Context(), Cmd{Path: "/bin/sh", Args: []string{"a\x00b"}}, ErrCommand},
		"NUL in variable":  {t.Context(), Cmd{Path: "/bin/sh", Env: []string{"A=\x00"}}, ErrCommand},
		"missing program":  {t.Context(), Cmd{Path: "/no/such/program"}, fs.ErrNotExist},
		"ended ctx":        {cancelled, Cmd{Path: "/bin/sh"}, cause},
		"closed directory": {t.Context(), Cmd{Path: "/bin/sh", Dir: closed}, os.ErrClosed},
	} {
		if _, err := Start(c.ctx, c.cmd); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	if self := Self(); !Alive(self) {
		t.Errorf("this process is not alive as %s", self)
	}
	for _, other := range []string{"", "0.0", "-1.5", "x", "1", Self() + "0", "999999999.1"} {
		if Alive(other) {
			t.Errorf("%q is alive", other)
		}
	}
	r := bash(t, t.TempDir(), "exit")
	self := identity(r.tree.child.pid)
	r.text(t)
	if Alive(self) {
		t.Errorf("%s is alive after its end", self)
	}
}

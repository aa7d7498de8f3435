package sandbox

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate/leaktest"
)

// typed starts a shell with a terminal, types a line, and returns all that the terminal showed until its end.
func typed(t *testing.T, c Cmd, text, line string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	if c.Profile != nil {
		c.Profile = &Profile{Writable: []string{dir}, Readable: c.Profile.Readable, Network: c.Profile.Network}
	}
	c.Path, c.Args, c.Dir = "/bin/sh", []string{"-c", text}, root
	c.Env = append(c.Env, "PATH="+defaultPath)
	c.Terminal = &Window{Columns: 100, Rows: 30}
	p, err := Start(t.Context(), c)
	if errors.Is(err, ErrConfine) {
		cannot(t, err)
	}
	must(t, err)
	t.Cleanup(func() { p.End(0) })
	end := p.Terminal()
	t.Cleanup(func() { _ = end.Close() })
	_, err = end.WriteString(line)
	must(t, err)
	var all strings.Builder
	_, err = io.Copy(&all, end)
	if !errors.Is(err, unix.EIO) { // what a terminal says that no process has any more
		t.Errorf("the terminal ended with %v", err)
	}
	<-p.Done()
	return strings.ReplaceAll(all.String(), "\r\n", "\n")
}

// levels are Cmds at each level.
func levels() map[string]Cmd {
	return map[string]Cmd{
		"unconfined": {}, "kernel": {Profile: &Profile{}, Level: LevelKernel}, "full": {Profile: &Profile{}, Level: LevelFull},
		"network": {Profile: &Profile{Network: NetworkOn}, Level: LevelFull},
		"list":    {Profile: &Profile{Network: NetworkList}, Level: LevelFull},
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	server, err := unix.Getsid(0)
	must(t, err)
	for name, c := range levels() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := typed(t, c, `read x; echo "got $x"; stty size; tty >/dev/tty && echo named
				[ "$(cut -d' ' -f6 /proc/$$/stat)" = $$ ] && echo leads
				[ "$(cut -d' ' -f8 /proc/$$/stat)" = $$ ] && echo front
				echo by-name > "$(tty)"; stty -echo && echo set`, "a lin\x7fne\n")
			for _, want := range []string{"got a line\n", "30 100\n", "named\n", "leads\n", "front\n", "by-name\n", "set\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in %q", want, got)
				}
			}
			if c.Level == LevelFull && !strings.Contains(got, "/dev/pts/0\n") {
				t.Errorf("the terminal is not the command's own: %q", got)
			}
			if after, _ := unix.Getsid(0); after != server {
				t.Errorf("the session of the server is %d, was %d", after, server)
			}
		})
	}
}

// A helper that waits makes the terminal, too; and a helper that hides its memory and is not root moves before.
func TestTerminalOfSpare(t *testing.T) {
	t.Parallel()
	s := NewSpares()
	t.Cleanup(s.Close)
	for range 2 {
		got := typed(t, Cmd{Profile: &Profile{}, Level: LevelFull, Spares: s}, "read x; echo got $x; tty", "y\n")
		if !strings.Contains(got, "got y\n") || !strings.Contains(got, "/dev/pts/0\n") {
			t.Errorf("got %q", got)
		}
		s.next(t, NetworkOff)
	}
}

// The key for an interrupt reaches what is in front, and nothing else.
func TestTerminalInterrupt(t *testing.T) {
	t.Parallel()
	p := waiting(t, `trap 'echo caught; exit' INT; echo ready; while :; do sleep 0.05; done`)
	_, err := p.Terminal().WriteString("\x03")
	must(t, err)
	got, _ := io.ReadAll(p.Terminal()) // EIO is its end
	if !strings.Contains(string(got), "caught\r\n") {
		t.Errorf("got %q", got)
	}
	must(t, p.Terminal().Close())
}

// ioctls that type for others, or load drivers, stay refused on a terminal of the command's own.
func TestTerminalEscapes(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	exe, err := os.Executable()
	must(t, err)
	for name, c := range levels() {
		if c.Profile == nil {
			continue // nothing is refused there
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Profile.Readable = []string{exe}
			c.Env = []string{childMode + "=terminal", "LINE=1"}
			got := typed(t, c, "exec "+strconv.Quote(exe), "")
			want := "TIOCSTI operation not permitted\nTIOCLINUX operation not permitted\nTIOCSETD operation not permitted\n"
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// waiting starts a shell with a terminal, and returns when it has said that it is ready.
func waiting(t *testing.T, text string) *Process {
	t.Helper()
	p, err := Start(t.Context(), Cmd{
		Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=" + defaultPath},
		Terminal: &Window{Columns: 80, Rows: 24},
	})
	must(t, err)
	t.Cleanup(func() { p.End(0) })
	for shown := ""; !strings.Contains(shown, "ready"); {
		b := make([]byte, 100)
		n, err := p.Terminal().Read(b)
		must(t, err)
		shown += string(b[:n])
	}
	return p
}

// What is typed at a question for a password is known to be secret; the new size is told to the program.
func TestTerminalModes(t *testing.T) {
	t.Parallel()
	p := waiting(t, `trap 'stty size; exit' WINCH; stty -echo; echo ready; while :; do sleep 0.05; done`)
	if !p.AsksSecretly() {
		t.Error("the terminal shows what is typed")
	}
	must(t, p.ResizeTerminal(Window{Columns: 101, Rows: 31}))
	got, _ := io.ReadAll(p.Terminal()) // EIO is its end
	if !strings.Contains(string(got), "31 101\r\n") {
		t.Errorf("got %q", got)
	}
	if must(t, p.Terminal().Close()); p.AsksSecretly() || p.ResizeTerminal(Window{Columns: 1, Rows: 1}) == nil {
		t.Error("a closed terminal has a mode and a size")
	}
}

// End ends also what ignores that its terminal is gone.
func TestTerminalEnd(t *testing.T) {
	t.Parallel()
	p := waiting(t, `trap '' HUP TERM INT; echo ready; while :; do sleep 86399; done`)
	if all, known := p.Programs(); !known || len(all) == 0 || all[0].Words[0] != "/bin/sh" || !all[0].Front {
		t.Errorf("programs: %v, %v", all, known)
	}
	must(t, p.Terminal().Close())
	p.End(0)
	<-p.Done()
	if left := p.Left(); left != 0 {
		t.Errorf("%d processes are left", left)
	}
}

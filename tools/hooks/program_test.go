package hooks

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/permission"
)

// A line in: a script connects to it with /dev/tcp, says when it is ready, and whatever holds the connection is alive.
type phone struct {
	net.Listener
	port string
}

func newPhone(t *testing.T) phone {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return phone{l, port}
}

// dial is the beginning of a script that holds the line, as all that it starts.
const dial = "exec 3<>/dev/tcp/127.0.0.1/$1; echo ready >&3\n"

// ready waits for a script that holds the line.
func (p phone) ready(t *testing.T) net.Conn {
	t.Helper()
	must(t, p.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(hang)))
	c, err := p.Accept()
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.SetDeadline(time.Now().Add(hang)))
	word := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(c, word); err != nil {
		t.Fatal(err)
	}
	return c
}

// gone waits until no process holds the connection any more.
func gone(t *testing.T, c net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("a program is still running: %q, %v", rest, err)
	}
}

// What a hook leaves running is ended when it is done, and takes nothing from its answer.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"child":             `sleep 1000 & echo '{"decision":"block","reason":"no"}'`,
		"child of a child":  `(sleep 1000 & sleep 1000 &) ; echo '{"decision":"block","reason":"no"}'`,
		"that ignores TERM": `(trap '' TERM; while :; do read -r -t 1 _ <> <(:); done) & echo '{"decision":"block","reason":"no"}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPhone(t)
			r, _ := newRunner(t, Options{Hooks: []Hook{{Event: PreToolUse, Command: append(script(t, "bash", dial+text), p.port)}}})
			o, err := r.Before(t.Context(), shellEvent(t, "ls"))
			if err != nil || !slices.Equal(o.Opinions, verdicts(permission.Deny)) || o.Reason != "no" {
				t.Errorf("got %+v, %v", o, err)
			}
			gone(t, p.ready(t))
		})
	}
}

// At the deadline, and when the call is cancelled, the hook is ended with all that it started.
func TestEnded(t *testing.T) {
	t.Parallel()
	const text = dial + "sleep 1000 & sleep 1000 & wait"
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		for timeout := time.Second; ; timeout *= 2 {
			p, begun := newPhone(t), filepath.Join(t.TempDir(), "begun")
			command := append(script(t, "bash", dial+`: >"$2"; sleep 1000 & sleep 1000 & wait`), p.port, begun)
			r, log := newRunner(t, Options{Hooks: []Hook{{Event: PreToolUse, Timeout: timeout, Command: command}}})
			o, err := r.Before(t.Context(), shellEvent(t, "ls"))
			if err != nil || o.Opinions != nil {
				t.Errorf("got %+v, %v", o, err)
			}
			has(t, "the log", log.String(), errTimeout.Error())
			if _, err := os.Stat(begun); err != nil && timeout < hang {
				continue // the machine is busy: it had not begun at its deadline
			}
			gone(t, p.ready(t))
			return
		}
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		p := newPhone(t)
		r, log := newRunner(t, Options{FailClosed: true, Hooks: []Hook{{Event: PreToolUse, Command: append(script(t, "bash", text), p.port)}}})
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the client left")
		var conn net.Conn
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			conn = p.ready(t)
			cancel(cause)
		}()
		o, err := r.Before(ctx, shellEvent(t, "ls"))
		if !errors.Is(err, cause) || o.Opinions != nil || log.String() != "" {
			t.Errorf("got %+v, %v, log %s", o, err, log.String())
		}
		<-begun
		gone(t, conn)
	})
}

// Output without end ends the hook long before its deadline, and costs no memory.
func TestFlood(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"stdout": `exec yes`, "stderr": `exec yes >&2`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, log := newRunner(t, Options{FailClosed: true, Hooks: []Hook{{Event: PreToolUse, Command: script(t, "bash", text)}}})
			o, err := r.Before(t.Context(), shellEvent(t, "ls"))
			if err != nil || !slices.Equal(o.Opinions, verdicts(permission.Deny)) {
				t.Errorf("got %+v, %v", o, err)
			}
			has(t, "the log", log.String(), errFlood.Error())
			if len(log.String()) > 5_000 {
				t.Errorf("the log has %d bytes", len(log.String()))
			}
		})
	}
}

// An answer that is too long to be kept whole is none, and neither is half of it.
func TestCutAnswer(t *testing.T) {
	t.Parallel()
	text := `printf '{"decision":"approve","x":"'; head -c 5000000 /dev/zero | tr '\0' x; echo '"}'`
	r, log := newRunner(t, Options{Hooks: []Hook{{Event: PreToolUse, Command: script(t, "bash", text)}}})
	o, err := r.Before(t.Context(), shellEvent(t, "ls"))
	if err != nil || o.Opinions != nil {
		t.Errorf("got %+v, %v", o, err)
	}
	has(t, "the log", log.String(), errCut.Error())
}

// An input of many megabytes arrives, and one that the program does not read blocks nothing.
func TestLongInput(t *testing.T) {
	t.Parallel()
	e := shellEvent(t, strings.Repeat("long ", 1<<20))
	for name, text := range map[string]string{
		"read":          `[ "$(wc -c)" -gt 5000000 ] && echo '{"decision":"approve"}'`,
		"read in part":  `head -c 10 >/dev/null; echo '{"decision":"approve"}'`,
		"not read":      `echo '{"decision":"approve"}'`,
		"closed":        `exec <&-; echo '{"decision":"approve"}'`,
		"read too late": `echo '{"decision":"approve"}'; [ "$(wc -c)" -gt 5000000 ]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, log := newRunner(t, Options{Hooks: []Hook{{Event: PreToolUse, Command: script(t, "bash", text)}}})
			o, err := r.Before(t.Context(), e)
			if err != nil || !slices.Equal(o.Opinions, verdicts(permission.Allow)) {
				t.Errorf("got %+v, %v, %s", o, err, log.String())
			}
		})
	}
}

// A program is found in its own PATH; one that is not there has not decided.
func TestPath(t *testing.T) {
	t.Parallel()
	interpreter(t, "bash")
	r, log := newRunner(t, Options{Hooks: []Hook{
		{Event: PreToolUse, Command: []string{"bash", "-c", `echo '{"decision":"approve"}'`}},
		{Event: PreToolUse, Command: []string{"no-such-program-here"}},
	}})
	e := shellEvent(t, "ls")
	e.Cwd = "/no/such/directory" // the project's is taken
	o, err := r.Before(t.Context(), e)
	if err != nil || !slices.Equal(o.Opinions, verdicts(permission.Allow)) {
		t.Errorf("got %+v, %v", o, err)
	}
	has(t, "the log", log.String(), "no-such-program-here: no such program in PATH")
}

// Hooks run at the same time: each waits for the other.
func TestParallel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	meet := func(mine, other string) []string {
		return append(script(t, "bash", `cd "$1"; : >"$2"; until [ -e "$3" ]; do read -r -t 0.01 _ <> <(:); done; echo '{"decision":"approve"}'`), dir, mine, other)
	}
	r, _ := newRunner(t, Options{Hooks: []Hook{{Event: PreToolUse, Command: meet("a", "b")}, {Event: PreToolUse, Command: meet("b", "a")}}})
	o, err := r.Before(t.Context(), shellEvent(t, "ls"))
	if err != nil || !slices.Equal(o.Opinions, verdicts(permission.Allow, permission.Allow)) {
		t.Errorf("got %+v, %v", o, err)
	}
}

// The classifier says what it thinks by its exit code; whatever else becomes of it asks a person.
func TestClassify(t *testing.T) {
	t.Parallel()
	const told = `[ "$(cat)" = '{"tool":"run_shell","input":{"command":"a && b"},"cwd":"'"$CODEHAND_PROJECT_DIR"'","mode":"auto"}' ] || exit 9` + "\n"
	for text, want := range map[string]permission.Verdict{
		told + "exit 0": permission.Allow, told + "exit 1": permission.Ask, told + "exit 2": permission.Deny,
		"exit 3": permission.Ask, "kill -KILL $$": permission.Ask, `echo '{"decision":"deny"}'; exit 0`: permission.Allow,
	} {
		r, log := newRunner(t, Options{Classifier: script(t, "bash", text)})
		r.judging = hang
		e := shellEvent(t, "a && b")
		e.Mode = permission.Auto
		v, err := r.Classify(t.Context(), e)
		if failed := strings.Contains(log.String(), "the classifier failed"); err != nil || v != want || failed != (text == "exit 3" || text == "kill -KILL $$") {
			t.Errorf("%s: %v, %v, %s", text, v, err, log.String())
		}
	}
	r, log := newRunner(t, Options{Classifier: []string{"/no/such/program"}})
	if v, err := r.Classify(t.Context(), shellEvent(t, "ls")); v != permission.Ask || err != nil {
		t.Errorf("missing: %v, %v", v, err)
	}
	has(t, "the log", log.String(), "the classifier failed")
	r, log = newRunner(t, Options{Classifier: script(t, "bash", "sleep 1000")})
	r.judging = 300 * time.Millisecond
	if v, err := r.Classify(t.Context(), shellEvent(t, "ls")); v != permission.Ask || err != nil {
		t.Errorf("too long: %v, %v", v, err)
	}
	has(t, "the log", log.String(), errTimeout.Error())
	r, _ = newRunner(t, Options{})
	if v, err := r.Classify(t.Context(), shellEvent(t, "ls")); v != permission.Ask || err != nil {
		t.Errorf("none: %v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ = newRunner(t, Options{Classifier: script(t, "bash", "exit 0")})
	if v, err := r.Classify(ctx, shellEvent(t, "ls")); v != permission.Ask || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", v, err)
	}
}

// TestNotify: the program of the operator is told what waits, on its standard input and not in its arguments; one that
// fails is in the log, and nobody waits for it.
func TestNotify(t *testing.T) {
	t.Parallel()
	heard := filepath.Join(t.TempDir(), "heard")
	r, log := newRunner(t, Options{Notify: append(script(t, "bash", `echo "$@" >"$1"; cat >>"$1"; exit 3`), heard)})
	r.Notify(map[string]string{"title": "Allow `x`; $(y) \"z\" <b>"})
	r.Grace = hang
	r.Close() // it waits for what runs
	text, err := os.ReadFile(heard)
	must(t, err)
	want := heard + "\n" + `{"title":"Allow ` + "`x`" + `; $(y) \"z\" <b>"}` + "\n"
	if string(text) != want {
		t.Errorf("it heard %s", text)
	}
	has(t, "the log", log.String(), "the program of console.notify failed")
	r, log = newRunner(t, Options{})
	r.Notify(1)
	r.Close()
	if log.String() != "" {
		t.Error(log.String())
	}
	if _, err := New(Options{Notify: []string{"bin/tell"}}); err == nil || !strings.Contains(err.Error(), "console.notify") {
		t.Errorf("a program of the directory: %v", err)
	}
}

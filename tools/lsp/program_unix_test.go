//go:build unix

package lsp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/tools/lsp/lsptest"
	"codehand/tools/sandbox"
)

// lockedBuffer is what several write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A real process: what it starts ends with it, it is started anew when it is killed, and its last words are in the
// error.
func TestProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	r := newRig(t, lsptest.How{}, Limits{})
	r.write("a.toy", "fn a\n")
	var log lockedBuffer // each server has a logger of its own, and what the first says may come late
	var pids []int
	var released atomic.Int32
	launch := func(ctx context.Context, _ Server) (Process, error) {
		p, err := Start(ctx, sandbox.Cmd{Path: "/bin/sh", Args: []string{"-c", `echo "$$" >pid; echo last words >&2; "$0"`, self},
			Env: []string{asServer + "={}", "GOCOVERDIR=" + r.dir}, Dir: openRoot(t, r.dir)}, func() { released.Add(1) },
			slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		return p, err
	}
	for range 2 {
		c, done, err := r.pool.Use(t.Context(), r.place(), toy, launch)
		must(t, err)
		got, err := c.Definition(t.Context(), r.doc("a.toy"), Position{0, 3})
		must(t, err)
		expect(t, "definition", r.shown(got), "a.toy:0:3")
		text, err := os.ReadFile(r.path("pid"))
		must(t, err)
		var pid int
		_, err = fmt.Sscan(string(text), &pid)
		must(t, err)
		pids = append(pids, pid)
		must(t, syscall.Kill(-pid, syscall.SIGKILL))
		<-c.conn.DisconnectNotify()
		done()
		if why := c.Why(); !strings.Contains(why, "SIGKILL and said: last words") {
			t.Errorf("got %q", why)
		}
	}
	r.pool.Close()
	if pids[0] == pids[1] || released.Load() != 2 || !strings.Contains(log.String(), "last words") {
		t.Errorf("%v %d %s", pids, released.Load(), log.String())
	}
	if _, _, err := r.pool.Use(t.Context(), r.place(), toy, launch); err == nil {
		t.Error("a closed pool starts servers")
	}
}

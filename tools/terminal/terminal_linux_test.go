package terminal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/sandbox"
)

// opened runs a text in a terminal of 40 columns and 10 rows.
func opened(t *testing.T, text string) (*Terminal, *sandbox.Process, string) {
	t.Helper()
	spool, err := os.Create(filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	w := sandbox.Window{Columns: 40, Rows: 10}
	p, err := sandbox.Start(t.Context(), sandbox.Cmd{
		Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=/usr/bin:/bin"}, Terminal: &w,
	})
	if err != nil {
		t.Fatal(err)
	}
	term := New(p, w, spool, true)
	t.Cleanup(func() {
		term.HangUp()
		p.End(0)
		term.Finish()
		_ = spool.Close()
	})
	return term, p, spool.Name()
}

// shows waits until a row is on the screen.
func shows(t *testing.T, term *Terminal, row string) Display {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var d Display
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %q in %q", row, d.Rows)
		}
		if d = term.Display(0, 0); slices.Contains(d.Rows, row) {
			tick.Stop()
			return d
		}
	}
}

// 10 MB pass the terminal within its caps: all of it is in the spool, and the end on the screen.
func TestTerminalMuch(t *testing.T) {
	t.Parallel()
	term, p, spool := opened(t, `yes "a line of some words that are not long" | head -c 10485760; echo; echo done`)
	d := shows(t, term, "done")
	<-p.Done()
	term.Drain(time.Minute)
	info, err := os.Stat(spool)
	if err != nil || info.Size() < 10<<20 {
		t.Errorf("the spool has %v, %v", info, err)
	}
	kept := 0
	for _, line := range d.Gone {
		kept += len(line)
	}
	if kept > 1<<20 || d.Missed == 0 {
		t.Errorf("%d bytes that left the screen are kept, %d lines missed", kept, d.Missed)
	}
	term.mu.Lock()
	defer term.mu.Unlock()
	if len(term.backlog) > 2*maxBacklog || len(term.modes) > maxModes {
		t.Errorf("backlog of %d bytes, %d of modes", len(term.backlog), len(term.modes))
	}
}

// A program that asks the terminal for ever and never reads the answers stops nothing.
func TestTerminalQuestions(t *testing.T) {
	t.Parallel()
	term, _, _ := opened(t, `stty raw -echo; for i in $(seq 20000); do printf '\033[6n'; done; printf '\r\ndone'; sleep 86400`)
	shows(t, term, "done")
	term.mu.Lock()
	defer term.mu.Unlock()
	if len(term.typed) > maxAnswers+100 {
		t.Errorf("%d bytes of answers wait", len(term.typed))
	}
}

// Two calls that were judged at once do not type one command together.
func TestTerminalTypedMeanwhile(t *testing.T) {
	t.Parallel()
	term, _, _ := opened(t, `stty -echo; echo ready; read x; echo "got $x"; sleep 86400`)
	shows(t, term, "ready")
	seen := term.Typing()
	if !seen.Secret || seen.Shell {
		t.Errorf("the reader is %+v", seen)
	}
	if err := term.Type(seen, Typing{}, []Key{{Text: "rm "}}); err != nil {
		t.Fatal(err)
	}
	if err := term.Type(seen, Typing{}, []Key{{Text: "x"}, {Name: "Enter"}}); !errors.Is(err, ErrTyped) {
		t.Errorf("the second call: %v", err)
	}
	if err := term.Type(term.Typing(), Typing{}, []Key{{Text: "it\n"}}); err != nil {
		t.Error(err)
	}
	shows(t, term, "got rm it")
	if err := term.Type(term.Typing(), Typing{}, []Key{{Text: strings.Repeat("x", maxTyped+1)}}); !errors.Is(err, ErrNotRead) {
		t.Errorf("more than may wait: %v", err)
	}
}

// What was judged as typed into another program is not typed into a shell that has come since.
func TestTerminalShellComes(t *testing.T) {
	t.Parallel()
	term, _, _ := opened(t, `echo ready; read x; exec sh -i 2>&1`)
	shows(t, term, "ready")
	seen := term.Typing()
	if err := term.Type(seen, Typing{}, []Key{{Name: "Enter"}}); err != nil || seen.Shell {
		t.Fatal(err, seen)
	}
	d := term.Display(0, 0)
	for deadline := time.Now().Add(time.Minute); !term.Typing().Shell && time.Now().Before(deadline); d = term.Display(0, 0) {
		if err := term.Await(t.Context(), nil, time.Now().Add(10*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	seen.Count = term.Typing().Count
	if err := term.Type(seen, Typing{}, []Key{{Text: "ls"}}); !errors.Is(err, ErrTyped) {
		t.Errorf("got %v, the screen is %q", err, d.Rows)
	}
}

// Secrets that have an unmistakable shape are hidden on the screen as in the log; a closed terminal takes nothing.
func TestTerminalMasked(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("a1B2", 9)
	term, p, _ := opened(t, `stty cols 80; echo `+token+`; echo done`)
	if err := term.Resize(sandbox.Window{Columns: 80, Rows: 10}); err != nil && !errors.Is(err, ErrOver) {
		t.Fatal(err)
	}
	d := shows(t, term, "done")
	if strings.Contains(strings.Join(d.Rows, ""), token) {
		t.Errorf("the screen shows %q", d.Rows)
	}
	<-p.Done()
	term.Drain(time.Minute)
	if err := term.Type(term.Typing(), Typing{}, []Key{{Text: "x"}}); !errors.Is(err, ErrOver) {
		t.Errorf("typed after the end: %v", err)
	}
}

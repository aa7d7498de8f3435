//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUnreadStderr: a client that starts the server with a pipe as standard error and never reads it is served. Lines of the
// log were written where the calls are read, so that a full pipe ended all answers and records, and the end of input was not
// noticed.
func TestUnreadStderr(t *testing.T) {
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit")
	cmd := program(t, environment(t), "stdio", "--audit-dir="+audit)
	unread, errs := fullPipe(t)
	defer unread.Close()
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = errs.Close() // the program has it
	hung := time.AfterFunc(hang, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()

	answers := bufio.NewScanner(out)
	ask := func(id int, method, params string) string {
		t.Helper()
		hung.Reset(hang)
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("%d: no answer: %v", id, answers.Err())
		}
		var got struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(answers.Bytes(), &got); err != nil || got.ID != id || got.Result == nil {
			t.Fatalf("%d: %s, %v", id, answers.Bytes(), err)
		}
		return string(got.Result)
	}
	ask(0, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	const refused = 1000 // each has a line of more than 100 bytes in the log
	for id := 1; id <= refused; id++ {
		if got := ask(id, "tools/call", `{"name":"read_file","arguments":{"file_path":"missing"}}`); !strings.Contains(got, `"isError":true`) {
			t.Fatalf("%d: %s", id, got)
		}
	}

	_ = in.Close()
	hung.Reset(hang)
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("after the last answer: %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
	records := 0
	files, err := filepath.Glob(filepath.Join(audit, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		records += strings.Count(string(b), `"read_file"`)
	}
	if records != refused {
		t.Errorf("%d records in %q, want %d", records, files, refused)
	}
}

// fullPipe makes a pipe that is full: a write blocks.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for b := make([]byte, 4096); len(b) > 0; {
			if _, err := syscall.Write(int(fd), b); errors.Is(err, syscall.EAGAIN) {
				b = b[:len(b)/2] // the end of the room is found by halves
			} else if err != nil && !errors.Is(err, syscall.EINTR) {
				failed = err
				return
			}
		}
		failed = syscall.SetNonblock(int(fd), false) // as a client makes it
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return r, w
}

//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeSession replays the session that the README shows, over stdio against this program: lines with > are calls,
// lines with $ run in a shell meanwhile, and lines with ! are refusals. Only ids and times of changes may differ.
func TestReadmeSession(t *testing.T) {
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "<!-- session:begin -->\n```text\n")
	shown, _, ok := strings.Cut(rest, "```\n<!-- session:end -->")
	if !ok {
		t.Fatalf("%s has no block of text between <!-- session:begin --> and <!-- session:end -->", readme)
	}
	got := replayReadme(t, shown)
	if unstable(got) == unstable(shown) {
		return
	}
	if !*update {
		t.Errorf("got:\n%s\nIf it is better now: go test ./cmd/codehand -run TestReadmeSession -update", got)
	}
	holdPart(t, readme, "session", "```text\n"+got+"```\n")
}

// replayReadme makes the calls of a session in a new directory, and returns the session with the answers of now. The
// directory is shown as /home/you/demo.
func replayReadme(t *testing.T, session string) string {
	t.Helper()
	const shownDir = "/home/you/demo"
	dir, home := t.TempDir(), t.TempDir()
	cmd := program(t, []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "PWD=" + dir}, "stdio", "--log-level", "error")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(pipe)
	send := func(message string) {
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	// answer is the next line that answers a request; notifications are passed over.
	answer := func() (text string, failed bool) {
		for out.Scan() {
			var a struct {
				ID     int
				Result struct {
					Content []struct{ Text string }
					IsError bool
				}
			}
			if err := json.Unmarshal(out.Bytes(), &a); err != nil {
				t.Fatalf("%v: %s", err, out.Bytes())
			}
			if a.ID == 0 {
				continue
			}
			for _, c := range a.Result.Content {
				text += c.Text
			}
			return text, a.Result.IsError
		}
		t.Fatalf("the server ended: %v", out.Err())
		return "", false
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"readme","version":"1"}}}`)
	answer()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(session) {
		line = strings.TrimSuffix(line, "\n")
		switch kind, rest, _ := strings.Cut(line, " "); kind {
		case "$":
			sh := exec.CommandContext(t.Context(), "sh", "-c", rest)
			sh.Dir = dir
			if b, err := sh.CombinedOutput(); err != nil || len(b) > 0 {
				t.Fatalf("%s: %v %s", rest, err, b)
			}
			all = append(all, line, "")
		case ">":
			name, input, _ := strings.Cut(rest, " ")
			send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + name + `","arguments":` + input + `}}`)
			text, failed := answer()
			text = strings.NewReplacer(real, shownDir, dir, shownDir).Replace(text)
			if failed {
				text = "! " + strings.ReplaceAll(text, "\n", "\n! ")
			}
			all = append(all, line, text, "")
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all[:len(all)-1], "\n") + "\n"
}

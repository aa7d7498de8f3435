package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/tools/tool"
)

// TestCallsInProcessAreNoTurn: "codehand history --json" of 350 changes ended with "invalid character 'O'", since its
// pages counted as the calls of one turn of a model and one of them was cut, which was not JSON any more.
func TestCallsInProcessAreNoTurn(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("123456789\n", 1_900)
	f := start(t, setup{tools: []tool.Tool{fixtureTool("page", reader, func(context.Context, tool.Env, word) (tool.Result, error) {
		return tool.Result{Text: text}, nil
	})}})
	for i := range 40 {
		got, failed, err := f.server.Call(t.Context(), "page", []byte("{}"))
		if err != nil || failed || got != text {
			t.Fatalf("call %d: %d characters of %d, failed %v, %v: %.100q", i, len(got), len(text), failed, err, got)
		}
	}
}

// TestCallsInProcessWait: "codehand call run_shell command='go test ./...'" made the command a job after 45 s, exited
// with 0 and ended the job with itself. The call waits, as its caller does.
func TestCallsInProcessWait(t *testing.T) {
	t.Parallel()
	f := start(t, setup{tools: []tool.Tool{
		fixtureTool("by", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
			return tool.Result{Text: fmt.Sprint(env.AnswerBy.IsZero(), env.Prefs.ShellBackgroundMS)}, nil
		})}})
	if got, failed, err := f.server.Call(t.Context(), "by", []byte("{}")); err != nil || failed || got != "true 0" {
		t.Errorf("a command of a call in process moves to the background: %q, %v, %v", got, failed, err)
	}
}

// TestBackgroundAsSet: shell.auto_background_ms did nothing for a client that is on no list of ours, and for most that
// are. What the operator sets counts for every client that takes progress; a project's file only makes it less.
func TestBackgroundAsSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, project, unlisted, cline, goose, claude string }{
		{"", "", "45000", "45000", "240000", "110000"},
		{"300000", "", "300000", "300000", "300000", "300000"},
		{"2000", "", "2000", "2000", "2000", "2000"},
		{"0", "", "0", "0", "0", "0"},
		{"", "20000", "20000", "20000", "20000", "20000"},
		{"", "100000", "45000", "45000", "100000", "100000"},
		{"300000", "200000", "45000", "45000", "200000", "200000"},
	} {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, ".codehand"), 0o700))
		if c.project != "" {
			file := filepath.Join(dir, ".codehand", "config.toml")
			must(t, os.WriteFile(file, []byte("[shell]\nauto_background_ms = "+c.project+"\n"), 0o600))
		}
		src := config.Sources{Roots: []string{dir}, WorkDir: dir, Home: t.TempDir(), Flags: map[string]string{}}
		if c.set != "" {
			src.Flags["shell-auto-background-ms"] = c.set
		}
		loaded, warnings, err := config.Load(src)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v, %v", warnings, err)
		}
		by := fixtureTool("by", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
			return tool.Result{Text: strconv.Itoa(env.Prefs.ShellBackgroundMS)}, nil
		})
		for client, want := range map[string]string{
			"anything": c.unlisted, "Cline": c.cline, "goose": c.goose, "claude-code": c.claude,
		} {
			f := start(t, setup{client: client, tools: []tool.Tool{by}, change: func(cfg *config.Config) {
				mine := loaded
				mine.Roots, mine.StateDir = cfg.Roots, cfg.StateDir
				*cfg = mine
			}})
			must(t, f.Send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"by",`+
				`"arguments":{"text":"x"},"_meta":{"progressToken":"p"}}}`))
			answer, err := f.Receive()
			if err != nil || !strings.Contains(string(answer), `"text":"`+want+`"`) {
				t.Errorf("set %q, by a project %q, %s: want %s: %v, %s", c.set, c.project, client, want, err, answer)
			}
		}
	}
}

// noPeer is the other end of a request whose client can neither be told nor asked anything.
type noPeer struct{}

func (noPeer) Notify(string, any) error { return jsonrpc.ErrAnswered }
func (noPeer) Gone() <-chan struct{}    { return nil }
func (noPeer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

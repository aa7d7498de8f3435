package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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

// noPeer is the other end of a request whose client can neither be told nor asked anything.
type noPeer struct{}

func (noPeer) Notify(string, any) error { return jsonrpc.ErrAnswered }
func (noPeer) Gone() <-chan struct{}    { return nil }
func (noPeer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

package server

import (
	"context"
	"strings"
	"testing"

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

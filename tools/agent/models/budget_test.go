package models_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
	"codehand/tools/agent/modelstest"
)

// A server that counts no tokens let a sub-agent go on without end: agent.max_tokens holds for it, too, at four bytes a
// token, and the report says that the count is rough.
func TestTokensWithoutUsage(t *testing.T) {
	t.Parallel()
	for provider, raw := range map[string]string{
		models.OpenAI:    `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		models.Anthropic: `{"type":"message","content":[{"type":"tool_use","id":"a","name":"read","input":{}}],"stop_reason":"tool_use"}`,
	} {
		server := modelstest.Start(t, func(modelstest.Request) modelstest.Turn {
			return modelstest.Turn{Raw: raw, Header: map[string]string{"Content-Type": "application/json"}}
		})
		m, _ := client(t, provider, server.URL+"/v1/", nil)
		out, err := loop.Run(t.Context(), loop.Task{
			Model: m, Prompt: "go", Tools: tools, Budget: loop.Budget{Turns: 1000, Tokens: 20_000, Time: time.Hour},
			Do: func(_ context.Context, c loop.Call) loop.Result {
				return loop.Result{CallID: c.ID, Text: strings.Repeat("word ", 1000)}
			},
		})
		if err != nil || out.Stopped != loop.NoTokens || !out.Tokens.Estimated || out.Turns > 100 || out.Turns < 3 {
			t.Errorf("%s: %v, stopped by %q after %d turns with %+v", provider, err, out.Stopped, out.Turns, out.Tokens)
		}
	}
}

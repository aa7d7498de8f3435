//go:build conformance

package main

import (
	"context"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/mcpgo"
)

// pause lies between two notifications of one call, so that they do not leave in one packet.
const pause = 50 * time.Millisecond

// noteTools notify while they run, or change what is listed.
func (f *fixture) noteTools() {
	f.tool("test_tool_with_logging", "Logs three messages.",
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := inTurn(ctx, logMessage("Tool execution started"), logMessage("Tool processing data"),
				logMessage("Tool execution completed")); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText("Three messages were logged."), nil
		})
	f.tool("test_logging_tool", "Logs a message, if the request set a level.",
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern &&
				info.LogLevel == "" {
				return mcp.NewToolResultText("Nothing was logged: the request set no level."), nil
			}
			if err := inTurn(ctx, logMessage("One message")); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText("One message was logged."), nil
		})
	f.tool("test_tool_with_progress", "Reports progress three times.",
		func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
				return mcp.NewToolResultText("There was no token to report progress with."), nil
			}
			var notes []notification
			for _, done := range []int{0, 50, 100} {
				notes = append(notes, notification{"notifications/progress", map[string]any{
					"progressToken": req.Params.Meta.ProgressToken, "progress": done, "total": 100,
				}})
			}
			if err := inTurn(ctx, notes...); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText("Progress was reported."), nil
		})
	f.tool("test_trigger_tool_change", "Changes the list of tools.",
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			const name = "test_short_lived_tool"
			f.tool(name, "Exists for a moment.", answer(mcp.NewTextContent("Called in time.")))
			f.mcp.DeleteTools(name)
			return mcp.NewToolResultText("The list of tools changed."), nil
		})
	f.tool("test_trigger_prompt_change", "Changes the list of prompts.",
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			const name = "test_short_lived_prompt"
			f.prompt(mcp.NewPrompt(name, mcp.WithPromptDescription("Exists for a moment.")), says("Asked for in time."))
			f.mcp.DeletePrompts(name)
			return mcp.NewToolResultText("The list of prompts changed."), nil
		})
}

// A notification is one message to the client.
type notification struct {
	method string
	params map[string]any
}

func logMessage(text string) notification {
	return notification{"notifications/message", map[string]any{"level": "info", "logger": "conformance", "data": text}}
}

// inTurn sends notes with a pause between them.
func inTurn(ctx context.Context, notes ...notification) error {
	for i, n := range notes {
		if i > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := mcpgo.Notify(ctx, n.method, n.params); err != nil {
			return err
		}
	}
	return nil
}

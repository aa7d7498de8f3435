//go:build conformance

package main

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// roundTools take several round trips: they return what they need, and are called again with it.
func (f *fixture) roundTools() {
	const prefix = "test_input_required_result_"
	f.tool(prefix+"elicitation", "Needs a name.",
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if name, ok := field(req, "user_name", "name"); ok {
				return mcp.NewToolResultText("Hello, " + name + "!"), nil
			}
			return needsName("").ToolResult(), nil
		})
	f.tool(prefix+"sampling", "Needs an answer of a model.",
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r := mcpserver.SamplingResponse(req.Params.InputResponses, "capital_question"); r != nil {
				return mcp.NewToolResultText(spoken(r)), nil
			}
			return new(mcpserver.InputRequestBuilder).Sample("capital_question",
				sample("What is the capital of France?", 100)).ToolResult(), nil
		})
	f.tool(prefix+"list_roots", "Needs the client's roots.",
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r := mcpserver.RootsResponse(req.Params.InputResponses, "client_roots"); r != nil {
				return mcp.NewToolResultText(rootList(r)), nil
			}
			return new(mcpserver.InputRequestBuilder).Roots("client_roots").ToolResult(), nil
		})
	f.tool(prefix+"request_state", "Needs a confirmation and its state.", f.confirmed("state-ok"))
	f.tool(prefix+"tampered_state", "Refuses a state that is not its own.", f.confirmed("The state is untouched."))
	f.tool(prefix+"multiple_inputs", "Needs three things at once.", f.threeInputs)
	f.tool(prefix+"multi_round", "Needs two things, one after the other.", f.twoRounds)
	f.tool(prefix+"capabilities", "Needs only what the client can give.",
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			need, can := new(mcpserver.InputRequestBuilder), declared(ctx)
			if can.Elicitation != nil {
				need.Elicit("user_name", form("What is your name?", nameForm, "name"))
			}
			if can.Sampling != nil {
				need.Sample("greeting", sample("Generate a greeting", 50))
			}
			if can.Elicitation == nil && can.Sampling == nil {
				return mcp.NewToolResultText("The client can give nothing."), nil
			}
			return need.ToolResult(), nil
		})
}

// field returns a text of the form that the user accepted under id.
func field(req mcp.CallToolRequest, id, name string) (string, bool) {
	r := mcpserver.ElicitationResponse(req.Params.InputResponses, id)
	if r == nil || r.Action != mcp.ElicitationResponseActionAccept {
		return "", false
	}
	content, _ := r.Content.(map[string]any)
	text, ok := content[name].(string)
	return text, ok
}

func needsName(state string) *mcpserver.InputRequestBuilder {
	return mcpserver.NewInputRequestBuilder(state).Elicit("user_name", form("What is your name?", nameForm, "name"))
}

func rootList(r *mcp.ListRootsResult) string {
	text := fmt.Sprintf("%d roots:", len(r.Roots))
	for _, root := range r.Roots {
		text += " " + root.URI
	}
	return text
}

// confirmed makes a handler that wants a yes, and its own state with it.
func (f *fixture) confirmed(text string) mcpserver.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState != "" {
			if _, ok := f.verify(ctx, req.Params.RequestState); !ok {
				return &mcp.CallToolResult{}, nil
			}
			if mcpserver.ElicitationResponse(req.Params.InputResponses, "confirm") != nil {
				return mcp.NewToolResultText(text), nil
			}
		}
		return mcpserver.NewInputRequestBuilder(f.sign("confirm")).Elicit("confirm",
			form("Please confirm", okForm, "ok")).ToolResult(), nil
	}
}

func (f *fixture) threeInputs(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState != "" {
		if _, ok := f.verify(ctx, req.Params.RequestState); !ok {
			return &mcp.CallToolResult{}, nil
		}
		name, named := field(req, "user_name", "name")
		greeting := mcpserver.SamplingResponse(req.Params.InputResponses, "greeting")
		roots := mcpserver.RootsResponse(req.Params.InputResponses, "client_roots")
		if named && greeting != nil && roots != nil {
			return mcp.NewToolResultText(name + ": " + spoken(greeting) + " " + rootList(roots)), nil
		}
	}
	return needsName(f.sign("three")).Sample("greeting",
		sample("Generate a greeting", 50)).Roots("client_roots").ToolResult(), nil
}

func (f *fixture) twoRounds(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	round := ""
	if req.Params.RequestState != "" {
		state, ok := f.verify(ctx, req.Params.RequestState)
		if !ok {
			return &mcp.CallToolResult{}, nil
		}
		round = state
	}
	name, named := field(req, "step1", "name")
	colour, coloured := field(req, "step2", "color")
	switch {
	case round == "round-2" && coloured:
		return mcp.NewToolResultText("Both steps are done, the last with " + colour + "."), nil
	case round == "round-2" || round == "round-1" && named:
		if named {
			name = ", " + name
		}
		return mcpserver.NewInputRequestBuilder(f.sign("round-2")).
			Elicit("step2", form("Step 2"+name+": What is your favorite color?", `{"color": {"type": "string"}}`,
				"color")).ToolResult(), nil
	}
	return mcpserver.NewInputRequestBuilder(f.sign("round-1")).
		Elicit("step1", form("Step 1: What is your name?", nameForm, "name")).ToolResult(), nil
}

//go:build conformance

package main

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A messages handler makes the messages of a prompt from its arguments.
type messages func(arguments map[string]string) []mcp.Content

// prompt registers a prompt whose messages are all the user's.
func (f *fixture) prompt(p mcp.Prompt, make messages) {
	f.mcp.AddPrompt(p, func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		result := &mcp.GetPromptResult{Description: p.Description}
		for _, c := range make(req.Params.Arguments) {
			result.Messages = append(result.Messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: c})
		}
		return result, nil
	})
}

// says makes messages that are always the same text.
func says(text string) messages {
	return func(map[string]string) []mcp.Content { return []mcp.Content{mcp.NewTextContent(text)} }
}

// prompts are one of each form that the suite asks for.
func (f *fixture) prompts() {
	f.prompt(mcp.NewPrompt("test_simple_prompt", mcp.WithPromptDescription("Has no arguments.")),
		says("This is a simple prompt for testing."))
	f.prompt(mcp.NewPrompt("test_prompt_with_arguments", mcp.WithPromptDescription("Has two arguments."),
		mcp.WithArgument("arg1", mcp.ArgumentDescription("The first."), mcp.RequiredArgument()),
		mcp.WithArgument("arg2", mcp.ArgumentDescription("The second."), mcp.RequiredArgument()),
	), func(a map[string]string) []mcp.Content {
		text := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])
		return []mcp.Content{mcp.NewTextContent(text)}
	})
	f.prompt(mcp.NewPrompt("test_prompt_with_embedded_resource", mcp.WithPromptDescription("Embeds a resource."),
		mcp.WithArgument("resourceUri", mcp.ArgumentDescription("Its URI."), mcp.RequiredArgument()),
	), func(a map[string]string) []mcp.Content {
		return []mcp.Content{
			mcp.NewEmbeddedResource(mcp.TextResourceContents{
				URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing.",
			}),
			mcp.NewTextContent("Please process the embedded resource above."),
		}
	})
	f.prompt(mcp.NewPrompt("test_prompt_with_image", mcp.WithPromptDescription("Shows an image.")),
		func(map[string]string) []mcp.Content {
			return []mcp.Content{mcp.NewImageContent(pixel, "image/png"),
				mcp.NewTextContent("Please analyze the image above.")}
		})
	f.mcp.AddPrompt(mcp.NewPrompt("test_input_required_result_prompt",
		mcp.WithPromptDescription("Needs a context from the user.")),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			r := mcpserver.ElicitationResponse(req.Params.InputResponses, "user_context")
			if r == nil {
				return new(mcpserver.InputRequestBuilder).
					Elicit("user_context",
						form("What context should the prompt use?", `{"context": {"type": "string"}}`,
							"context")).PromptResult(), nil
			}
			content, _ := r.Content.(map[string]any)
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{
				{Role: mcp.RoleUser,
					Content: mcp.NewTextContent(fmt.Sprintf("Use this context: %v", content["context"]))},
			}}, nil
		})
}

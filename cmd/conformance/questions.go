//go:build conformance

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/mcpgo"
)

// missingCapability is MissingRequiredClientCapabilityError of protocol 2026-07-28.
const missingCapability = -32021

// declared returns what the client said it can do: with this request in the modern era, at initialize before.
func declared(ctx context.Context) mcp.ClientCapabilities {
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if info.ClientCapabilities == nil {
			return mcp.ClientCapabilities{}
		}
		return *info.ClientCapabilities
	}
	if s, ok := mcpserver.ClientSessionFromContext(ctx).(mcpserver.SessionWithClientInfo); ok {
		return s.GetClientCapabilities()
	}
	return mcp.ClientCapabilities{}
}

// lacks answers a call that needs a capability which the client did not declare: modern clients get the error that
// the specification has for it, others an error that a model can read.
func lacks(ctx context.Context, name string) *mcp.CallToolResult {
	text := "the client did not declare the capability " + name
	if mcpserver.IsModernRequest(ctx) {
		mcpgo.FailWith(ctx, missingCapability, text,
			map[string]any{"requiredCapabilities": map[string]any{name: map[string]any{}}})
	}
	return mcp.NewToolResultError(text)
}

// form makes the parameters of an elicitation. properties is the JSON of the schema's properties.
func form(message, properties string, required ...string) mcp.ElicitationParams {
	schema := map[string]any{"type": "object", "properties": json.RawMessage(properties)}
	if len(required) > 0 {
		schema["required"] = required
	}
	return mcp.ElicitationParams{Message: message, RequestedSchema: schema}
}

// sample makes the parameters of a sampling request.
func sample(text string, maxTokens int) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}},
		MaxTokens: maxTokens,
	}
}

// elicited describes what the user did.
func elicited(before string, r *mcp.ElicitationResult) *mcp.CallToolResult {
	content, err := json.Marshal(r.Content)
	if err != nil {
		return mcp.NewToolResultError(err.Error())
	}
	return mcp.NewToolResultText(fmt.Sprintf("%s: action=%s, content=%s", before, r.Action, content))
}

// elicitor makes a handler that asks one question and tells the answer. The same handler serves both eras: mcp-go asks
// clients of the earlier protocols itself and runs the handler again.
func elicitor(before string, question func(mcp.CallToolRequest) mcp.ElicitationParams) mcpserver.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if declared(ctx).Elicitation == nil {
			return lacks(ctx, "elicitation"), nil
		}
		if r := mcpserver.ElicitationResponse(req.Params.InputResponses, "answer"); r != nil {
			return elicited(before, r), nil
		}
		return new(mcpserver.InputRequestBuilder).Elicit("answer", question(req)).ToolResult(), nil
	}
}

// asked is the question of elicitor for tools without arguments.
func asked(p mcp.ElicitationParams) func(mcp.CallToolRequest) mcp.ElicitationParams {
	return func(mcp.CallToolRequest) mcp.ElicitationParams { return p }
}

const (
	// defaultsForm has a default of each primitive type.
	defaultsForm = `{
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}
	}`
	// enumsForm has each way to write a choice.
	enumsForm = `{
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}
	}`
	nameForm = `{"name": {"type": "string"}}`
	okForm   = `{"ok": {"type": "boolean"}}`
)

// questionTools ask the client.
func (f *fixture) questionTools() {
	text := func(argument string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"` + argument +
			`":{"type":"string","description":"What to ask."}},"required":["` + argument +
			`"],"additionalProperties":false}`)
	}
	f.mcp.AddTool(mcp.NewToolWithRawSchema("test_elicitation",
		"Asks the user for a name and an address.", text("message")),
		elicitor("User response", func(req mcp.CallToolRequest) mcp.ElicitationParams {
			return form(req.GetString("message", ""), `{
				"username": {"type": "string", "description": "User's response"},
				"email": {"type": "string", "description": "User's email address"}
			}`, "username", "email")
		}))
	f.mcp.AddTool(mcp.NewToolWithRawSchema("test_sampling", "Asks the client's model.", text("prompt")), f.sampling)
	f.tool("test_elicitation_sep1034_defaults", "Asks with defaults.", elicitor("Elicitation completed",
		asked(form("Who are you?", defaultsForm))))
	f.tool("test_elicitation_sep1330_enums", "Asks for choices.", elicitor("Elicitation completed",
		asked(form("Choose.", enumsForm))))
	f.tool("test_streaming_elicitation", "Asks in the middle of a call.", elicitor("User response",
		asked(form("What is your name?", nameForm, "name"))))
	f.tool("test_missing_capability", "Needs a client with sampling.",
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if declared(ctx).Sampling == nil {
				return lacks(ctx, "sampling"), nil
			}
			return mcp.NewToolResultText("The client has sampling."), nil
		})
	f.roundTools()
}

func (f *fixture) sampling(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if declared(ctx).Sampling == nil {
		return lacks(ctx, "sampling"), nil
	}
	if r := mcpserver.SamplingResponse(req.Params.InputResponses, "answer"); r != nil {
		return mcp.NewToolResultText("LLM response: " + spoken(r)), nil
	}
	return new(mcpserver.InputRequestBuilder).Sample("answer", sample(req.GetString("prompt", ""), 100)).ToolResult(),
		nil
}

// spoken is the text of a model's answer.
func spoken(r *mcp.CreateMessageResult) string {
	switch c := r.Content.(type) {
	case mcp.TextContent:
		return c.Text
	case map[string]any:
		text, _ := c["text"].(string)
		return text
	}
	return ""
}

// sign makes a request state that verify knows as ours.
func (f *fixture) sign(state string) string {
	mac := hmac.New(sha256.New, f.key)
	mac.Write([]byte(state))
	return state + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verify returns what was signed. If the state is not ours it answers the request with an error and returns false.
func (f *fixture) verify(ctx context.Context, signed string) (string, bool) {
	state, _, _ := strings.Cut(signed, ".")
	if hmac.Equal([]byte(signed), []byte(f.sign(state))) {
		return state, true
	}
	mcpgo.FailWith(ctx, mcp.INVALID_PARAMS, "requestState is not valid for this request", nil)
	return "", false
}

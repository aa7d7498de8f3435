//go:build conformance

package main

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const (
	// pixel is a PNG of one pixel, in base 64.
	pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	// silence is a WAV file of one sample, in base 64.
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
)

// tool registers a tool without arguments.
func (f *fixture) tool(name, description string, handle mcpserver.ToolHandlerFunc) {
	f.mcp.AddTool(mcp.NewToolWithRawSchema(name, description,
		json.RawMessage(`{"type":"object","additionalProperties":false}`)), handle)
}

// answer makes a handler that always returns the same.
func answer(content ...mcp.Content) mcpserver.ToolHandlerFunc {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

// contentTools return each kind of content, and an error.
func (f *fixture) contentTools() {
	f.tool("test_simple_text",
		"Returns text.", answer(mcp.NewTextContent("This is a simple text response for testing.")))
	f.tool("test_image_content", "Returns an image.", answer(mcp.NewImageContent(pixel, "image/png")))
	f.tool("test_audio_content", "Returns a sound.", answer(mcp.NewAudioContent(silence, "audio/wav")))
	f.tool("test_embedded_resource", "Returns a resource.", answer(mcp.NewEmbeddedResource(mcp.TextResourceContents{
		URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
	})))
	f.tool("test_multiple_content_types", "Returns text, an image and a resource.", answer(
		mcp.NewTextContent("Multiple content types test:"),
		mcp.NewImageContent(pixel, "image/png"),
		mcp.NewEmbeddedResource(mcp.TextResourceContents{
			URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
		}),
	))
	f.tool("test_error_handling", "Always fails.",
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
		})
}

// richSchema has what clients lose when they rebuild a schema from a struct of their own.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"$anchor": "addressDef",
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// headerSchema has an argument that clients of 2026-07-28 repeat as the header Mcp-Param-Region.
const headerSchema = `{
	"type": "object",
	"properties": {"region": {"type": "string", "description": "Where to look.", "x-mcp-header": "Region"}},
	"required": ["region"],
	"additionalProperties": false
}`

// schemaTools are of interest for their schemas.
func (f *fixture) schemaTools() {
	f.mcp.AddTool(mcp.NewToolWithRawSchema("json_schema_2020_12_tool",
		"Has a schema with keywords of JSON Schema 2020-12.", json.RawMessage(richSchema)),
		answer(mcp.NewTextContent("The schema is what matters.")))
	f.mcp.AddTool(mcp.NewToolWithRawSchema("test_param_header",
		"Has an argument that is also a header.", json.RawMessage(headerSchema)),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("Region: " + req.GetString("region", "")), nil
		})
}

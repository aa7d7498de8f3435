//go:build conformance

package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// resources are a text, a picture, and a template.
func (f *fixture) resources() {
	f.mcp.AddResource(
		mcp.NewResource("test://static-text", "static-text", mcp.WithResourceDescription("A text."), mcp.WithMIMEType("text/plain")),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{
				URI: req.Params.URI, MIMEType: "text/plain", Text: "This is the content of the static text resource.",
			}}, nil
		})
	f.mcp.AddResource(
		mcp.NewResource("test://static-binary", "static-binary", mcp.WithResourceDescription("A picture."), mcp.WithMIMEType("image/png")),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.BlobResourceContents{URI: req.Params.URI, MIMEType: "image/png",
				Blob: pixel}}, nil
		})
	f.mcp.AddResourceTemplate(
		mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateDescription("Data by id."), mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			text, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: "application/json",
				Text: string(text)}}, nil
		})
}

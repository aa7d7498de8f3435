package answers

import (
	"encoding/base64"
	"errors"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/resources"
	"codehand/tools/tool"
)

// Result is what a call gave back as the client reads it. Machine data goes to _meta only: two large clients
// drop the text of a result that has structuredContent.
func Result(name string, r tool.Result) *mcp.CallToolResult {
	meta := metaFields(r.Meta)
	out := &mcp.CallToolResult{IsError: r.Failed != ""}
	if r.Failed != "" {
		meta["codehand/error"] = errorMeta{Code: r.Failed, Tool: name, Retryable: retryable(r.Failed)}
	}
	out.Meta = &mcp.Meta{AdditionalFields: meta}
	if r.Text != "" || len(r.Media) == 0 {
		out.Content = append(out.Content, mcp.TextContent{Type: mcp.ContentTypeText, Text: r.Text})
	}
	for _, m := range r.Media {
		out.Content = append(out.Content, mcp.ImageContent{
			Type: mcp.ContentTypeImage, MIMEType: m.MIME, Data: base64.StdEncoding.EncodeToString(m.Data),
		})
	}
	return out
}

// An errorMeta is what `codehand/error` holds.
type errorMeta struct {
	Code      tool.Code `json:"code"`
	Tool      string    `json:"tool"`
	Retryable bool      `json:"retryable"`
	Number    int       `json:"number,omitempty"`
}

// retryable says whether the same call may succeed later without any change by the caller or the operator.
func retryable(c tool.Code) bool {
	switch c {
	case tool.Busy, tool.RateLimited, tool.StateUnavailable, tool.Timeout, tool.UpstreamDown:
		return true
	}
	return false
}

// Refusal is a refusal as the client reads it. An error that is no refusal is ours and says nothing.
func Refusal(err error, name string) *mcp.CallToolResult {
	refusal, ok := errors.AsType[*tool.Refusal](err)
	if !ok {
		refusal = &tool.Refusal{Code: tool.Internal, Text: "Internal error. Report it to the operator."}
	}
	meta := metaFields(refusal.Meta)
	e := errorMeta{Code: refusal.Code, Tool: name, Retryable: retryable(refusal.Code), Number: refusal.Number}
	meta["codehand/error"] = e
	return &mcp.CallToolResult{
		Result:  mcp.Result{Meta: &mcp.Meta{AdditionalFields: meta}},
		Content: []mcp.Content{mcp.TextContent{Type: mcp.ContentTypeText, Text: refusal.Error()}},
		IsError: true,
	}
}

type (
	fileMeta struct {
		Path   string `json:"path"`
		Op     string `json:"op"`
		Before string `json:"before,omitempty"`
		After  string `json:"after,omitempty"`
	}
	keptMeta struct {
		URI   string `json:"uri,omitempty"`
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
		Lines int    `json:"lines"`
		Shown int    `json:"shown"`
	}
	jobMeta struct {
		ID    string `json:"id"`
		State string `json:"state"`
		Exit  int    `json:"exit"`
	}
	decisionMeta struct {
		Decision string `json:"decision"`
		Rule     string `json:"rule,omitempty"`
		Asked    bool   `json:"asked"`
	}
)

// appendTo appends what encoding/json would.
func (j jobMeta) appendTo(b []byte) []byte {
	b = tool.AppendText(append(b, `{"id":`...), j.ID)
	b = tool.AppendText(append(b, `,"state":`...), j.State)
	b = strconv.AppendInt(append(b, `,"exit":`...), int64(j.Exit), 10)
	return append(b, '}')
}

// appendTo appends what encoding/json would.
func (d decisionMeta) appendTo(b []byte) []byte {
	b = tool.AppendText(append(b, `{"decision":`...), d.Decision)
	if d.Rule != "" {
		b = tool.AppendText(append(b, `,"rule":`...), d.Rule)
	}
	b = strconv.AppendBool(append(b, `,"asked":`...), d.Asked)
	return append(b, '}')
}

// metaFields are the `_meta` keys of a result. Every value is of a plain type, so encoding cannot fail.
func metaFields(m tool.Meta) map[string]any {
	f := map[string]any{"codehand/ms": m.Millis}
	if m.Version != "" {
		f["codehand/version"] = m.Version
	}
	if len(m.Files) > 0 {
		files := make([]fileMeta, len(m.Files))
		for i, c := range m.Files {
			files[i] = fileMeta{c.Path, c.Op, c.Before, c.After}
		}
		f["codehand/files"] = files
	}
	if m.Diff != "" {
		f["codehand/diff"] = m.Diff
	}
	if m.Job != nil {
		f["codehand/job"] = jobMeta(*m.Job)
	}
	if m.Sandbox != nil {
		f["codehand/sandbox"] = m.Sandbox
	}
	if len(m.Data) > 0 {
		f["codehand/data"] = m.Data
	}
	if m.Kept != nil {
		k := keptMeta{Path: m.Kept.Path, Bytes: m.Kept.Bytes, Lines: m.Kept.Lines, Shown: m.Kept.Shown}
		if m.Kept.ID != "" {
			k.URI = resources.ResultURI(m.Kept.ID)
		}
		f["codehand/result"] = k
	}
	if m.Decision != nil {
		f["codehand/decision"] = decisionMeta{m.Decision.Verdict, m.Decision.Rule, m.Decision.Asked}
	}
	return f
}

// Question is the result of a modern call that asks its client for input while its work goes on. asked encodes as an
// object of inputRequests by id; state is the requestState with which the client comes back.
func Question(asked any, state string, by mcp.Implementation) ([]byte, error) {
	meta := &mcp.Meta{}
	meta.SetServerInfo(by)
	return jsonrpc.Marshal(struct {
		Meta          *mcp.Meta      `json:"_meta"`
		ResultType    mcp.ResultType `json:"resultType"`
		InputRequests any            `json:"inputRequests"`
		RequestState  string         `json:"requestState"`
	}{meta, mcp.ResultTypeInputRequired, asked, state})
}

package answers

import (
	"slices"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/tool"
)

// Decorate adds to the result of a call what the modern era wants, and mcp-go adds to others. In the legacy era it adds
// nothing.
func Decorate(r *mcp.CallToolResult, modern bool, by mcp.Implementation) {
	if !modern {
		return
	}
	if !r.NeedsInput() {
		r.ResultType = mcp.ResultTypeComplete
	}
	r.EnsureResultMeta().SetServerInfo(by)
}

// Encode writes the fields that calls of this server have. mcp-go's own MarshalJSON goes through maps and escapes
// HTML, which every call would pay for; a result that asks the client for input keeps it.
func Encode(r *mcp.CallToolResult) ([]byte, error) {
	if len(r.InputRequests) > 0 || r.RequestState != "" || r.StructuredContent != nil || r.RawStructuredContent != nil {
		return jsonrpc.Marshal(r)
	}
	b := make([]byte, 0, 512)
	b = append(b, '{')
	var err error
	if r.Meta != nil {
		if b, err = appendMeta(append(b, `"_meta":`...), r.Meta); err != nil {
			return nil, err
		}
		b = append(b, ',')
	}
	if r.ResultType != "" {
		b = tool.AppendText(append(b, `"resultType":`...), string(r.ResultType))
		b = append(b, ',')
	}
	b = append(b, `"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendContent(b, c); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}'), nil
}

// appendContent appends one content of a result.
func appendContent(b []byte, c mcp.Content) ([]byte, error) {
	if t, ok := c.(mcp.TextContent); ok && t.Type == mcp.ContentTypeText && t.Annotations == nil && t.Meta == nil {
		b = slices.Grow(b, len(t.Text)+len(t.Text)/16+64)
		b = tool.AppendText(append(b, `{"type":"text","text":`...), t.Text)
		return append(b, '}'), nil
	}
	return appendValue(b, c)
}

// appendMeta appends the fields in the order of their names. Those of every call are written here.
func appendMeta(b []byte, m *mcp.Meta) ([]byte, error) {
	if m.ProgressToken != nil {
		return appendValue(b, m)
	}
	var few [8]string
	names := few[:0]
	for name := range m.AdditionalFields {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(tool.AppendText(b, name), ':')
		var err error
		switch v := m.AdditionalFields[name].(type) {
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case string:
			b = tool.AppendText(b, v)
		case jobMeta:
			b = v.appendTo(b)
		case decisionMeta:
			b = v.appendTo(b)
		default:
			if b, err = appendValue(b, v); err != nil {
				return nil, err
			}
		}
	}
	return append(b, '}'), nil
}

// appendValue appends anything that JSON can hold.
func appendValue(b []byte, v any) ([]byte, error) {
	body, err := jsonrpc.Marshal(v)
	return append(b, body...), err
}

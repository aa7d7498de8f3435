package mcpgo

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/results"
)

// CheckHeaders holds the headers of a modern request against its body (SEP-2243, SEP-2567); nil: they agree. The checks
// and their words are those of mcp-go v1.2.1, server/streamable_http_modern.go:97, which is not entered: it serves HTTP
// only with its own sessions and streams.
func (g *Gateway) CheckHeaders(env jsonrpc.Envelope, message []byte, h http.Header) *jsonrpc.Error {
	mismatch := func(text string) *jsonrpc.Error { return &jsonrpc.Error{Code: mcp.HEADER_MISMATCH, Message: text} }
	if e := g.Replies.Unserved(env); e != nil {
		return e
	}
	call := env.Method == string(mcp.MethodToolsCall)
	_, known := g.Tools.Get(env.Name)
	known = known || g.Server.GetTool(env.Name) != nil
	switch header := h.Get(mcp.HeaderProtocolVersion); {
	case h.Get(mcp.HeaderLastEventID) != "":
		return mismatch("Last-Event-ID is not supported in protocol version " + mcp.ProtocolVersion20260728 +
			": streams are not resumable, re-issue the request with a new ID")
	case header == "":
		return mismatch(mcp.HeaderProtocolVersion + " header is required for requests carrying " +
			mcp.MetaKeyProtocolVersion)
	case env.Version == "" && call && !known:
		return nil // the answer says which tools are near
	case env.Version == "":
		return &jsonrpc.Error{Code: mcp.INVALID_PARAMS,
			Message: "missing or invalid _meta field " + mcp.MetaKeyProtocolVersion}
	case header != env.Version:
		return mismatch(results.Line(mcp.HeaderProtocolVersion+" header "+header+" does not match request "+
			mcp.MetaKeyProtocolVersion+" "+env.Version, 300))
	}
	if !slices.Contains(mcp.ValidProtocolVersions, env.Version) {
		return g.Replies.Unsupported(env.Version)
	}
	// the order of mcp-go: what the request lacks comes before its headers
	if call {
		switch _, ok := Capabilities(env.Capabilities); {
		case !ok && known:
			return missingCapabilities()
		case !ok:
			return nil // as above
		}
	}
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil // the answer says what is wrong with it
	}
	err := mcp.ValidateStandardHeaders(h.Get, env.Version, mcp.MCPMethod(env.Method), m.Params)
	if err == nil && call {
		if t := g.Server.GetTool(env.Name); t != nil { // of Extend: no tool of ours has a parameter in a header
			err = mcp.ValidateParamHeadersLookup(lookup(h), &t.Tool, m.Params)
		}
	}
	if err == nil {
		return nil
	}
	return mismatch(results.Line(err.Error(), 300))
}

// lookup returns the first value of a header, and whether it was sent at all.
func lookup(h http.Header) func(string) (string, bool) {
	return func(name string) (string, bool) {
		values := h.Values(name)
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	}
}

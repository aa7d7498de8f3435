package replies

import (
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/resources"
	"codehand/tools/results"
)

// Protocol is what a server says of itself.
type Protocol struct {
	Versions       []string // of MCP, newest first
	Implementation mcp.Implementation
	Extended       bool // Options.Extend added to mcp-go what is no part of the product
}

// Unserved answers what mcp-go would let pass or would answer without help: versions that the operator does not serve,
// and cursors.
func (p Protocol) Unserved(env jsonrpc.Envelope) *jsonrpc.Error {
	switch modern := env.Modern(); {
	case modern && slices.Contains(mcp.ValidProtocolVersions, env.Version) && !slices.Contains(p.Versions, env.Version):
		return &jsonrpc.Error{
			Code:    unsupportedVersion,
			Message: "unsupported protocol version " + env.Version,
			Data:    map[string]any{"supported": p.Versions, "requested": env.Version},
		}
	case !modern && env.Method == string(mcp.MethodInitialize) && len(p.LegacyVersions()) == 0:
		return &jsonrpc.Error{
			Code:    mcp.METHOD_NOT_FOUND,
			Message: "initialize is not served: this server speaks " + strings.Join(p.Versions, ", "),
		}
	}
	if env.HasCursor && onePage(env.Method) {
		return &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: resources.ErrCursor.Error()}
	}
	return nil
}

// unsupportedVersion is UnsupportedProtocolVersionError of protocol 2026-07-28.
const unsupportedVersion = -32022

// onePage says whether a list of mcp-go's is answered whole, so that it never gives a cursor out. mcp-go v1.2.1 takes
// any that is base64, and answers with the first page again.
func onePage(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList:
		return true
	}
	return false
}

// LegacyVersions returns the served versions that have the initialize handshake, newest first.
func (p Protocol) LegacyVersions() []string {
	var vs []string
	for _, v := range p.Versions {
		if v < mcp.ProtocolVersion20260728 {
			vs = append(vs, v)
		}
	}
	return vs
}

// Unsupported is the error for a modern version that does not exist.
func (p Protocol) Unsupported(version string) *jsonrpc.Error {
	e := mcp.UnsupportedProtocolVersionError{Version: version, Supported: p.Versions}.JSONRPCError().Error
	return &jsonrpc.Error{Code: e.Code, Message: results.Line(e.Message, 300), Data: e.Data}
}

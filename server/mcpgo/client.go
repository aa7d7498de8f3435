package mcpgo

import (
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/cards"
	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/server/toolset"
	"codehand/tools/session"
)

// ClientOf is who sent the request: by the request itself in the modern era, by what it initialized with otherwise. It
// finds the client's profile, once for the turn. The error is for a modern request that does not say what it must.
func (g *Gateway) ClientOf(t *request.Turn) (session.Client, *jsonrpc.Error) {
	c, r := session.Client{}, t.Req.Client
	if t.Req.Modern() {
		if !slices.Contains(mcp.ValidProtocolVersions, t.Req.Version) {
			return c, g.Replies.Unsupported(t.Req.Version)
		}
		caps, ok := Capabilities(t.Req.Capabilities)
		if !ok {
			return c, missingCapabilities()
		}
		var info struct{ Name, Version string }
		_ = json.Unmarshal(t.Req.ClientInfo, &info) // it need not say who it is
		c.Modern, c.Revision, c.Name, c.Version, c.CanAsk = true, t.Req.Version, info.Name, info.Version,
			canElicit(caps.Elicitation)
		c.Cards = cards.Shows(caps.Extensions)
		c.Rereads = g.Notices.Hub.Rereads(t.Req.Session)
	} else {
		c.Name, c.Version, c.Revision, c.CanAsk, c.Cards = r.Name, r.Version, r.Protocol, r.CanAsk, r.Cards
	}
	t.Profile = g.Profiles.Of(c.Name)
	return g.Profiles.Add(c, t.Profile, toolset.ModelOf(t.Req.Turn), t.Req.Caller.From.Transport), nil
}

// missingCapabilities is the error for a modern request that does not say what its client can do.
func missingCapabilities() *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.INVALID_PARAMS,
		Message: "missing or invalid _meta field " + mcp.MetaKeyClientCapabilities}
}

// Capabilities reads what a modern client can do. ok is false if that is absent or cannot be read.
func Capabilities(raw json.RawMessage) (caps mcp.ClientCapabilities, ok bool) {
	switch string(raw) {
	case "", "null":
		return caps, false
	case "{}":
		return caps, true
	}
	return caps, json.Unmarshal(raw, &caps) == nil
}

// canElicit says whether a client takes forms. An empty object means that it does; addresses to open are never sent.
func canElicit(c *mcp.ElicitationCapability) bool { return c != nil && (c.Form != nil || c.URL == nil) }

// Package endpoint is MCP over HTTP: Streamable HTTP at /mcp, legacy SSE at /sse and /message, and the pages for
// balancers and scrapers.
//
// The guard makes every check that needs no body, in the order in which it costs least and says least: drain, Host,
// Origin, route, method, caller, rate. An exchange is one POST: it makes a Request, is its Peer, and writes the Answer.
// The package knows no tool and decides nothing about a call.
package endpoint

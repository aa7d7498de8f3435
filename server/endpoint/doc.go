// Package endpoint is MCP over HTTP: Streamable HTTP at /mcp, legacy SSE at /sse and /message, and the pages for
// balancers and scrapers.
//
// The guard (guard.go) makes every check that needs no body. The cheapest checks, and those that reveal least to a
// stranger, come first: drain, Host, Origin, route, method, caller, rate. The health pages come before them. An
// exchange is one POST: it makes a Request and writes the Answer. The package knows no tool and decides nothing about a
// call.
package endpoint

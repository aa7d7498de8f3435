package main

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// mcp-go is entered in one place: its server package is the business of the room server/mcpgo, whose one file calls
// HandleMessage; server hands its type to Extend. Types of the protocol are everybody's.
func TestOneGateway(t *testing.T) {
	for _, r := range readHouse(t) {
		for _, f := range r.files {
			if f.test {
				continue
			}
			for _, text := range gatewayFailures(r.name, f) {
				t.Error(text)
			}
		}
	}
}

// gatewayFailures says where a file enters mcp-go and may not.
func gatewayFailures(room string, f *file) []string {
	const library = "github.com/mark3labs/mcp-go/server"
	at := path.Join(room, f.name)
	var failures []string
	for _, spec := range f.tree.Imports {
		if strings.HasPrefix(imported(spec), "github.com/mark3labs/mcp-go/client") && room != "tools/mounts/upstream" {
			failures = append(failures, at+" imports "+imported(spec)+": only tools/mounts/upstream may")
		}
		if imported(spec) == library && !slices.Contains([]string{"server", "server/mcpgo", "cmd/conformance"}, room) {
			failures = append(failures, at+" imports "+library+": only server/mcpgo may; use the types of mcp-go/mcp, or let server/mcpgo do it")
		}
	}
	if at == "server/mcpgo/gateway.go" {
		return failures
	}
	for n := range ast.Preorder(f.tree) {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "HandleMessage" {
			failures = append(failures, at+" calls HandleMessage: mcp-go is entered in server/mcpgo/gateway.go alone")
		}
	}
	return failures
}

func TestPlantedGateway(t *testing.T) {
	t.Parallel()
	house := planted(t, `
-- server/mcpgo/gateway.go --
package mcpgo

import _ "github.com/mark3labs/mcp-go/server"

func f(m M) { m.HandleMessage() }
-- server/other.go --
package server

func g(m M) { m.HandleMessage() }
-- server/tenants/offer.go --
package tenants

import _ "github.com/mark3labs/mcp-go/mcp"
import _ "github.com/mark3labs/mcp-go/server"
-- tools/mounts/call.go --
package mounts

import _ "github.com/mark3labs/mcp-go/client/transport"
-- tools/mounts/upstream/upstream.go --
package upstream

import _ "github.com/mark3labs/mcp-go/client"
`)
	var got []string
	for _, r := range house {
		for _, f := range r.files {
			for _, text := range gatewayFailures(r.name, f) {
				at, _, _ := strings.Cut(text, " ")
				got = append(got, at)
			}
		}
	}
	if want := []string{"server/other.go", "server/tenants/offer.go", "tools/mounts/call.go"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

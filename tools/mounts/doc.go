// Package mounts makes tools of the tools of other MCP servers, which the operator names in the settings.
//
// A server is started or reached when its tools are first needed, in the background, and again after it was lost, later
// each time. Until it has answered, and while it is down, nothing else waits for it. Its tools are foreign tools: they
// go through the pipeline like any other, and are taken to change things unless the operator trusts the server's hints.
// What a server says of its tools is made fit for clients, while arguments are checked against the schema as it was;
// what a tool returns is shown between marks.
//
// The package speaks no MCP itself (tools/mounts/upstream does), reads no settings and decides about no call.
package mounts

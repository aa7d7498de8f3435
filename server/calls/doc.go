// Package calls takes a request from its arrival to its answer.
//
// Serve accepts it: at once it gets its session, its places in the queues of its principal, and its ticket at the gate.
// Its Work then leads a call of one of our tools into server/pipeline, in one round for each question that it asks;
// mcp-go never sees it. Every other request enters mcp-go in one place, the Gateway.
//
// It knows no transport and no setting, and never what a tool does.
package calls

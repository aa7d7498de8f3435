// Package jsonrpc reads and writes JSON-RPC messages as bytes.
//
// Scan parses a message once, strictly, and returns an Envelope, or a Fault that says why the message is refused. A
// LineReader splits a stream into messages, and a LineWriter writes whole ones; ResultLine, ErrorLine and NoticeLine
// make them. InFlight is the table of a client's requests that wait for their answers, Outgoing that of the server's
// requests to a client. WithCall and WithID change a message without encoding it again.
//
// It never decodes the arguments or the result of a call, never opens a connection, and knows neither tools nor
// sessions.
package jsonrpc

// Package jsonrpc owns one JSON-RPC message as bytes.
//
// Scan reads a message once, strictly, and says what it is: an Envelope, or the
// Fault that answers it. A LineReader cuts a stream into messages and a
// LineWriter writes whole ones; ResultLine, ErrorLine and NoticeLine make them.
// InFlight is the table of requests that wait for their answers. WithCall and
// WithID change a message without encoding it anew.
//
// It never decodes the arguments of a call or the result of one, never opens a
// connection, and knows neither tools nor sessions.
package jsonrpc

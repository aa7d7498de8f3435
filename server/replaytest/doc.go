// Package replaytest is what the tests of the server in process and those of the built program share: the program
// itself, built once for a run of `go test`; clients that speak as others do over standard input and output and over
// HTTP; session files, laid out, played and compared.
//
// Tests import it, and nothing else does. It knows the wire and nothing of the server behind it.
package replaytest

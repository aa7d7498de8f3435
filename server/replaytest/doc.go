// Package replaytest has what the tests of the server in process and those of the built program share: the program
// itself, built once for a run of `go test`; clients over standard input and output and over HTTP; and session files:
// setting up their files, replaying their calls, comparing the answers.
//
// Tests import it, and nothing else does. It knows the wire and nothing of the server behind it.
package replaytest

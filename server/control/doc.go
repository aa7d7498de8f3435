// Package control is how a command of the operator reaches what a running server holds: the grants of OAuth, which are
// in a Store that one process has at a time. The server listens on a Unix socket in its data directory, for its own
// user and root. Where no server runs, the command opens the Store itself.
//
// It owns the socket and what is said over it. It decides nothing about grants: server/oauth does.
package control

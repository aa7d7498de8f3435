// Package listen owns the addresses of serve: TCP, unix sockets, sockets that
// systemd opened, TLS with certificates that are read again, and how many
// connections all of them may have.
//
// Check says before anything is bound what must not be served as configured, and
// AuthMode how callers are told apart; Open binds all addresses or none.
//
// It never reads a byte of a request and never asks who is calling.
package listen

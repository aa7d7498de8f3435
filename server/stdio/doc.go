// Package stdio owns a client on a pair of pipes: reading its lines, noticing
// that its end, a signal or the end of the parent process ends the connection,
// and how long what runs may then go on.
//
// It never answers a message; that is for the Handle of a Pipe.
package stdio

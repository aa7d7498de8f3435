// Package state is the Store: the key-value memory behind all sessions.
//
// A Store keeps small values by key, with compare-and-swap, and short streams. The package knows the shape of keys and
// how long each family of them lives, never what a value means. Apart from tests, packages outside server do not import
// it; they declare the two or three methods that they use, and get a Store narrowed to their own keys.
//
// Two back-ends are one table in memory. The embedded one also writes every change to a log, before it makes the change
// and before it answers; when the log is much larger than the live data, it is rewritten as a snapshot. Reads never
// touch the disk. They have no circuit breaker: a store in this process fails at once, and each write has a time limit
// for a disk that hangs.
//
// The third keeps its values in servers of NATS: one stream for each family, whose sequences are the revisions. Every
// operation asks the server that leads the stream. One process at a time may write; a record with a short life says
// which.
package state

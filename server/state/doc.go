// Package state is the cellar: the key-value memory behind all sessions.
//
// A Store keeps small values by key, with compare-and-swap, and short streams. The
// package knows the shape of keys and how long each family of them lives, never what
// a value means. Rooms below server do not import it; they declare the two or three
// methods that they use, and get a Store narrowed to their own keys.
//
// Both back-ends are one table in memory. The embedded one also writes every change to
// a log, before it makes the change and before it answers; the log is rewritten as a
// snapshot when it has outgrown what is alive. Reads never touch the disk. There is no
// breaker in front of it: an engine in this process fails at once, and a disk that hangs
// is met by the time limit of each write.
package state

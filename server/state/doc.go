// Package state is the cellar: the key-value memory behind all sessions.
//
// A Store keeps small values by key, with compare-and-swap, and short streams. The
// package knows the shape of keys and how long each family of them lives, never what
// a value means. Rooms below server do not import it; they declare the two or three
// methods that they use, and get a Store narrowed to their own keys.
package state

// Package exchange does what a change asks of the system in one directory: it gives two names each other's file in one
// step, or a file a name that nobody has, and lets a new file have the owner, the mode and the attributes of an old
// one. It reads no content and decides nothing.
//
// Where a file system cannot do a step, the answer is errors.ErrUnsupported, and the caller has another way.
package exchange

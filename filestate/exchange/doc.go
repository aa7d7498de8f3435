// Package exchange does what a change asks of the system in one directory: it swaps the files of two names atomically,
// gives a file a name that is free, and copies owner, mode and attributes of an old file to a new one. It reads no
// content and decides nothing.
//
// If a file system cannot do a step, the error is errors.ErrUnsupported, and the caller has another way.
package exchange

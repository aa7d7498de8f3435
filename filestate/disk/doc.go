// Package disk reads files as they are: it opens a regular one below a directory handle without following a link or
// waiting for anybody, tells by stamps and digests whether it is still what it was, and writes the entries of
// directories to the disk. It changes no file and remembers none.
//
// The name is looked at before the opening and the handle after it, since a name can stand for something else from one
// moment to the next. A stamp is only ever compared for equality, and proves nothing while it is racy.
package disk

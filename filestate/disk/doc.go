// Package disk reads files: it opens a regular file below a directory handle without following a link or blocking,
// tells by stamps and digests whether a file is unchanged, and syncs directories. It changes no file and remembers
// none.
//
// It checks the name before it opens it and the handle afterwards, since the name can lead to another file at any
// moment. A stamp is only ever compared for equality, and proves nothing while it is racy.
package disk

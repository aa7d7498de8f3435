// Package filestate is the ledger: what a session has seen of each file, and the only hand that changes files.
//
// Content decides, never the clock: a change is made only to bytes that the session has seen. Paths
// arrive resolved and permitted, as a directory handle and a name below it; Path is only the key. The
// package knows no tools, no sessions and no MCP: it gets a function that makes new bytes from old ones.
//
// Four ideas carry the rest. What was seen of a file is a record of filestate/seen, which every view and
// every change renews (reading.go, accept.go, remember.go). Update decides by that record and the bytes
// on the disk, under a lock of filestate/lock (update.go, guard.go). A change is a temporary file beside
// the target that exchanges its name with it, so that a reader, a crash or a full disk meets either the
// old bytes or the new ones, and what was displaced is looked at before it is removed (stage.go,
// publish.go, displace.go). Before and after are in a filestate/journal before anything can be seen, so
// that Undo can take a change back, and Recover can settle one whose process was killed (write.go,
// undo.go, recover.go).
package filestate

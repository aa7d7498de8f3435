// Package filestate is the ledger: it remembers what a session has seen of each file, and makes every change of a file.
//
// Content decides, never the clock: a file is changed only if the session has read it and its content is still the
// same. Paths arrive resolved and permitted, as a directory handle and a name below it; Path is only the key. The
// package knows no tools, no sessions and no MCP: it gets a function that makes new bytes from old ones.
//
// Four ideas carry the rest:
//
//   - A record of filestate/seen says what a session has seen of a file. Every view and every change renews it
//     (reading.go, changed.go, remember.go).
//   - Update compares that record with the bytes on the disk, under a lock of filestate/lock (update.go, guard.go).
//   - A change writes a temporary file beside the target and swaps the two names. A reader, a crash or a full disk
//     meets either the old bytes or the new ones. The displaced file is checked before it is removed.
//   - The contents before and after are in a filestate/journal before the change is visible. So Undo can take a change
//     back, and Recover can settle a change whose process was killed.
//
// An Edit is a work on its way through Update: it opens the file (work.go, look.go), reads and guards it (guard.go),
// makes the new bytes and their temporary file (write.go, stage.go), gives that the name (publish.go, or inplace.go
// where the file cannot be replaced), and looks at what it displaced (displace.go). If one of several fails,
// takeback.go undoes those before it. Undo is undo.go, with history.go for what the journal knows and unfinished.go for
// changes that did not end; what a killed process left is settled by recover.go, torn.go and sweep.go.
package filestate

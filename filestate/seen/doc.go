// Package seen knows what a session has seen of each file, and decides from that whether it may change a file. It reads
// files that its callers opened, and changes, opens and names no file itself.
//
// A Record per path holds the hash of the content that was seen and which bytes of it were shown (record.go,
// coverage.go). A large file is not hashed just to show a page of it; its Record holds the hashes of the shown bytes
// (parts.go). Records are kept in a Memory, which may outlive the process (records.go). Claim and Record decide about a
// change (guard.go); after it, the seen ranges are moved to where their text is now (change.go, move.go).
//
// Content decides, never the clock: a stamp only saves the hashing where it proves that nothing changed.
package seen

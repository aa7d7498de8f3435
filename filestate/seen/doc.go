// Package seen knows what a session has seen of each file, and decides from that whether it may change one. It reads
// what others have opened, and changes, opens and names no file itself.
//
// A Record per path holds the hash of the content that was seen and which bytes of it were shown (record.go,
// coverage.go); of a file that is not hashed for the sake of a page it holds the hashes of those bytes instead
// (parts.go). Records lie in a Memory, which may outlive the program (records.go). Claim and Record decide about a
// change (guard.go); after it, what was seen moves along with the text (change.go, move.go).
//
// Content decides, never the clock: a stamp only saves the hashing where it proves that nothing changed.
package seen

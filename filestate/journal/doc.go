// Package journal keeps what every changed file held before and after, so that a change can be shown, taken back, and
// settled when the process that made it has died. It changes no file but its own, and knows paths and sessions as text
// only.
//
// A change is one file (note.go), which is on the disk before anything of the change can be seen. Its name sorts by
// time and says how the change ended, so that what was left half made is found without reading the rest (settle.go).
// What notes are about is remembered, so that those of one file are found without reading all others again (index.go).
// Beside changes it keeps what would be gone otherwise: what somebody saved in the very moment of a change, even into a
// file that has no name any more (late.go). What is too old or too much goes, the oldest first (retain.go).
package journal

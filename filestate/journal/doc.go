// Package journal keeps the contents of every changed file before and after, so that a change can be shown, taken back,
// and settled when the process that made it has died. It changes only its own files, and knows paths and sessions as
// text only.
//
// Each change is one file, a note (note.go), which is on the disk before the change is visible. Its name sorts by time
// and says how the change ended, so unfinished changes are found without reading the others (settle.go). An index
// remembers which files each note is about (index.go). Besides changes the journal keeps contents that would be lost
// otherwise: what another program saved during a change, even into a file that has no name any more (late.go). Notes
// that are too old or too many are removed, the oldest first (retain.go).
package journal

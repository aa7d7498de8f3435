// Package audit owns the record of what was done: lines in files of one
// directory, each bound by a hash to the one before.
//
// Open continues the chain of a replica and Log writes it; a new file begins at
// midnight and when one is full. Check reads a directory and says at the first
// damaged place what is wrong, a Break.
//
// It never decides whether a call may go on without its line, and never writes
// the content of files, or text that could deceive a reader's terminal.
package audit

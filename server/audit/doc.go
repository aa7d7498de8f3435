// Package audit owns the record of what was done: lines in files of one directory. Each line holds a hash of the line
// before it.
//
// Open continues the chain of a replica, and Log writes it. A new file begins at midnight and when one is full. Check
// reads a directory and reports the first damaged place as a Break; Sessions lists whose calls are in it.
//
// It never decides whether a call may go on without its line. It never writes the content of files, or text that could
// deceive a reader's terminal.
package audit

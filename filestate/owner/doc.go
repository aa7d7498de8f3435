// Package owner says which process made a temporary file or a note of the journal, and whether that process can still
// be running. It reads what the system says about hosts and processes, and touches no file.
//
// A process id is unique only on one host, in one container and between two boots. So a Host names all three, and a
// Process also when it started. In doubt the process counts as running: a file that it may need is never taken for a
// leftover.
package owner

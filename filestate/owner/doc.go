// Package owner says who made a temporary file or a note of the journal, and whether that process can still be at work.
// It reads what the system tells of hosts and processes, and touches no file of anybody.
//
// A process id means something on one host, in one container and between two starts of the machine only, so a Host says
// all three, and a Process when it started, too. In doubt it lives: what a living process needs is never taken for a
// left-over.
package owner

// Package opening opens sessions: it makes the State of one from the engines of the process and what its tenant may
// use, and tells hooks when a session begins and ends.
package opening

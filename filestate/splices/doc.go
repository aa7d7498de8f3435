// Package splices knows what changes of some places make of a content that is too large for memory: it reads the new
// content from the old one, joins changes that come one after the other, and turns them around. It is pure: what it
// reads, its caller has opened.
package splices

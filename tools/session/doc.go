// Package session is the memory of one conversation: the handles and cells that a
// call may use, and nothing that does work.
//
// A State is passed to tools, never looked up. Truth lives in cells (in the Store)
// and on disk; what a State holds itself are handles whose loss costs time only.
package session

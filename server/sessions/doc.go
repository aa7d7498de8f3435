// Package sessions keeps the State of each conversation: whose it is, its handles while it is in use, what it remembers
// over a restart, and how long what it left on disk is kept.
//
// The truth of a session is in the Store and on disk. Handles are opened by the first call and dropped when the session
// is idle, so a client never notices either.
package sessions

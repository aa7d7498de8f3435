// Package sessions finds the session key of a request and the State of that session. It opens the handles of a State
// with the first call, drops them when the session is idle, restores a session after a restart, and deletes what a
// session left on disk when it is too old.
//
// What must last is in the Store and on disk, so a client never notices that handles were dropped.
package sessions

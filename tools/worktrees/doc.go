// Package worktrees makes and removes git work trees in which a session works apart from the main one. git runs in the
// sandbox of commands, with settings by which it starts no hook. What was made is noted in the session, so that no file
// that a command could have written says what may be removed.
package worktrees

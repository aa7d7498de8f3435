package server

import (
	"context"
	"strings"

	"codehand/server/state"
	"codehand/tools/session"
)

// resumed says whether a client can come back to a session over stdio after its process has ended: it gives it the same
// name again, in the request or in the environment. Nobody can come back to one that is named after its process.
func resumed(key session.Key) bool {
	for _, kind := range []string{kindHandle, kindThread, kindConversation} {
		if strings.HasPrefix(key.Session, kind) {
			return true
		}
	}
	return false
}

// resume puts into memory what an earlier process remembered of a session, and keeps what this one remembers in dir, until
// the caller runs stop. A Store that keeps everything itself needs none of it. What cannot be read or written is logged:
// the session then begins anew the next time.
func (s *Server) resume(key session.Key, dir string, memory state.Store) (stop func()) {
	if s.engines.durable || !resumed(key) {
		return func() {}
	}
	failed := func(err error) { s.log.Warn("what a session remembers is not kept for its next process", "error", err) }
	snapshot, err := state.OpenSnapshot(context.Background(), memory, state.SnapshotOptions{
		Dir: dir, Name: state.Hash(key.Principal) + "." + state.Hash(key.Session), Failed: failed,
	})
	if err != nil {
		failed(err)
		return func() {}
	}
	return func() {
		if err := snapshot.Close(); err != nil {
			failed(err)
		}
	}
}

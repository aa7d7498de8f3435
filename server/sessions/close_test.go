package sessions

import (
	"testing"
	"testing/synctest"

	"codehand/server/tenants"
	"codehand/tools/session"
)

// TestCloseWaitsForEnd: while a client's DELETE ended a session, the server was closed and the process gone before the jobs of
// that session were ended: they ran on.
func TestCloseWaitsForEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		s := NewTable(func(key session.Key, _ *tenants.Tenant) (*session.State, func(), error) {
			return &session.State{Key: key}, func() { <-goOn }, nil
		})
		told := false
		s.Ended = func(*session.State, string) { told = true }
		key := session.Key{Principal: "p", Session: "deleted"}
		_, release, err := s.Acquire(key, nil)
		must(t, err)
		release()
		go s.End(key)
		synctest.Wait() // it is as far as it gets
		closed := make(chan struct{})
		go func() { s.CloseAll(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("all sessions are said to be closed, and one is not")
		default:
		}
		close(goOn)
		<-closed
		if !told {
			t.Error("nobody was told of the end before all was closed")
		}
	})
}

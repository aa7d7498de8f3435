package sessions

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// TestStdioKey walks the ladder: each rung hides those below it, and no rung yields an empty key.
func TestStdioKey(t *testing.T) {
	for _, c := range []struct {
		name                 string
		handle, conversation string // of the environment
		env                  jsonrpc.Envelope
		want                 string
	}{
		{"explicit handle", "envhandle", "conv", jsonrpc.Envelope{Meta: jsonrpc.Meta{HasSession: true, Session: "my-handle", HasThreadID: true, ThreadID: "t1"}}, "h:my-handle"},
		{"handle of the environment", "envhandle", "conv", jsonrpc.Envelope{Meta: jsonrpc.Meta{HasThreadID: true, ThreadID: "t1"}}, "h:envhandle"},
		{"thread", "", "conv", jsonrpc.Envelope{Meta: jsonrpc.Meta{HasThreadID: true, ThreadID: "t1"}}, "t:t1"},
		{"malformed thread is skipped", "", "conv", jsonrpc.Envelope{Meta: jsonrpc.Meta{HasThreadID: true, ThreadID: "a b"}}, "e:conv"},
		{"empty thread is skipped", "", "conv", jsonrpc.Envelope{Meta: jsonrpc.Meta{HasThreadID: true}}, "e:conv"},
		{"conversation of the client", "", "conv", jsonrpc.Envelope{}, "e:conv"},
		{"process", "", "", jsonrpc.Envelope{}, "p:process"},
	} {
		got, err := Pipe{Handle: c.handle, Conversation: c.conversation, Process: "process"}.Key(c.env)
		if err != nil || got != (session.Key{Principal: "local", Session: c.want}) {
			t.Errorf("%s: %v, %v, want %s", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 65), "with blank", "ä-umlaut-x"} {
		if _, err := (Pipe{}).Key(jsonrpc.Envelope{Meta: jsonrpc.Meta{HasSession: true, Session: bad}}); !errors.Is(err, ErrHandle) {
			t.Errorf("handle %q is taken", bad)
		}
	}
}

// TestSessionsAreDropped: an idle session loses its handles, one in use never, and an empty key is an error.
func TestSessionsAreDropped(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	built := 0
	var closed atomic.Int64
	s := NewTable(func(session.Key, *tenants.Tenant) (*session.State, func(), error) {
		built++
		return &session.State{}, func() { closed.Add(1) }, nil
	})
	s.Now = func() time.Time { return now }
	take := func(name string) func() {
		t.Helper()
		_, release, err := s.Acquire(session.Key{Principal: "local", Session: name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	idle, used := take("idle"), take("used")
	idle()
	idle() // twice is once
	now = now.Add(idleTime + 2*sweepEvery)
	take("third")()
	if built != 3 || closed.Load() != 1 {
		t.Errorf("%d built, %d closed: want the idle one dropped and the used one kept", built, closed.Load())
	}
	used()
	s.CloseAll()
	if closed.Load() != 3 {
		t.Errorf("%d closed at the end", closed.Load())
	}
	for _, key := range []session.Key{{}, {Principal: "local"}, {Session: "p:x"}} {
		if _, _, err := s.Acquire(key, nil); err == nil {
			t.Errorf("key %v is taken", key)
		}
	}
	failing := NewTable(func(session.Key, *tenants.Tenant) (*session.State, func(), error) { return nil, nil, errors.New("no") })
	if _, _, err := failing.Acquire(session.Key{Principal: "local", Session: "p:x"}, nil); err == nil {
		t.Error("a session that cannot be built is given out")
	}
}

// A session whose hooks were looked up in a slow Store held up every call of all others.
func TestSessionBeginsAlone(t *testing.T) {
	t.Parallel()
	s := NewTable(func(key session.Key, _ *tenants.Tenant) (*session.State, func(), error) {
		return &session.State{Key: key}, func() {}, nil
	})
	begins, goOn := make(chan struct{}), make(chan struct{})
	s.Began = func(st *session.State) {
		if st.Key.Session == "slow" {
			close(begins)
			<-goOn
		}
	}
	slow := make(chan error, 1)
	go func() {
		_, release, err := s.Acquire(session.Key{Principal: "p", Session: "slow"}, nil)
		if err == nil {
			release()
		}
		slow <- err
	}()
	<-begins
	other := make(chan error, 1)
	go func() {
		_, _, err := s.Acquire(session.Key{Principal: "p", Session: "other"}, nil)
		other <- err
	}()
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(replaytest.HangAfter):
		t.Error("another session waits")
	}
	close(goOn)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// TestNothingAfterClose: a call that came while the server was being closed, as at a second signal, got a fresh session, whose
// jobs were never ended, and ran without a line in the record.
func TestNothingAfterClose(t *testing.T) {
	t.Parallel()
	built := 0
	var during error
	var s *Table
	s = NewTable(func(key session.Key, _ *tenants.Tenant) (*session.State, func(), error) {
		built++
		return &session.State{Key: key}, func() { _, _, during = s.Acquire(session.Key{Principal: "p", Session: "late"}, nil) }, nil
	})
	_, release, err := s.Acquire(session.Key{Principal: "p", Session: "early"}, nil)
	must(t, err)
	over := s.CloseAll()
	if built != 1 || !errors.Is(during, errClosed) {
		t.Errorf("%d sessions were built, and the last call got %v", built, during)
	}
	select {
	case <-over:
		t.Error("all calls are said to be over, and one is not")
	default:
	}
	release()
	<-over
}

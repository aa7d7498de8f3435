// Package past says what a server has on record of calls and sessions, for tools that tell of them.
//
// It owns the words of that: who asks, what is asked, what is answered. It keeps nothing and reads nothing; the server
// implements Records, which gives nobody what another principal did.
package past

import (
	"context"
	"time"
)

// Records are safe for concurrent use.
type Records interface {
	// Off says why there are no calls on record, as a sentence; "": there are.
	Off() string
	// Calls returns the calls on record that who may see and that fit q, the newest first. more: there are older ones,
	// or what is older was not looked at. Without records it returns none.
	Calls(ctx context.Context, who Who, q Wanted) (calls []Recorded, more bool, err error)
	// Left returns what a session left to do; nothing, if who may not read what that session remembers.
	Left(ctx context.Context, who Who, session string) (Left, error)
	// Running returns the commands of all sessions that who may see and that run in this process, the oldest first.
	Running(ctx context.Context, who Who) []RunningCommand
	// Waiting returns the calls of this process that wait for the person behind who, the oldest first.
	Waiting(who Who) []Waiting
}

// A Who is who asks.
type Who struct {
	Principal string
	Session   string // its name
}

// A Wanted says which calls are wanted.
type Wanted struct {
	Limit int
	// In says whether calls of a session that worked in a directory are wanted; nil: all are.
	In func(dir string) bool
}

// A Recorded is one call that is over. Its texts come from clients and models; known shapes of secrets are masked.
type Recorded struct {
	Time    time.Time // it ended
	Session string    // its name; of a sub-agent that of its owner
	Client  string    // and its version; "": not known
	Tool    string
	Command string // that it ran; "": none
	Code    string // why it failed; "": it did not
	Exit    *int   // of a command that has ended
	Job     string // id of the background command that it was about; "": none
	Files   int    // that it changed
	Open    bool   // its end is not on record: it runs, or its process was killed
}

// Left is what a session left to do, as JSON; nil: nothing.
type Left struct {
	Plan, Mode   []byte // session.Plan, permission.Mode
	Todos, Tasks []byte // []session.Todo, tasks.Book
}

// A RunningCommand is one that runs.
type RunningCommand struct {
	Session string // its name; of a sub-agent that of its owner
	Job     string
	Text    string
	Root    string // of its session; "": not known
	Since   time.Time
}

// A Waiting is a call that waits for a person. It says nothing of what the call is about.
type Waiting struct {
	Session string // a short name
	Tool    string
	Since   time.Time
}

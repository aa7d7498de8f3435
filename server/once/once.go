// Package once makes a call once, however often it arrives. A client repeats a call whose answer did not come: a stream
// broke, a proxy tried again, the server was killed.
//
// A call is known by the id that its client gave it (Key). While it is being made, a repeat waits for it and gets the
// same answer (Do, in runs.go). Over restarts a record in the Store stands for it (record.go): that it is about to run,
// and that it is done. The answer itself is a file beside the Store (kept.go), which never holds results. A call whose
// record says no more than that it ran was cut off: what it did to files is in the journal, a call that may be made
// twice is made again, and of everything else the outcome is unknown.
//
// The record names no process that could be asked: all calls of a principal are made by one process at a time, so a
// record that another one left running is of one that ended.
package once

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"codehand/server/request"
	"codehand/server/state"
)

// Records are the calls that clients may repeat. It is safe for concurrent use.
type Records struct {
	store Store
	kept  *kept
	log   *slog.Logger

	mu   sync.Mutex
	runs map[string]*making // calls that are being made, by Key.store
}

// A Store keeps the records; state.Store is one.
type Store interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error)
}

// New makes Records in a Store, with answers in a directory below dir. Close waits for what works beside the calls.
func New(store Store, dir string, log *slog.Logger) *Records {
	return &Records{store: store, kept: newKept(filepath.Join(dir, "calls")), log: log, runs: map[string]*making{}}
}

// Close ends what works beside the calls. Nil Records have nothing.
func (r *Records) Close() {
	if r != nil {
		r.kept.sweeps.Wait()
	}
}

// A Key is by what a call is known when it arrives again.
type Key struct {
	store string // in the Store: the principal, and a hash of the session and the id
	sum   string // of the tool and its arguments, as they were sent
	field string // of _meta that had the id
}

// maxID is how long an id may be, in bytes.
const maxID = 512

// KeyOf returns the key of a call. Where its client gave it no id, that is the name which another node gave it. ok is
// false if it has none: then each arrival is a call of its own.
func KeyOf(r request.Request) (k Key, ok bool) {
	id, number := "", false
	switch {
	case r.HasCall:
		k.field, id = "codehand/call", r.Call
	case r.ToolUse != "":
		k.field, id = "claudecode/toolUseId", r.ToolUse
		number = counted(id) && !strings.HasPrefix(id, "toolu_") // Anthropic's are random
	case r.CallID != "":
		k.field, id = "callId", r.CallID
		number = counted(id)
	}
	if number || id == "" || len(id) > maxID {
		if r.Relayed == "" {
			return Key{}, false
		}
		k.field, id = "node", r.Relayed
	}
	session := state.Hash(r.Session.Session + "\x00" + k.field + "\x00" + id)
	k.store = state.Key(state.Call, state.Hash(r.Session.Principal), session)
	k.sum = state.Hash(r.Name + "\x00" + string(r.Arguments))
	return k, true
}

// counted says whether the id that a model gave a call may be one of a count that begins anew: some models number the
// calls of each answer, as in call_0. Such an id comes again for another call.
func counted(id string) bool {
	last := id[strings.LastIndexAny(id, "_-.:")+1:]
	return len(last) <= 6 && strings.Trim(last, "0123456789") == ""
}

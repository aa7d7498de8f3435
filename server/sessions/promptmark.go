package sessions

import (
	"sync"

	"codehand/server/tenants"
	"codehand/tools/session"
)

// A PromptMark is what a client was last shown of the prompts of a session: of each connection, and over HTTP in the
// modern era of each session in use. It ends with them: a client that comes back later gets no notice of a change
// before it lists again. It is safe for concurrent use. A nil PromptMark has shown nothing.
type PromptMark struct {
	mu     sync.Mutex
	of     session.Key // whose prompts they were
	digest string      // of the list; "": none was shown
}

// PromptMark returns that of a session in use; nil: the session is not in use.
func (t *Table) PromptMark(key session.Key, at *tenants.Tenant) *PromptMark {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.live[seat{key, at}]; l != nil {
		return &l.shown
	}
	return nil
}

// Set notes that a list was shown.
func (m *PromptMark) Set(of session.Key, digest string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of, m.digest = of, digest
}

// Shown says whose prompts were shown. ok is false if none were.
func (m *PromptMark) Shown() (of session.Key, ok bool) {
	if m == nil {
		return of, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of, m.digest != ""
}

// Moves says whether a session has another list than the one of its that was shown, and notes that the client learns of
// it.
func (m *PromptMark) Moves(of session.Key, digest string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of != of || m.digest == digest {
		return false
	}
	m.digest = digest
	return true
}

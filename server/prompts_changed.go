package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/session"
	"codehand/tools/tool"
)

// A promptMark is what a client was last shown of the prompts of a session: of each connection, and over HTTP in the modern
// era of each session in use. It goes with them: whoever comes back later hears of no change before it lists again. It is
// safe for concurrent use, and nobody was shown anything by nil.
type promptMark struct {
	mu     sync.Mutex
	of     session.Key // whose prompts they were
	digest string      // of the list; "": none was shown
}

// promptMark returns that of a session in use; nil: it is in use nowhere.
func (s *sessions) promptMark(key session.Key, at *place) *promptMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[seat{key, at}]; l != nil {
		return &l.prompts
	}
	return nil
}

// set notes that a list was shown.
func (m *promptMark) set(of session.Key, digest string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of, m.digest = of, digest
}

// shown says whose prompts were shown. ok is false if none were.
func (m *promptMark) shown() (of session.Key, ok bool) {
	if m == nil {
		return of, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of, m.digest != ""
}

// moves says whether a session has another list than the one of its that was shown, and notes that the client learns of it.
func (m *promptMark) moves(of session.Key, digest string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of != of || m.digest == digest {
		return false
	}
	m.digest = digest
	return true
}

// digestPrompts is a digest of a list of prompts.
func digestPrompts(all []promptCall) string {
	sum := sha256.New()
	for _, p := range all {
		fmt.Fprintf(sum, "%q %q", p.prompt.Name, p.prompt.Description)
		for _, a := range p.prompt.Arguments {
			fmt.Fprintf(sum, " %q", a.Description)
		}
	}
	return string(sum.Sum(nil))
}

// tellPrompts tells the client of a call, before the answer, that there are other prompts than those which it was shown.
// They may be those of another session than the call's. Skills are looked for only after a call that may have changed some,
// where prompts were listed, and for a bounded time: the answer waits for it.
func (s *Server) tellPrompts(ctx context.Context, rec *record, result tool.Result) {
	of, ok := rec.prompts.shown()
	if !ok || !rec.mayChangeSkills(ctx, result) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.finding)
	defer cancel()
	all, err := s.promptsOf(ctx, rec, of)
	if err != nil {
		s.log.DebugContext(ctx, "skills were not looked for after a call", "err", err) // the next list has them
		return
	}
	if !rec.prompts.moves(of, digestPrompts(all)) {
		return
	}
	switch method := mcp.MethodNotificationPromptsListChanged; {
	case rec.modern && rec.announce != nil:
		rec.announce(method)
	case !rec.modern && rec.notify != nil:
		_ = rec.notify(method, nil) // a client that is not told sees them when it lists
	}
}

// promptsOf are the prompts of a session of the caller.
func (s *Server) promptsOf(ctx context.Context, rec *record, key session.Key) ([]promptCall, error) {
	if key == rec.state.Key {
		return s.prompts(ctx, rec)
	}
	state, release, err := s.sessions.acquire(key, rec.place)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.prompts(ctx, &record{place: rec.place, state: state})
}

// mayChangeSkills says whether a call may have changed which skills there are: it ran a command that may write, changed a
// file where skills are, or moved.
func (r *record) mayChangeSkills(ctx context.Context, result tool.Result) bool {
	if r.visit.Commanded() || slices.ContainsFunc(result.Meta.Files, func(f tool.FileChange) bool { return r.place.nearSkills(f.Path) }) {
		return true
	}
	cwd, err := r.state.Cwd.Load(ctx)
	return err == nil && cmp.Or(cwd, r.state.Usual.Cwd) != r.state.Space.Cwd()
}

// nearSkills says whether skills may lie at a path.
func (p *place) nearSkills(file string) bool {
	for _, d := range p.skillDirs {
		if rel, err := filepath.Rel(d.Path, file); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	return slices.Contains(parts, ".claude") || slices.Contains(parts, ".codehand")
}

// announce tells the open listens of one session over HTTP that a list is another one.
func (e *httpEndpoint) announce(key session.Key, method string) {
	e.heeding.Range(func(w, of any) bool {
		if of == key {
			w.(*responder).announce(method)
		}
		return true
	})
}

// heeds says whether a listen asked to hear of other prompts.
func heeds(body []byte) bool {
	var listen struct {
		Params struct {
			Notifications struct{ PromptsListChanged bool } `json:"notifications"`
		} `json:"params"`
	}
	return json.Unmarshal(body, &listen) == nil && listen.Params.Notifications.PromptsListChanged
}

// announce sends a notice on a listen, once that is acknowledged. Of those that come before one is enough: whoever hears it
// lists anew.
func (r *responder) announce(method string) {
	line, err := notificationLine(notice(method), r.rec.env.ID)
	if err != nil {
		return // it always encodes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line = bytes.TrimSuffix(line, []byte("\n"))
	switch {
	case !r.heard:
		r.held = line
	case r.phase == replyStream && r.f.Waits():
		_ = r.event(line) // broken says so
	}
}

// notice is a notification without parameters.
func notice(method string) mcp.JSONRPCNotification {
	return mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method}}
}

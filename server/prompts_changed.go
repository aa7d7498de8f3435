package server

import (
	"bytes"
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

// A promptMark is what the clients of a session were last shown of its prompts. It goes when the session loses its
// handles: whoever comes back later hears of no change before it lists again. It is safe for concurrent use.
type promptMark struct {
	mu    sync.Mutex
	shown string // digest of the list; "": none was shown
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

// show notes that a list was shown, and says whether another one was shown before.
func (m *promptMark) show(digest string) (changed bool) {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	changed = m.shown != "" && m.shown != digest
	m.shown = digest
	return changed
}

// waits says whether somebody was shown a list, and so may want to hear of another one.
func (m *promptMark) waits() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown != ""
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

// tellPrompts tells the client of a call, before the answer, that the session has other prompts than those which were
// listed for it. Skills are looked for only after a call that may have changed some, in a session whose prompts were listed.
func (s *Server) tellPrompts(ctx context.Context, rec *record, result tool.Result) {
	if !rec.mayChangeSkills(result) {
		return
	}
	mark := s.sessions.promptMark(rec.state.Key, rec.place)
	if !mark.waits() {
		return
	}
	all, err := s.prompts(ctx, rec)
	if err != nil {
		s.log.DebugContext(ctx, "skills were not looked for after a call", "err", err) // the next list has them
		return
	}
	if !mark.show(digestPrompts(all)) {
		return
	}
	switch method := mcp.MethodNotificationPromptsListChanged; {
	case rec.modern && rec.announce != nil:
		rec.announce(method)
	case !rec.modern && rec.notify != nil:
		_ = rec.notify(method, nil) // a client that is not told sees them when it lists
	}
}

// mayChangeSkills says whether a call may have changed skills: it ran a command, or changed a file where skills are.
func (r *record) mayChangeSkills(result tool.Result) bool {
	t := r.aim.tool
	if t.Spec.Scope == tool.ScopeShell && !t.Spec.Traits.ReadOnly {
		return true
	}
	return slices.ContainsFunc(result.Meta.Files, func(f tool.FileChange) bool { return r.place.nearSkills(f.Path) })
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

// announce sends a notice on a listen that was acknowledged.
func (r *responder) announce(method string) {
	line, err := notificationLine(notice(method), r.rec.env.id)
	if err != nil {
		return // it always encodes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heard && r.phase == replyStream && r.f.waits() {
		_ = r.event(bytes.TrimSuffix(line, []byte("\n"))) // broken says so
	}
}

// notice is a notification without parameters.
func notice(method string) mcp.JSONRPCNotification {
	return mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method}}
}

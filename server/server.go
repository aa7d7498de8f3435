package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/calls"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/explain"
	"codehand/server/listen"
	"codehand/server/notices"
	"codehand/server/opening"
	"codehand/server/pipeline"
	"codehand/server/public"
	"codehand/server/recall"
	"codehand/server/replies"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/team"
	"codehand/server/tenants"
	"codehand/server/toolset"
)

// Options of a Server.
type Options struct {
	engines.Options
	Record func(pipeline.Record) // of every call; must not block; nil: none

	// Public proves that http.public_url leads to this process. Until it is open nothing else is served. nil: there is
	// no such URL.
	Public *public.Prover

	AuditOut io.Writer // where the audit goes with audit.dir = "-"
	Check    bool      // all is made as for serving, and nothing will be served: the audit gets no line

	// Principal is whose sessions and journal the calls in process and on stdio are; "": the person's who started it.
	Principal string
	// Extend adds to the MCP server what is no tool of ours, before anything is served. The conformance fixture uses
	// it.
	Extend func(*mcpserver.MCPServer)
}

// A Server is one process of codehand. It is safe for concurrent use.
type Server struct {
	cfg     config.Config
	replies replies.Replies
	pipe    *pipeline.Pipeline
	calls   *calls.Handler
	// of a progress note with a client that does not read, which tests change; 0: as usual
	patience time.Duration

	notices  *notices.Notifier
	local    *tenants.Tenant
	names    sessions.Pipe // of sessions of this process
	sessions *sessions.Table
	engines  *engines.Set
	opener   *opening.Opener
	keeps    *sessions.Retention
	past     recall.Sources
	team     *team.Team  // of serve; else nil
	audit    *team.Local // of a process for one person; nil: it has none
	life     life
}

// life is how a server ends.
type life struct {
	hurried atomic.Bool // this process may be killed soon, or somebody wants it to end at once
	closing sync.Once
	sources sync.WaitGroup // of what follows the changes of Options.Sources
	closed  error          // of Close; valid after closing
	ended   chan struct{}  // closed by Close
}

// New makes the engines and the gateway. An error says which tool or setting is wrong; nothing is left running then.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Serve {
		var err error
		if o.Config, err = listen.Settle(o.Config); err != nil {
			return nil, err
		}
	}
	s := &Server{
		cfg: o.Config,
		replies: replies.Replies{
			Protocol: replies.Protocol{Versions: mcp.ValidProtocolVersions, Extended: o.Extend != nil}, Log: o.Log,
		},
		life: life{ended: make(chan struct{})},
		names: sessions.Pipe{
			Principal: o.Principal,
			Handle:    o.Config.StdioHandle, Conversation: o.Config.StdioProcessID,
			Process: strings.ToLower(rand.Text()),
		},
	}
	if len(o.Config.Protocol.Versions) > 0 {
		s.replies.Versions = slices.DeleteFunc(slices.Clone(s.replies.Versions), func(v string) bool {
			return !slices.Contains(o.Config.Protocol.Versions, v)
		})
	}
	s.replies.Implementation = mcp.Implementation{
		Name: "codehand", Version: o.Version, Title: "codehand",
		Description: "The tools of a coding agent: read, write, edit, search, run.",
	}
	if err := s.assemble(o); err != nil {
		return nil, err
	}
	if o.Extend != nil {
		o.Extend(s.calls.Gate.Server)
	}
	if err := s.calls.Gate.Relay(s.life.ended); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.life.sources.Go(func() { followSources(s) })
	return s, nil
}

// followSources tells every client that its list of tools may have changed when a Source has, until the server ends.
func followSources(s *Server) {
	s.engines.Tools.Watch(s.life.ended, func(dropped []error) {
		for _, err := range dropped {
			s.replies.Log.Warn("a tool is left out", "cause", err)
		}
		s.notices.Hub.AnnounceToAll(string(mcp.MethodNotificationToolsListChanged))
	})
}

// recordGrace is how long calls whose sessions have ended get to be recorded.
const recordGrace = time.Second

// CloseNow is Close for somebody who does not want to wait: commands that ignore SIGTERM are killed after 0.5 s, also
// by a Close that is under way.
func (s *Server) CloseNow() error {
	s.life.hurried.Store(true)
	return s.Close()
}

// Close ends all sessions and their jobs with their whole process trees, and gives back every handle.
// The second call waits for the first.
func (s *Server) Close() error {
	s.life.closing.Do(func() {
		close(s.life.ended)
		s.life.sources.Wait()
		stdio.Within(s.calls.Waiting.Close(), recordGrace)
		stdio.Within(s.sessions.CloseAll(), recordGrace)
		if err := s.team.Close(); err != nil {
			s.life.closed = fmt.Errorf("close audit: %w", err)
		}
		if err := s.audit.Close(); err != nil {
			s.life.closed = errors.Join(s.life.closed, fmt.Errorf("close audit: %w", err))
		}
		if err := closeEngines(s); err != nil {
			s.life.closed = errors.Join(s.life.closed, fmt.Errorf("close engines: %w", err))
		}
		if err := s.opener.Tenants.Close(); err != nil {
			s.life.closed = errors.Join(s.life.closed, fmt.Errorf("close roots: %w", err))
		}
	})
	return s.life.closed
}

// List returns all that tools/list shows to anybody, in its order.
func (s *Server) List() []toolset.Entry { return s.engines.Tools.Entries(s.local.Offers(true)) }

// Mounted starts or reaches a mounted server: engines.Set.Mounted, with the tools that tools/list would show.
func (s *Server) Mounted(ctx context.Context, name string, accept bool) (engines.Mounted, error) {
	return s.engines.Mounted(ctx, name, accept, s.List)
}

// event takes what is no call into the record, if there is one.
func (s *Server) event(ev string, fields map[string]any) {
	switch {
	case s.team != nil:
		s.team.Event(ev, fields)
	case s.audit != nil:
		s.audit.Event(ev, fields)
	}
}

// Call runs one tool in process, as principal local, with the same checks and through the same corridor as a client's
// call. It returns what the model would read, however much the calls before it showed, and whether that is an error.
// err is a tool that does not exist, or a fault of ours.
func (s *Server) Call(ctx context.Context, name string,
	arguments json.RawMessage) (text string, failed bool, err error) {
	return s.calls.Call(ctx, s.local, s.names.Key, name, arguments)
}

// CallByPerson is Call for a person who clicked on a page: where a person must allow the call, that click does.
func (s *Server) CallByPerson(ctx context.Context, name string,
	arguments json.RawMessage) (text string, failed bool, err error) {
	return s.calls.ByPerson(ctx, s.local, name, arguments)
}

// Explain says what would become of a call of principal local, without running anything: the same code decides as about
// a call that runs. err is an *explain.UnknownToolError, a state store that does not answer, or a fault of ours.
func (s *Server) Explain(ctx context.Context, name string, arguments json.RawMessage) (explain.Explanation, error) {
	x := explain.Explainer{
		Tools: s.engines.Tools, Tenant: s.local, Pipe: s.pipe, Keyed: s.names.Key, Open: s.opener.Open,
	}
	return x.Explain(ctx, name, arguments)
}

// A RuleReport says what one rule covers in the roots, for people and programs.
type RuleReport = tenants.RuleReport

// Rules says what each rule of principal local covers: how many files there are now is counted until ctx ends.
func (s *Server) Rules(ctx context.Context) []RuleReport {
	return s.opener.Tenants.Report(ctx, s.local)
}

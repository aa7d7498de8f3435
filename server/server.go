package server

import (
	"crypto/rand"
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
	"codehand/server/clients"
	"codehand/server/config"
	"codehand/server/hub"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/mcpgo"
	"codehand/server/notices"
	"codehand/server/pipeline"
	"codehand/server/prompts"
	"codehand/server/public"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/subagents"
	"codehand/server/team"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools"
	"codehand/tools/agent/loop"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Options of a Server.
type Options struct {
	Config config.Config
	// Tools makes the tools, from the engines that it is handed; nil: there are none.
	Tools   func(tools.Engines) []tool.Tool
	Sources []toolset.Source      // of further tools, which can change while the server runs
	Version string                // of codehand
	Log     *slog.Logger          // nil: nothing is logged
	Record  func(pipeline.Record) // of every call; must not block; nil: none

	// Public proves that http.public_url leads to this process. Until it is open nothing else is served. nil: there is
	// no such URL.
	Public *public.Prover

	AuditOut io.Writer // where the audit goes with audit.dir = "-"
	Echo     io.Writer // gets what commands print, as it comes; nil: nobody looks on

	// Proven says how far this machine confines commands; nil: it is probed when a command first needs to know, and
	// serve for others at once.
	Proven func() sandbox.Report

	agentModel loop.Model // takes the place of that of agent.api, for tests

	storeTime time.Duration // bounds one operation of the Store with its retries; 0: 2 s

	// Principal is whose sessions and journal the calls in process and on stdio are; "": the person's who started it.
	Principal string
	// Serve is for HTTP: the state is durable, calls are audited, and principals are told apart.
	Serve bool
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
	// that a progress note waits for a client that does not read; tests change it
	patience time.Duration

	tools    *toolset.Set
	gate     *mcpgo.Gateway
	notices  *notices.Notifier
	local    *tenants.Tenant
	names    sessions.Pipe // of sessions of this process
	sessions *sessions.Table
	engines  *shared
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

// skillTime bounds the search for skills when a client begins, and after a call that may have changed some.
const skillTime = 2 * time.Second

// New makes the engines and the gateway. An error says which tool or setting is wrong; nothing is left running then.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if p := o.Config.Client.Profile; p != "" {
		if _, ok := clients.Named(p); !ok {
			return nil, fmt.Errorf("client.profile: there is no profile %s; there are %s", p,
				strings.Join(clients.Names(), ", "))
		}
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
		patience: jsonrpc.ProgressPatience,
		life:     life{ended: make(chan struct{})},
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
	library := &resources.Library{Pipe: s.pipe, Find: s.tools.Get}
	s.calls.Agents = subagents.Host{
		Serve: s.calls.Serve, Memory: s.engines.memory, End: s.sessions.End, Hooks: s.engines.hooks, Log: s.replies.Log,
	}
	s.notices = &notices.Notifier{
		Hub: new(hub.Hub), Sessions: s.sessions, Resources: library,
		Prompts: &prompts.Library{Resources: library, CoAuthor: s.cfg.Git.CoAuthor},
		Replies: s.replies, Ended: s.life.ended, SkillTime: skillTime,
		Memory: func(key session.Key) session.Memory { return s.engines.memory(key) },
	}
	lists := toolset.Lists{Deferral: o.Config.Tools.Deferral, Always: o.Config.Tools.Always}
	profiles := toolset.Profiles{Forced: o.Config.Client.Profile, Lists: lists}
	s.gate = mcpgo.New(mcpgo.Parts{
		Replies: s.replies, Tools: s.tools, Profiles: profiles, Notices: s.notices, Active: s.engines.active,
	})
	s.calls.Notices, s.calls.Gate = s.notices, s.gate
	if o.Extend != nil {
		o.Extend(s.gate.Server)
	}
	if err := s.gate.Relay(s.life.ended); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.life.sources.Go(func() { followSources(s) })
	return s, nil
}

// followSources tells every client that its list of tools may have changed when a Source has, until the server ends.
func followSources(s *Server) {
	s.tools.Watch(s.life.ended, func(dropped []error) {
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
		if err := s.engines.close(); err != nil {
			s.life.closed = errors.Join(s.life.closed, fmt.Errorf("close engines: %w", err))
		}
	})
	return s.life.closed
}

// Serve is request.Serve.
func (s *Server) Serve(r request.Request) (request.Work, bool) { return s.calls.Serve(r) }

// List returns all that tools/list shows to anybody, in its order.
func (s *Server) List() []toolset.Entry { return s.tools.Entries(s.local.Offers(true)) }

// event takes what is no call into the record, if there is one.
func (s *Server) event(ev string, fields map[string]any) {
	switch {
	case s.team != nil:
		s.team.Event(ev, fields)
	case s.audit != nil:
		s.audit.Event(ev, fields)
	}
}

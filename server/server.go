package server

import (
	"context"
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

	"codehand/server/clients"
	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/stdio"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Options of a Server.
type Options struct {
	Config  config.Config
	Tools   []tool.Tool
	Version string                // of codehand
	Log     *slog.Logger          // nil: nothing is logged
	Record  func(pipeline.Record) // of every call; must not block; nil: none

	AuditOut io.Writer // where the audit goes with audit.dir = "-"

	storeTime time.Duration // bounds one operation of the Store with its retries; 0: 2 s

	// Serve is for HTTP: the state is durable, calls are audited, and principals are told apart.
	Serve bool
	// Extend adds to the MCP server what is no tool of ours, before anything is served. The conformance fixture uses it.
	Extend func(*mcpserver.MCPServer)
}

// A Server is one process of codehand. It is safe for concurrent use.
type Server struct {
	cfg      config.Config
	log      *slog.Logger
	process  string        // names this process's own session
	glance   time.Duration // for which is looked whether there are changes to list
	patience time.Duration // of a progress note with a client that does not read
	roots    time.Duration // that a client has to name its roots
	finding  time.Duration // for which skills are looked for before an answer
	versions []string      // of the protocol, newest first

	mcp            *mcpserver.MCPServer
	implementation mcp.Implementation
	tools          []tool.Tool
	lists          lister
	table          map[string]tool.Tool // by name and alias

	pipe     *pipeline.Pipeline
	asks     *asker
	noShell  string // why no command runs in this process; "": see each place
	local    *place
	team     *team       // of serve; else nil
	audit    *localAudit // of a process for one person; nil: it has none
	endpoint atomic.Pointer[httpEndpoint]
	sessions *sessions
	arrival  sync.Mutex // of a call in its queues
	engines  *engines
	hurried  atomic.Bool // this process may be killed soon, or somebody wants it to end at once
	closing  sync.Once
	closed   error // of Close; valid after closing
}

// New makes the engines, checks every tool and registers it. An error says which tool or setting is wrong; nothing is
// left running then.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	checked := make(chan error, 1) // beside the rest (BenchmarkColdStart)
	go func() { checked <- selfCheck(o.Tools, o.Config.Tools.Always) }()
	s, err := newServer(o)
	if bad := <-checked; bad != nil {
		if err == nil {
			_ = s.Close() // nothing has begun
		}
		return nil, bad
	}
	return s, err
}

// newServer is New without the self-check.
func newServer(o Options) (*Server, error) {
	if p := o.Config.Client.Profile; p != "" {
		if _, ok := clients.Named(p); !ok {
			return nil, fmt.Errorf("client.profile: there is no profile %s; there are %s", p, strings.Join(clients.Names(), ", "))
		}
	}
	s := &Server{cfg: o.Config, log: o.Log, tools: o.Tools, process: newID(), patience: jsonrpc.ProgressPatience, roots: rootsTime, finding: skillTime, glance: glanceTime, table: map[string]tool.Tool{}}
	s.versions = mcp.ValidProtocolVersions
	if len(o.Config.Protocol.Versions) > 0 {
		s.versions = slices.DeleteFunc(slices.Clone(s.versions), func(v string) bool {
			return !slices.Contains(o.Config.Protocol.Versions, v)
		})
	}
	s.lists = lister{deferral: o.Config.Tools.Deferral, always: o.Config.Tools.Always}
	if err := s.lists.check(o.Tools); err != nil {
		return nil, err
	}
	if err := s.assemble(o); err != nil {
		return nil, err
	}
	s.implementation = mcp.Implementation{
		Name: "codehand", Version: o.Version, Title: "codehand",
		Description: "The tools of a coding agent: read, write, edit, search, run.",
	}
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterListTools(s.list)
	hooks.AddAfterListResources(s.listResources)
	hooks.AddAfterListPrompts(s.listPrompts)
	hooks.AddBeforeGetPrompt(s.findPrompt)
	hooks.AddAfterInitialize(s.greet)
	hooks.AddAfterDiscover(s.meet)
	s.mcp = mcpserver.NewMCPServer(s.implementation.Name, o.Version,
		mcpserver.WithTitle(s.implementation.Title),
		mcpserver.WithDescription(s.implementation.Description),
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithPromptCapabilities(true),
		mcpserver.WithResourceCapabilities(false, false),
		mcpserver.WithCompletions(),
		mcpserver.WithResourceCompletionProvider(completions{s}),
		mcpserver.WithPromptCompletionProvider(completions{s}),
		mcpserver.WithExtensions(extensions()),
		mcpserver.WithLogging(),
		mcpserver.WithHooks(hooks),
		mcpserver.WithMethodCacheHints(mcp.MethodServerDiscover, 3_600_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodToolsList, 300_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodPromptsList, 60_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesTemplatesList, 3_600_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesList, 0, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesRead, 0, mcp.CacheScopePrivate),
	)
	s.register(o.Tools)
	s.offerResources()
	s.offerPrompts()
	if o.Extend != nil {
		o.Extend(s.mcp)
	}
	return s, nil
}

// greet notes what a client said about itself in a handshake that succeeded, caps the version of the answer to what the
// operator serves, and instructs the client's model.
func (s *Server) greet(ctx context.Context, _ any, req *mcp.InitializeRequest, result *mcp.InitializeResult) {
	if vs := s.legacyVersions(); len(vs) > 0 && !slices.Contains(vs, result.ProtocolVersion) {
		result.ProtocolVersion = vs[0]
	}
	info := req.Params.ClientInfo
	rec, caps := recordFrom(ctx), req.Params.Capabilities
	rec.askable = caps.Elicitation != nil || caps.Sampling != nil || caps.Roots != nil
	rec.hello = &clientRecord{
		Name: results.Line(info.Name, maxClientName), Version: results.Line(info.Version, maxClientName), Protocol: result.ProtocolVersion,
		CanAsk: canElicit(caps.Elicitation), HasRoots: caps.Roots != nil,
	}
	result.Instructions = s.instruct(ctx, rec.place, session.Client{
		Name: rec.hello.Name, CanAsk: rec.hello.CanAsk, SeesAll: s.lists.showsAll(s.profile(rec.hello.Name)),
	})
	s.log.InfoContext(ctx, "client initialized", "name", results.Line(info.Name, 80), "version", results.Line(info.Version, 80))
}

// meet instructs the model of a client of a protocol without a handshake.
func (s *Server) meet(ctx context.Context, _ any, _ *mcp.DiscoverRequest, result *mcp.DiscoverResult) {
	rec := recordFrom(ctx)
	result.Instructions = s.instruct(ctx, rec.place, s.client(ctx, rec))
}

// maxClientName bounds what is kept of a client's name and version, in characters.
const maxClientName = 200

// recordGrace is how long calls whose sessions have ended get to be recorded.
const recordGrace = time.Second

// CloseNow is Close for somebody who does not want to wait: commands that ignore SIGTERM are killed after 0.5 s, also by a
// Close that is under way.
func (s *Server) CloseNow() error {
	s.hurried.Store(true)
	return s.Close()
}

// Close ends all sessions and their jobs with their whole process trees, and gives back every handle.
// The second call waits for the first.
func (s *Server) Close() error {
	s.closing.Do(func() {
		stdio.Within(s.sessions.closeAll(), recordGrace)
		if err := s.team.close(); err != nil {
			s.closed = fmt.Errorf("close audit: %w", err)
		}
		if err := s.audit.close(); err != nil {
			s.closed = errors.Join(s.closed, fmt.Errorf("close audit: %w", err))
		}
		if err := s.engines.close(); err != nil {
			s.closed = errors.Join(s.closed, fmt.Errorf("close engines: %w", err))
		}
	})
	return s.closed
}

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/filestate"
	"codehand/filestate/lock"
	"codehand/server/asking"
	"codehand/server/calls"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/listen"
	"codehand/server/pipeline"
	"codehand/server/places"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/server/team"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/server/waiting"
	"codehand/tools"
	"codehand/tools/agent"
	"codehand/tools/git/changes"
	"codehand/tools/hooks"
	"codehand/tools/media"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/settings"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

// storeTime bounds one operation of the Store with its retries.
const storeTime = 2 * time.Second

// shared is what all sessions of a process share.
type shared struct {
	dir     string // state directory
	store   state.Store
	durable bool // the store outlives the process
	locker  lock.Locker
	held    *filestate.Contents
	kept    *sessions.Journals
	search  *search.Engine
	broken  *settings.Checker
	media   *media.Reader
	hooks   *hooks.Runner
	keeps   *sessions.Retention
	tenants *tenants.Maker
	echo    io.Writer // Options.Echo
	tools.Engines
	confined *engines.Confinement
}

// assemble makes everything below this room, in the order in which one thing needs another. It is the only place that
// does.
func (s *Server) assemble(o Options) (err error) {
	cfg := o.Config
	e := &shared{echo: o.Echo}
	s.engines = e
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.dir, err = config.OpenState(cfg.StateDir); err != nil {
		return err
	}
	if e.durable = o.Serve; o.Serve {
		if e.store, err = state.Open(context.Background(), cfg.Store.URL, state.Options{
			Dir: e.dir, Timeout: cmp.Or(o.storeTime, storeTime), SessionLife: cfg.Session.TTL,
			MaxBytes: cfg.Store.MaxBytes, Sync: cfg.Store.Sync,
		}); err != nil {
			return err
		}
		if stats, ok := e.store.(state.Stater); ok && stats.Stats().Cut > 0 {
			s.replies.Log.Warn("truncated the end of the state log: it was half-written or never synced",
				"bytes", stats.Stats().Cut)
		}
	} else {
		e.store = state.NewMemory(state.MemoryOptions{})
	}
	e.locker = lock.New(filepath.Join(e.dir, "locks"))
	e.held = filestate.NewContents(0)
	e.kept = sessions.NewJournals(e.dir, e.locker, cfg, s.replies.Log)
	e.search = search.New(search.Options{
		Workers: cfg.Search.Workers, Outside: cfg.Search.OutsideIgnores == "auto",
		Home: cfg.Home, ConfigHome: cfg.ConfigHome,
	})
	opts := engines.Options{Config: cfg, Version: o.Version, Log: s.replies.Log, Serve: o.Serve}
	e.confined = opts.Confinement(e.dir, o.Proven)
	if err := e.confined.CheckApart(); err != nil {
		return err
	}
	e.media = media.New(media.Options{Fit: media.FitOptions{MaxEdge: cfg.Read.ImageMaxEdge},
		Temp: filepath.Join(e.dir, "pdf"), Level: e.confined.Options.Level})
	if cfg.Journal.Shell {
		e.Trees = changes.New(cfg.Home, cfg.ConfigHome)
	}
	e.broken = settings.New(cfg.Check)
	if err = makeTools(s, o, opts); err != nil {
		return err
	}
	e.tenants = newMaker(s, o)
	if s.local, err = e.tenants.Local(); err != nil {
		return err
	}
	e.Mounts.Begin()
	s.sessions = sessions.NewTable(s.build)
	s.sessions.Idle, s.sessions.Most = cfg.Session.Idle, cfg.Session.Max
	s.pipe = &pipeline.Pipeline{
		AskFallback: cfg.Permissions.AskFallback, UserFile: cfg.Permissions.UserFile,
		Parallel: cfg.Tools.MaxParallel, Record: o.Record, Log: s.replies.Log,
	}
	e.keeps = sessions.NewRetention(e.dir, cfg.Results, s.pipe.Runs, s.replies.Log)
	if err := s.useHooks(opts); err != nil {
		return err
	}
	if err = s.useTeam(o); err != nil {
		return err
	}
	if !o.Serve || listen.WhyShared(cfg) == "" {
		s.pipe.Always = e.alwaysIn(cfg)
	}
	asks := asking.New(e.store, cfg.Permissions.AskTimeout, s.event, s.replies.Log)
	s.calls = &calls.Handler{
		Replies: s.replies, Tools: s.tools, Sessions: s.sessions, Asks: asks,
		Places:  &places.Desk{Pipe: s.pipe, Tools: s.tools, Kept: e.keeps.Kept},
		Waiting: waits(cfg, e.Agents, asks.Life, s.replies), Keeps: e.keeps, Active: e.active,
		Observed: s.team.Observed, Waits: calls.DefaultWaits(),
		Lends: calls.Lends{WithTools: cfg.Tools.Agent.Sampling, Plain: cfg.Web.Sampling},
	}
	return nil
}

// waits lets modern calls ask their client while they work, where something may: that costs each of them a goroutine.
// nil: nothing may.
func waits(cfg config.Config, agents *agent.Runner, life time.Duration, r replies.Replies) *waiting.Calls {
	if !cfg.Web.Sampling && agents.InForce(true) == agent.None {
		return nil
	}
	return waiting.New(life, func(asked map[string]waiting.Asked, state string) request.Answer {
		return r.Question(asked, state)
	})
}

// useTeam makes what serve has besides stdio, or else the record of a process for one person, and lets the corridor
// record calls there.
func (s *Server) useTeam(o Options) (err error) {
	e := s.engines
	if !o.Serve {
		if s.audit, err = team.OpenLocal(o.Config, o.Version, s.replies.Log); err == nil && s.audit != nil {
			s.pipe.Audit, s.pipe.AuditReady = s.audit.Write, s.audit.Ready
		}
		return err
	}
	if s.team, err = team.New(context.Background(), team.Options{
		Config: o.Config, Version: o.Version, Log: o.Log, Public: o.Public, AuditOut: o.AuditOut,
		Dir: e.dir, Store: e.store, Maker: e.tenants, Proven: e.confined.Proven,
	}); err != nil {
		return err
	}
	e.store = s.team.Watch(team.Watched{Tools: s.tools.All(), Jobs: s.sessions.Jobs, Waiting: s.pipe.Waiting})
	s.pipe.Audit, s.pipe.AuditReady, s.pipe.Record = s.team.Write, s.team.Ready, s.team.Record
	return nil
}

// makeTools makes the engines that tools are handed, and the tools.
func makeTools(s *Server, o Options, opts engines.Options) (err error) {
	e, cfg := s.engines, o.Config
	if e.Web, err = opts.Web(); err != nil {
		return err
	}
	if e.WebSearch, err = opts.WebSearch(); err != nil {
		return err
	}
	e.Mounts = opts.Mounts(func() []string { return s.local.Space.Roots() })
	if e.Agents, err = opts.Agents(engines.Handed{
		Model: o.agentModel,
		Tools: func() []tool.Tool { return s.tools.All() },
		Roots: func() []string { return s.local.Space.Roots() },
	}); err != nil {
		return err
	}
	var all []tool.Tool
	if o.Tools != nil {
		all = limitReports(o.Tools(e.Engines), cfg.Tools.Agent.MaxOutput)
	}
	sources := append([]toolset.Source{toolset.Fixed(all)}, o.Sources...)
	if e.Mounts != nil {
		sources = append(sources, e.Mounts)
	}
	s.tools, err = toolset.New(toolset.Lists{Deferral: cfg.Tools.Deferral, Always: cfg.Tools.Always}, sources...)
	return err
}

// limitReports gives the tools that return reports of sub-agents as many characters as agent.max_output says.
func limitReports(tools []tool.Tool, most int) []tool.Tool {
	limited := slices.Clone(tools)
	for i, t := range limited {
		if most > 0 && t.Spec.Reports {
			limited[i] = t.Limited(most)
		}
	}
	return limited
}

// newMaker makes what makes tenants.
func newMaker(s *Server, o Options) *tenants.Maker {
	e := s.engines
	return &tenants.Maker{
		Config: o.Config, Tools: s.tools, Search: e.search, Log: s.replies.Log, State: e.dir,
		Durable: e.durable, Principal: o.Principal, Confine: e.confined.Options, NoShell: e.confined.NoShell(),
		Worked: func(id string) bool { return sessions.Worked(e.dir, id) },
	}
}

// alwaysIn keeps what a person allows for good in the file of that person's settings; nil: there is no such file, or
// nothing in it would allow a call.
func (e *shared) alwaysIn(cfg config.Config) *pipeline.Always {
	file := cfg.Permissions.UserFile
	if file == "" || cfg.Permissions.ManagedRulesOnly {
		return nil
	}
	return &pipeline.Always{File: file, Add: func(ctx context.Context, rule string) error {
		unlock, err := e.locker.Lock(ctx, file) // other processes add rules, too
		if err != nil {
			return err
		}
		defer unlock()
		return config.AddAllow(file, rule)
	}}
}

func (e *shared) close() error {
	if e.Agents != nil {
		e.Agents.Close()
	}
	e.Mounts.Close()
	if e.keeps != nil {
		e.keeps.Close()
	}
	if e.hooks != nil {
		e.hooks.Close()
	}
	e.confined.Close()
	var errs []error
	if e.kept != nil {
		errs = append(errs, e.kept.Close())
	}
	if e.search != nil {
		errs = append(errs, e.search.Close())
	}
	if e.Trees != nil {
		e.Trees.Close()
	}
	if e.store != nil {
		errs = append(errs, e.store.Close())
	}
	return errors.Join(errs...)
}

// build opens the handles of one session. Its directory lies below that of its principal; both are named by hashes,
// because keys are free text.
func (s *Server) build(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
	e := s.engines
	principal, name := state.Hash(key.Principal), state.Hash(key.Session)
	memory := e.memory(key)
	journal, err := e.kept.Of(sessions.JournalOf(key.Principal))
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(e.dir, sessions.Dir, principal[:16], name[:16])
	jobs, kept := filepath.Join(dir, "jobs"), filepath.Join(dir, "tool-results")
	stopSnapshot := func() {}
	if !e.durable { // else the Store keeps everything itself
		stopSnapshot = sessions.Resume(key, dir, at.Start, memory, s.replies.Log)
	}
	sh, err := shell.New(shell.Options{Dir: jobs, Board: memory, Init: s.cfg.Shell.InitFile, Env: at.Env(),
		Withheld: e.tenants.Withheld(at), Hurried: s.life.hurried.Load, Echo: e.echo, Plain: !s.cfg.Shell.MaskSecrets,
		Over: func(i shell.Info) { s.notices.JobOver(key, at, i) }})
	if err != nil && at.Prefs.NoShell == "" {
		stopSnapshot()
		return nil, nil, fmt.Errorf("shell of a session: %w", err)
	}
	st := &session.State{
		Key:    key,
		Shared: strings.HasPrefix(key.Session, sessions.ByWorkspace),
		Space:  at.Space.Readable(jobs, kept),
		Files: filestate.New(filestate.Options{
			Memory: memory, Locker: e.locker, Contents: e.held, Journal: journal,
			Fast: s.cfg.Write.Durability == "fast",
		}),
		Rules:    at.Rules,
		Clean:    at.Clean,
		Search:   e.search,
		Settings: e.broken,
		Commands: session.Commands{Shell: sh},
		Results:  results.New(kept),
		Media:    e.media,
		Prefs:    at.Prefs,
		Modes:    session.Modes{Start: at.Start, Highest: at.Highest},
		Mode:     session.NewCell[permission.Mode](memory, sessions.ModeCell),
		Cwd:      session.NewCell[string](memory, "cell.cwd"),
		Plan:     session.NewCell[session.Plan](memory, sessions.PlanCell),
		Grants:   session.NewCell[[]permission.Grant](memory, sessions.GrantsCell),
		Declines: session.NewCell[session.Declines](memory, "cell.declines"),
		Cursors:  session.NewCell[map[string]session.Cursor](memory, "cell.cursors"),
		Active:   session.NewCell[[]string](memory, activeCell),
		Todos:    session.NewCell[[]session.Todo](memory, "cell.todos"),
		Reach: session.Reach{
			Searches: session.NewCell[int](memory, "cell.searches"),
		},
		Choices: session.NewCell[session.Choices](memory, "cell.choices"),
		Told:    session.NewCell[map[string]string](memory, "cell.loaded"),
		// of all sessions of the tenant: a copy each would be most of what a session holds
		Skills:  at.Bare.Skills,
		Catalog: at.Offers(false).Catalog, // a call says whether its client can be asked
		Tasks:   e.tenants.TaskList(at, memory),
	}
	st.SkillDirs = at.SkillDirs
	st.Agents = session.Agents{Types: at.Bare.Types}
	st.Confine = at.Confinement(filepath.Join(dir, "tmp"), jobs, kept)
	st.Plans, st.PlanFallback = s.plans(at), s.cfg.Plan.ApprovalFallback
	return st, func() {
		if sh != nil {
			_ = sh.Close() // what could not be ended was logged there; nobody is left to be told
		}
		_ = os.RemoveAll(filepath.Join(dir, "tmp")) // the commands that used it have ended; what is left goes with dir
		stopSnapshot()
	}, nil
}

// plans is where the plan files of a tenant's sessions are: where the operator wants them, if that lies in its roots.
func (s *Server) plans(at *tenants.Tenant) string {
	own := filepath.Join(s.engines.dir, "plans")
	dir := s.cfg.Plan.Directory
	switch {
	case dir == "":
		return own
	case at.Space.Inside(dir):
		return dir
	}
	s.replies.Log.Warn("plan.directory is not inside a root here: plans go to the state directory", "directory", dir,
		"principal", at.Who.ID)
	return own
}

package server

import (
	"context"
	"errors"

	"codehand/server/asking"
	"codehand/server/calls"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/listen"
	"codehand/server/mcpgo"
	"codehand/server/notices"
	"codehand/server/once"
	"codehand/server/opening"
	"codehand/server/pauses"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/server/subagents"
	"codehand/server/team"
	"codehand/server/tenants"
	"codehand/server/toolset"
)

// assemble makes everything below this room, in the order in which one thing needs another. It is the only place that
// does.
func (s *Server) assemble(o Options) (err error) {
	cfg := o.Config
	o.Options.Log, o.Past = s.replies.Log, &s.past
	local := func() engines.Local { return engines.Local{Roots: s.local.Space.Roots(), Rules: s.local.Rules} }
	if s.engines, err = engines.Open(o.Options, local); err != nil {
		return err
	}
	e := s.engines
	defer func() {
		if err != nil {
			err = errors.Join(err, closeEngines(s))
		}
	}()
	s.opener = &opening.Opener{
		Engines: e, Config: cfg, Log: s.replies.Log, Echo: o.Echo, Hurried: s.life.hurried.Load,
		Tenants: &tenants.Maker{
			Config: cfg, Tools: e.Tools, Search: e.Search, Language: e.Language, Log: s.replies.Log, State: e.Dir,
			Durable:   e.Durable,
			Principal: o.Principal, Confine: e.Confined.Options, NoShell: e.Confined.NoShell(),
			Worked: func(id string) bool { return sessions.Worked(e.Dir, id) || sessions.Worked(e.Kept, id) },
		},
	}
	if s.local, err = s.opener.Tenants.Local(); err != nil {
		return err
	}
	e.Mounts.Begin()
	s.sessions = sessions.NewTable(s.opener.Open)
	s.sessions.Idle, s.sessions.Most = cfg.Session.Idle, cfg.Session.Max
	s.sessions.Check = s.opener.Tenants.CheckRule
	s.remember(o)
	s.pipe = &pipeline.Pipeline{
		AskFallback: cfg.Permissions.AskFallback, UserFile: cfg.Permissions.UserFile,
		Parallel: cfg.Tools.MaxParallel, Record: o.Record, Log: s.replies.Log,
	}
	s.keeps = sessions.NewRetention(e.Dir, cfg.Results, s.pipe.Runs, s.replies.Log)
	s.useHooks(cfg)
	if err = s.useTeam(o); err != nil {
		return err
	}
	if !o.Serve || listen.WhyShared(cfg) == "" {
		s.pipe.Always = alwaysIn(cfg, e)
	}
	return s.answerWith(cfg)
}

// answerWith makes what answers requests.
func (s *Server) answerWith(cfg config.Config) error {
	e := s.engines
	profiles, err := toolset.NewProfiles(cfg.Client.Profile, e.Tools.Lists)
	if err != nil {
		return err
	}
	s.notices = notices.New(notices.Parts{
		Sessions: s.sessions, Pipe: s.pipe, Find: e.Tools.Get, CoAuthor: cfg.Git.CoAuthor, Replies: s.replies,
		Memory: e.Cells, Ended: s.life.ended,
	})
	s.opener.JobOver = s.notices.JobOver
	var desk *asking.Desk
	if s.team != nil {
		desk = s.team.Desk
	} else if cfg.Console.Approvals != "off" {
		desk = asking.NewDesk(false, s.event)
	}
	s.past.Desk = desk
	if desk != nil && len(cfg.Console.Notify) > 0 {
		desk.Told = func(w asking.Waiting, url string) { e.Hooks.Notify(w.Notice(url)) }
	}
	var repeats *once.Records
	if s.team != nil { // on a pipe no answer is lost but with the process, whose Store is gone then, too
		repeats = once.New(e.Store, e.Kept, s.replies.Log)
	}
	gate := mcpgo.New(mcpgo.Parts{
		Replies: s.replies, Tools: e.Tools, Profiles: profiles, Notices: s.notices, Active: e.Active,
		KeepsCalls: repeats != nil,
	})
	asks := asking.New(e.Store, cfg.Permissions.AskTimeout, s.event, s.replies.Log)
	s.pipe.PauseTime = asks.Life
	s.calls = calls.New(calls.Parts{
		Replies: s.replies, Tools: e.Tools, Sessions: s.sessions, Pipe: s.pipe, MayAsk: e.MayAsk(cfg),
		OnPage: calls.OnPage{Desk: desk, Chats: s.team != nil && cfg.Console.Chats}, Asks: asks,
		Notices: s.notices, Gate: gate, Keeps: s.keeps, Once: repeats, Event: s.event, Active: e.Active,
		Observed: s.team.Observed,
		Lends:    calls.Lends{WithTools: cfg.Tools.Agent.Sampling, Plain: cfg.Web.Sampling},
	})
	if s.team != nil {
		s.team.Behind = team.Behind{Act: s.calls.ByPerson, Commands: s.sessions}
	}
	s.calls.Agents = subagents.Host{
		Serve: s.calls.Serve, Memory: e.Memory, End: s.sessions.End, Hooks: e.Hooks, Log: s.replies.Log,
	}
	return nil
}

// remember lets tools tell of earlier calls and sessions.
func (s *Server) remember(o Options) {
	e := s.engines
	s.past.Cells, s.past.Table = e.Cells, s.sessions
	switch {
	case !o.Serve:
		s.past.State, s.past.Dir = e.Dir, config.CallsDir(o.Config)
		s.past.Why = "Calls are not recorded: console.record is false."
	case o.Config.Audit.Dir == team.AuditOut:
		s.past.Why = "The record of calls goes to standard output (audit.dir) and cannot be read."
	default:
		s.past.Dir = team.AuditDir(o.Config, e.Dir)
	}
}

// useHooks lets the pipeline and the sessions use the operator's programs.
func (s *Server) useHooks(cfg config.Config) {
	runner := s.engines.Hooks
	if s.engines.Around {
		s.pipe.Hooks = runner
		s.sessions.Began, s.sessions.Ended = s.opener.Began, s.opener.Ended
	}
	switch {
	case len(cfg.Permissions.Classifier) > 0:
		s.pipe.Classify = runner.Classify
	case cfg.Auto():
		s.replies.Log.Warn("permissions.mode auto acts like default, because there is no permissions.classifier",
			"from", cfg.Origin("permissions.mode"))
	}
}

// useTeam makes what serve has besides stdio, or else the record of a process for one person, and lets the pipeline
// record calls there.
func (s *Server) useTeam(o Options) (err error) {
	e := s.engines
	if !o.Serve {
		s.pipe.Paused = pauses.Dir(e.Dir).Paused
		if s.audit, err = team.OpenLocal(o.Config, o.Version, s.replies.Log); err == nil && s.audit != nil {
			s.pipe.Audit, s.pipe.AuditReady = s.audit.Write, s.audit.Ready
		}
		return err
	}
	if s.team, err = team.New(context.Background(), team.Options{
		Config: o.Config, Version: o.Version, Log: o.Log, Public: o.Public, AuditOut: o.AuditOut, Check: o.Check,
		Dir: e.Dir, Store: e.Store, Nodes: e.Nodes, Maker: s.opener.Tenants, Proven: e.Confined.Proven,
	}); err != nil {
		return err
	}
	e.Store = s.team.Watch(team.Watched{Tools: e.Tools.All(), Jobs: s.sessions.Jobs, Waiting: s.pipe.Waiting})
	s.pipe.Audit, s.pipe.AuditReady, s.pipe.Record = s.team.Write, s.team.Ready, s.team.Record
	s.pipe.Paused = s.team.Pauses.Paused
	return nil
}

// alwaysIn keeps what a person allows for good in the file of that person's settings; nil: there is no such file, or
// nothing in it would allow a call.
func alwaysIn(cfg config.Config, e *engines.Set) *pipeline.Always {
	file := cfg.Permissions.UserFile
	if file == "" || cfg.Permissions.ManagedRulesOnly {
		return nil
	}
	return &pipeline.Always{File: file, Add: func(ctx context.Context, rule string) error {
		unlock, err := e.Locker.Lock(ctx, file) // other processes add rules, too
		if err != nil {
			return err
		}
		defer unlock()
		return config.AddAllow(file, rule)
	}}
}

// closeEngines gives back the engines, and what works beside the calls.
func closeEngines(s *Server) error {
	if s.keeps != nil {
		s.keeps.Close()
	}
	if s.calls != nil {
		s.calls.Once.Close()
	}
	return s.engines.Close()
}

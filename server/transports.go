package server

import (
	"context"
	"errors"
	"io"

	"codehand/server/config"
	"codehand/server/endpoint"
	"codehand/server/listen"
	"codehand/server/pipeline"
	"codehand/server/replies"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/team"
	"codehand/tools/sandbox"
)

// Stdio serves one client until its input ends, ctx ends, writing fails, or the parent process is gone; then it lets
// running calls finish for a while, cancels the rest and returns. Nothing but JSON-RPC lines is written to out. A
// reader that is blocked in in.Read is left behind. The error is that of in, if it is not its end, or *StateError.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	// Every session needs the journal, and a start that fails is better than calls that all do.
	if _, err := s.engines.Journals.Of(sessions.JournalOf(s.local.Who.ID)); err != nil {
		return &sessions.StateError{Err: err}
	}
	if r := team.NewRecorder(s.cfg, s.replies.Implementation.Version, s.replies.Log); r != nil {
		defer r.Close()
		s.past.Flush = r.Flush
		before := s.pipe.Record
		s.pipe.Summaries = true
		s.pipe.Record = func(c pipeline.Record) {
			r.Record(c)
			if before != nil {
				before(c)
			}
		}
	}
	return stdio.Serve(ctx, in, out, stdio.Options{
		Server: s.front(), Tenant: s.local, Key: s.names.Key, Links: true,
	}, stdio.Pipe{
		Grace: s.cfg.Stdio.EOFGrace, Watch: s.cfg.Stdio.ParentWatch, Log: s.replies.Log, Patience: s.patience,
	})
}

// front is what transports need of the server.
func (s *Server) front() stdio.Server {
	return stdio.Server{
		Serve: s.calls.Serve, Refuse: s.replies.Refuse, Unusable: replies.Unusable, Follow: s.notices.Hub.Connect,
		Hurry: func() { s.life.hurried.Store(true) }, RootsTime: s.calls.Waits.Roots,
		Reopens: func(client string) bool { return s.calls.Gate.Profiles.Of(client).Reopens },
	}
}

// HTTP serves on the listeners until ctx ends, then drains: calls that run may finish, streams are ended. It closes the
// listeners. The error is that of a listener; after a clean drain it is nil.
func (s *Server) HTTP(ctx context.Context, ls []listen.Listener) error {
	if s.team == nil {
		return errors.New("this server was not made to serve HTTP")
	}
	return s.team.Serve(ctx, ls, s.engines.Tools, endpoint.Options{
		Server: s.front(), HTTP: s.cfg.HTTP, Session: s.cfg.Session, Log: s.replies.Log, Versions: s.replies.Versions,
		Patience: s.patience,
		Records:  sessions.Records{Store: s.engines.Store, Log: s.replies.Log}, CheckHeaders: s.calls.Gate.CheckHeaders,
		Forget: s.sessions.End, ForgetAll: s.sessions.EndOf, Report: s.replies.Internal,
		Sweep: func() {
			s.sessions.DropIdle()
			s.keeps.Look()
		},
	})
}

// Confinement is how far commands of this process are confined. It waits until the machine was probed.
func (s *Server) Confinement() sandbox.Report { return s.local.Confinement("").Reported() }

// NoCommands says why the person who started this process can run no commands; "": they run.
func (s *Server) NoCommands() string { return s.local.Prefs.NoShell }

// Reload takes what the operator now says about principals, and reads the tokens again. With an error that part stays
// as it was.
func (s *Server) Reload(p config.Principals) error {
	if s.team == nil {
		return nil
	}
	return s.team.Reload(p)
}

// ReloadIssuers takes the issuers that the operator now names. With an error the old ones stay.
func (s *Server) ReloadIssuers(list []config.Issuer) error {
	if s.team == nil {
		return nil
	}
	return s.team.ReloadIssuers(list)
}

// ServeMetrics answers GET /metrics, and nothing else, to all that reach l, until ctx ends. It closes l. The error is
// that of the listener.
func (s *Server) ServeMetrics(ctx context.Context, l listen.Listener) error {
	if s.team == nil {
		return errors.New("this server was not made to serve HTTP")
	}
	return s.team.ServeMetrics(ctx, l)
}

package server

import (
	"context"
	"sync"

	"codehand/server/asking"
	"codehand/server/config"
	"codehand/server/live"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/sandbox"
	"codehand/tools/session"
)

// Reachable lets the page of this user (codehand page) see what waits and runs here, from the first call of a tool on,
// until end is called: before that there is nothing to see, and a start must cost nothing. The first call waits until a
// page that is open has seen the process, or its question would find no page. It comes before Stdio.
func (s *Server) Reachable(ctx context.Context) (end func()) {
	if !live.Available() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	over := make(chan struct{})
	begun, ended := false, false
	begin := func() {
		mu.Lock()
		defer mu.Unlock()
		if begun || ended {
			return
		}
		begun = true
		go func() {
			defer close(over)
			if err := live.Serve(ctx, s.engines.Dir, s.shownLive(), s.replies.Log); err != nil {
				s.replies.Log.Debug("the page of this user cannot reach this process", "error", err)
			}
		}()
		live.Await(ctx, s.engines.Dir, func() bool {
			_, open := s.calls.Desk.Page(s.local.Who.ID)
			return open || s.calls.Desk == nil || s.barsPage() != ""
		})
	}
	if s.calls.Desk != nil {
		s.calls.Desk.Start = func() string {
			if s.barsPage() != "" {
				return ""
			}
			return "codehand page"
		}
	}
	open := s.sessions.Build
	s.sessions.Build = func(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
		begin()
		return open(key, at)
	}
	return func() {
		cancel()
		mu.Lock()
		ended = true
		mu.Unlock()
		if begun {
			<-over
		}
	}
}

// shownLive is what a page sees of this process, and does here.
func (s *Server) shownLive() live.Process {
	return live.Process{
		Principal: s.local.Who.ID, Roots: s.local.Space.Whole(), Desk: s.calls.Desk, Bars: s.barsPage,
		Running: func(ctx context.Context) (all []live.RunningCommand) {
			for _, c := range s.sessions.Running(ctx) {
				all = append(all, live.RunningCommand{Session: asking.ShortName(c.Key), ID: c.ID, Command: c.Command,
					Cwd: c.Cwd, Since: c.Start, Background: c.Background})
			}
			return all
		},
		Stop: func(ctx context.Context, name, id string) (found bool, err error) {
			return s.sessions.StopCommand(ctx, id, sessionsNamed(name))
		},
		Rights: func(ctx context.Context, name string) ([]sessions.Rights, error) {
			return s.sessions.Rights(ctx, sessionsNamed(name))
		},
		SetRights: func(ctx context.Context, w live.Wish) error { return setRights(ctx, s.sessions, w) },
	}
}

// sessionsNamed finds the sessions of a short name.
func sessionsNamed(name string) func(session.Key) bool {
	return func(k session.Key) bool { return asking.ShortName(k) == name }
}

// setRights does what a person wants of the rights of a session.
func setRights(ctx context.Context, t *sessions.Table, w live.Wish) error {
	switch {
	case w.Add != nil:
		return t.AddRule(ctx, sessionsNamed(w.Session), *w.Add, w.By)
	case w.Take != nil:
		return t.TakeBack(ctx, sessionsNamed(w.Session), *w.Take)
	}
	return t.SetMode(ctx, sessionsNamed(w.Session), w.Mode)
}

// barsPage says why no answer from a page counts here: a command might give it. "": nothing bars it.
func (s *Server) barsPage() string {
	if s.NoCommands() != "" || s.cfg.Sandbox.Policy != config.SandboxOff &&
		s.Confinement().Level >= sandbox.LevelKernel {
		return ""
	}
	return "Commands are not confined there, so a command of an agent could answer in your place. Calls that need " +
		"you stay with the dialogs of the client."
}

package team

import (
	"context"

	"codehand/server/asking"
	"codehand/server/audit"
	"codehand/server/auth"
	"codehand/server/console"
	"codehand/server/sessions"
	"codehand/tools/session"
)

// pageActivity is the console.Activity of a team.
type pageActivity struct{ team *Team }

// Running is console.Activity.Running.
func (p pageActivity) Running(ctx context.Context, who auth.Principal) (all []console.RunningCommand, err error) {
	for _, c := range p.team.Behind.Commands.Running(ctx) {
		if c.Key.Principal != who.ID && !who.Admin {
			continue
		}
		all = append(all, console.RunningCommand{
			CommandID: console.CommandID{Session: asking.ShortName(c.Key), Job: c.ID}, Principal: c.Key.Principal,
			Text: c.Info.Command, Dir: c.Cwd, Since: c.Start, Background: c.Background,
		})
	}
	return all, nil
}

// Stop is console.Activity.Stop.
func (p pageActivity) Stop(ctx context.Context, who auth.Principal, id console.CommandID) error {
	owner := ""
	found, err := p.team.Behind.Commands.StopCommand(ctx, id.Job, func(k session.Key) bool {
		ours := (k.Principal == who.ID || who.Admin) && asking.ShortName(k) == id.Session
		if ours {
			owner = k.Principal
		}
		return ours
	})
	switch {
	case err != nil:
		return err
	case !found:
		return console.ErrNotRunning
	}
	p.team.Event("page.stop", map[string]any{"p": owner, "by": who.ID, "job": id.Job})
	return nil
}

// Calls is console.Activity.Calls.
func (p pageActivity) Calls(_ context.Context, who auth.Principal, q console.CallQuery) (console.Calls, error) {
	dir := AuditDir(p.team.o.Config, p.team.o.Dir)
	if dir == AuditOut {
		return console.Calls{Said: "The record of calls goes to standard output (audit.dir) and cannot be shown."}, nil
	}
	principal := who.ID
	if who.Admin {
		principal = ""
	}
	return console.Recorded(dir, principal, sessions.ByWorkspace, q)
}

// Stamp is console.Activity.Stamp.
func (p pageActivity) Stamp(context.Context, auth.Principal) string {
	return audit.Stamp(AuditDir(p.team.o.Config, p.team.o.Dir))
}

// Commands are the sessions of a server, as far as the page sees what runs in them. *sessions.Table are some.
type Commands interface {
	Running(ctx context.Context) []sessions.RunningCommand
	StopCommand(ctx context.Context, id string, of func(session.Key) bool) (found bool, err error)
}

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
		principal = q.Of
	}
	return console.Recorded(dir, principal, sessions.ByWorkspace, q)
}

// Stamp is console.Activity.Stamp.
func (p pageActivity) Stamp(context.Context, auth.Principal) string {
	return audit.Stamp(AuditDir(p.team.o.Config, p.team.o.Dir))
}

// keyed finds the session that a person means, if that person may change it.
func keyed(who auth.Principal, id console.SessionID) func(session.Key) bool {
	return func(k session.Key) bool {
		return k.Principal == id.Principal && (k.Principal == who.ID || who.Admin) && asking.ShortName(k) == id.Session
	}
}

// Rights is console.Activity.Rights.
func (p pageActivity) Rights(ctx context.Context, who auth.Principal, name string) ([]sessions.Rights, error) {
	return p.team.Behind.Commands.Rights(ctx, func(k session.Key) bool {
		return (k.Principal == who.ID || who.Admin) && asking.ShortName(k) == name
	})
}

// SetMode is console.Activity.SetMode.
func (p pageActivity) SetMode(ctx context.Context, who auth.Principal, id console.SessionID, mode string) error {
	err := p.team.Behind.Commands.SetMode(ctx, keyed(who, id), mode)
	return p.changed(err, "page.mode", map[string]any{"p": id.Principal, "by": who.ID, "session": id.Session,
		"mode": mode})
}

// AddRule is console.Activity.AddRule.
func (p pageActivity) AddRule(ctx context.Context, who auth.Principal, id console.SessionID,
	r sessions.NamedRule) error {
	err := p.team.Behind.Commands.AddRule(ctx, keyed(who, id), r, who.ID)
	return p.changed(err, "page.rule", map[string]any{"p": id.Principal, "by": who.ID, "session": id.Session,
		"list": r.List, "rule": r.Rule})
}

// TakeBack is console.Activity.TakeBack.
func (p pageActivity) TakeBack(ctx context.Context, who auth.Principal, id console.SessionID,
	r sessions.NamedRule) error {
	err := p.team.Behind.Commands.TakeBack(ctx, keyed(who, id), r)
	return p.changed(err, "page.takeback", map[string]any{"p": id.Principal, "by": who.ID, "session": id.Session,
		"list": r.List, "rule": r.Rule})
}

// changed takes a change of rights into the audit.
func (p pageActivity) changed(err error, event string, fields map[string]any) error {
	if err == nil {
		p.team.Event(event, fields)
	}
	return err
}

// Commands are the sessions of a server, as far as the page sees what runs in them. *sessions.Table are some.
type Commands interface {
	Running(ctx context.Context) []sessions.RunningCommand
	StopCommand(ctx context.Context, id string, of func(session.Key) bool) (found bool, err error)
	Rights(ctx context.Context, of func(session.Key) bool) ([]sessions.Rights, error)
	SetMode(ctx context.Context, of func(session.Key) bool, mode string) error
	AddRule(ctx context.Context, of func(session.Key) bool, r sessions.NamedRule, by string) error
	TakeBack(ctx context.Context, of func(session.Key) bool, r sessions.NamedRule) error
}

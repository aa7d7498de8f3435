// Package recall is what the server has on record of calls and sessions, for tools (tools/past).
//
// It reads the record of calls, what sessions left in the Store or on disk, and what runs and waits in this process. It
// writes nothing. Nobody gets what is another principal's, and no session what one with another seal remembers or ran;
// for the person on the page the seals do not count.
package recall

import (
	"context"
	"strings"

	"codehand/server/asking"
	"codehand/server/audit"
	"codehand/server/sessions"
	"codehand/tools/past"
	"codehand/tools/secrets"
	"codehand/tools/session"
)

// Sources are the past.Records of a process. Their fields are set before the first call.
type Sources struct {
	Dir   string // of the record of calls; "": there is none, and Why says why
	Why   string
	Flush func(context.Context)            // waits until calls that are over are in Dir; nil: they are
	Cells func(session.Key) session.Memory // what sessions remember in the Store
	State string                           // directory in which sessions on stdio leave that, too; "": none does
	Table *sessions.Table                  // of the sessions in use
	Desk  *asking.Desk                     // nil: no call waits there
}

var _ past.Records = (*Sources)(nil)

// Off is past.Records.Off.
func (r *Sources) Off() string {
	if r.Dir == "" {
		return r.Why
	}
	return ""
}

// may says whether who sees what a session of the same principal remembers and ran.
func may(who past.Who, name string) bool {
	return who.Session == sessions.Page || sessions.SealOf(who.Session) == sessions.SealOf(name)
}

// Calls is past.Records.Calls.
func (r *Sources) Calls(ctx context.Context, who past.Who, q past.Wanted) (calls []past.Recorded, more bool,
	err error) {
	if r.Dir == "" || who.Principal == "" {
		return nil, false, nil
	}
	if r.Flush != nil {
		r.Flush(ctx)
	}
	list, more, err := audit.Recent(r.Dir, audit.Query{Principal: who.Principal, Limit: q.Limit,
		Fits: func(c audit.PastCall) bool {
			return c.Session != sessions.Page && c.Code != "PENDING" && c.Principal == who.Principal &&
				may(who, c.Session) && (q.In == nil || c.Dir != "" && q.In(c.Dir))
		}})
	for _, c := range list {
		one := past.Recorded{
			Time: c.Time, Session: session.OwnerOf(c.Session), Client: c.Client, Tool: c.Tool,
			Code: c.Code, Exit: c.Exit, Job: c.Job, Files: c.Files, Open: c.Open,
		}
		one.Command, _ = strings.CutPrefix(c.Summary, commandMark)
		if one.Command == c.Summary {
			one.Command = ""
		}
		calls = append(calls, one)
	}
	return calls, more, err
}

// commandMark begins the summary of a call that runs a command.
const commandMark = "command="

// Left is past.Records.Left.
func (r *Sources) Left(ctx context.Context, who past.Who, name string) (past.Left, error) {
	if who.Principal == "" || !may(who, name) {
		return past.Left{}, nil
	}
	key := session.Key{Principal: who.Principal, Session: name}
	left, err := sessions.LeftIn(ctx, r.Cells(key))
	if err == nil && r.State != "" && left.Empty() {
		left, err = sessions.LeftOnDisk(r.State, key)
	}
	return past.Left(left), err
}

// Running is past.Records.Running.
func (r *Sources) Running(ctx context.Context, who past.Who) (all []past.RunningCommand) {
	for _, c := range r.Table.Running(ctx) {
		if c.Key.Principal == who.Principal && may(who, c.Key.Session) && !c.Inside {
			one := past.RunningCommand{Session: session.OwnerOf(c.Key.Session), Job: c.ID,
				Text: secrets.Redact(c.Info.Command), Since: c.Start}
			if len(c.Roots) > 0 {
				one.Root = c.Roots[0]
			}
			all = append(all, one)
		}
	}
	return all
}

// Waiting is past.Records.Waiting.
func (r *Sources) Waiting(who past.Who) (all []past.Waiting) {
	if r.Desk == nil || who.Principal == "" {
		return nil
	}
	for _, w := range r.Desk.Waits(who.Principal) {
		all = append(all, past.Waiting{Session: w.Session, Tool: w.Tool, Since: w.Since})
	}
	return all
}

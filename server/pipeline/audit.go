package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A Record is one call for the audit: who, what, why it was allowed, what became of it. It holds no contents and no
// secrets.
type Record struct {
	Started   bool // the call is about to run; else it is done
	Announced bool // there was a record with Started of this call; nothing in it is said twice

	Time          time.Time // the call entered the pipeline
	Call          string
	Ref           string // of an internal error; else ""
	Key           session.Key
	Dir           string // in which the session worked; "": it has none
	Client        string
	ClientVersion string
	From          From

	Tool     string
	Via      string // the alias or the dispatcher that was called
	Digest   string // SHA-256 of the input that counted, hex; "": it was not valid
	Summary  Summary
	ReadOnly bool
	Mode     string

	Verdict  string // deny, ask, allow; "": the call did not come so far
	Rule     string // that gave it; "": the mode's default
	Origin   string
	Asked    bool   // a person answered
	Decision string // what became of the verdict: one of the words below; "": the call did not come so far
	By       string // who or what decided: one of the words below; "": no decision yet

	Code      string // "ok", else that of the refusal; PENDING while a person is asked
	Cancelled bool
	Stages    Stages
	Took      time.Duration // the whole call; 0 while Started
	Runes     int           // of the text shown
	Kept      string        // path of the whole, if it was cut
	Files     []tool.FileChange
	FilesCut  bool              // there are more than Files, or they are not known
	Exit      *int              // of a command that has ended; nil: there is none
	Job       string            // id of the background command that the call was about; "": none
	Sandbox   *tool.Confinement // of a command; nil: there was none
}

// What became of a call's verdict.
const (
	allowed      = "allow"
	askAllowed   = "ask.allow"
	askDenied    = "ask.deny" // a person did, or there was no person to ask
	denied       = "deny"
	planDenied   = "plan"  // mode plan
	scopeDenied  = "scope" // server, before the pipeline
	quotaDenied  = "quota" // likewise
	stateUnknown = "state" // the Store did not answer
	auditFailed  = "audit" // the call could not be recorded
	pausedNow    = "pause" // a person has paused all calls
)

// Who decided.
const (
	byConfig  = "config" // a rule, a scope, a quota, a setting
	byUser    = "user"
	bySession = "session" // a rule that a person allowed for it, or a skill lends
	byClient  = "client"  // its own dialog, or that it has none
	byMode    = "mode"
	byTool    = "tool"
	byHook    = "hook"
)

// opShell is the Op of a FileChange that a command made.
const opShell = "shell"

// Stages says how long each stage took.
type Stages struct {
	Validate, Plan, Before, Permit, Gate, Run, Bound, After time.Duration
}

// Codes of a Record beside those of refusals.
const (
	codeOK      = "ok"
	codePending = "PENDING"
)

// decided notes the decision. The code that settles an ask notes its outcome.
func (r *Record) decided(d permission.Decision, about permission.Request) {
	switch d.Verdict {
	case permission.Allow:
		r.Verdict, r.Decision = "allow", allowed
	case permission.Ask:
		r.Verdict = "ask"
	default:
		r.Verdict, r.Decision = "deny", denied
	}
	r.Rule, r.Origin, r.By = d.Rule, d.Origin, decider(d, about)
}

// decider says what a decision goes back to.
func decider(d permission.Decision, about permission.Request) string {
	own := about.Own == permission.Ask || about.Own == permission.Allow
	switch {
	case permission.OfSession(d.Origin):
		return bySession
	case d.Rule != "", d.Hard && about.Own != permission.Ask && !slices.Contains(about.Opinions, permission.Ask):
		return byConfig
	case d.Hard && about.Own == permission.Ask, d.Verdict == permission.Deny && !own:
		return byTool
	case d.Hard, d.Verdict == permission.Allow && about.Mode != permission.Bypass &&
		slices.Contains(about.Opinions, permission.Allow):
		return byHook
	}
	return byMode
}

// stopped notes why a call ended before its decision, or in spite of it.
func (r *Record) stopped(code tool.Code) {
	switch {
	case code == tool.AuditUnavailable:
		r.Decision, r.By = auditFailed, byConfig
	case code == tool.Paused:
		r.Decision, r.By = pausedNow, byUser
	case r.Verdict != "":
	case code == tool.PlanMode:
		r.Decision, r.By = planDenied, byMode
	case code == tool.HookBlocked:
		r.Decision, r.By = denied, byHook
	case code == tool.ToolDisabled:
		r.Decision, r.By = denied, byConfig
	case code == tool.ScopeMissing:
		r.Decision, r.By = scopeDenied, byConfig
	case code == tool.RateLimited:
		r.Decision, r.By = quotaDenied, byConfig
	case code == tool.StateUnavailable:
		r.Decision = stateUnknown
	}
}

// A recording is what is noted of one call, from its arrival to its end, and where that goes.
type recording struct {
	Record
	pipe    *Pipeline
	changed []tool.FileChange // by the command that was run
	bounded bool              // stage 7 was reached
}

// timed runs one stage and notes how long it took. time.Since reads one clock, time.Now two.
func (r *recording) timed(d *time.Duration, stage func() error) error {
	start := time.Since(r.Time)
	defer func() { *d += time.Since(r.Time) - start }()
	return stage()
}

// ready refuses the call while the audit cannot be written.
func (r *recording) ready() error {
	if r.pipe.AuditReady == nil {
		return nil
	}
	return auditRefusal(guarded(r.pipe.AuditReady))
}

// announce writes down, before a call that may change something, that it is about to run: after a crash it shows what
// may have happened. A reader only learns whether it could be recorded.
func (r *recording) announce() error {
	if r.pipe.Audit == nil || r.ReadOnly {
		return r.ready()
	}
	begun := r.Record
	begun.Started = true
	err := guarded(func() error { return r.pipe.Audit(begun) })
	r.Announced = err == nil
	return auditRefusal(err)
}

// guarded runs a listener. One that panics must not take the call with it.
func guarded(listen func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return listen()
}

// auditRefusal refuses a call that cannot be recorded. The model gets what the system said, without the path.
func auditRefusal(err error) error {
	if err == nil {
		return nil
	}
	cause := "the server's log says why"
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		cause = errno.Error()
	}
	return &tool.Refusal{
		Code:  tool.AuditUnavailable,
		Text:  "The audit log cannot be written: " + cause + ". Nothing was done. Tell the operator.",
		Cause: err,
	}
}

// shellLook is how long a look at the files that a command may have changed may take. One of them can be very large.
const shellLook = 2 * time.Second

// A seen is what the session's files were before a command.
type seen struct {
	files *filestate.Ledger
	stale map[string]tool.FileChange // by path, of those that were not what the session has seen
	whole bool                       // all were looked at
}

// beforeShell looks at the session's files before a command runs; nil: the call is no command, or there is no audit.
func (c *call) beforeShell(ctx context.Context) *seen {
	if c.pipe.Audit == nil && !c.pipe.wants(hooks.FileChanged) || c.state.Files == nil || c.record.ReadOnly ||
		!slices.ContainsFunc(c.bound.Targets, func(t permission.Target) bool { return t.Kind == permission.Command }) {
		return nil
	}
	s := look(ctx, c.state.Files)
	return &s
}

func look(ctx context.Context, files *filestate.Ledger) seen {
	ctx, cancel := context.WithTimeout(ctx, shellLook)
	defer cancel()
	stale, err := files.Changed(ctx)
	s := seen{files: files, stale: map[string]tool.FileChange{}, whole: err == nil}
	for _, e := range stale {
		change := tool.FileChange{Path: e.Path, Op: opShell, Did: "change", SumBefore: e.Sums.Before,
			SumAfter: e.Sums.After}
		if e.Now == "" {
			change.Did = "delete"
		}
		s.stale[e.Path] = change
	}
	return s
}

// after notes the files of the session that a command has changed. It runs before the gate opens, so that no other call
// of ours is blamed on the command. before nil: there is nothing to note.
func (before *seen) after(ctx context.Context, r *recording) {
	if before == nil {
		return
	}
	now := look(context.WithoutCancel(ctx), before.files)
	for _, path := range slices.Sorted(maps.Keys(now.stale)) {
		change := now.stale[path]
		if was, ok := before.stale[path]; ok {
			if was.SumAfter == change.SumAfter {
				continue
			}
			change.SumBefore = was.SumAfter
		}
		r.changed = append(r.changed, change)
	}
	r.FilesCut = !before.whole || !now.whole
}

// fault turns a panic, and any error that is not for the model, into an internal error, and writes it to the log under
// its reference.
func (r *recording) fault(panicked any, err error) error {
	_, refused := refusal(err)
	switch {
	case panicked != nil:
		e := &InternalError{Ref: newRef(), Panic: true, Err: fmt.Errorf("panic: %v", panicked)}
		r.pipe.log().Error("internal error", "ref", e.Ref, "tool", r.Tool, "call", r.Call, "panic", panicked,
			"stack", string(debug.Stack()))
		r.Ref = e.Ref
		return e
	case err == nil, refused, errors.Is(err, tool.ErrPending):
		return err
	}
	e := &InternalError{Ref: newRef(), Err: err}
	r.pipe.log().Error("internal error", "ref", e.Ref, "tool", r.Tool, "call", r.Call, "error", err)
	r.Ref = e.Ref
	return e
}

// finish is stage 10, and fills in what only the end knows. It runs whatever happened, and returns the error that the
// caller gets: of a refusal a copy, since a tool may return the same one again.
func (c *call) finish(ctx context.Context, result *tool.Result, err error) error {
	c.record.Cancelled = ctx.Err() != nil
	o := &ran{call: c, outcome: newOutcome(result, err)}
	if o.refusal != nil && !c.record.bounded { // it may repeat what a client, a hook or a person wrote
		o.bind(context.WithoutCancel(ctx))
	}
	return c.record.finish(ctx, &o.outcome, err)
}

// finish fills in what became of the call, and hands the record over.
func (r *recording) finish(ctx context.Context, o *outcome, err error) error {
	switch {
	case o.refusal != nil:
		r.Code = string(o.refusal.Code)
		r.stopped(o.refusal.Code)
		r.Runes = utf8.RuneCountInString(o.refusal.Error())
		err = o.refusal
	case errors.Is(err, tool.ErrPending):
		r.Code = codePending
	case err != nil:
		r.Code = string(tool.Internal)
	default:
		r.Code = cmp.Or(string(o.result.Failed), codeOK)
		r.Runes = utf8.RuneCountInString(o.result.Text)
	}
	m := o.meta()
	r.Files = slices.Concat(m.Files, r.byCommand(m))
	r.command(m)
	if m.Kept != nil {
		r.Kept = m.Kept.Path
	}
	r.Took = time.Since(r.Time)
	m.Millis = r.Took.Milliseconds()
	if r.Verdict != "" {
		m.Decision = &tool.Decided{Verdict: r.Verdict, Rule: r.Rule, Asked: r.Asked}
	}
	r.tell()
	if o.refusal != nil {
		r.logRefusal(ctx, o.refusal) // after its record, which a log that stands still must not keep back
	}
	return err
}

// logRefusal leaves a line for the operator, who alone sees the cause.
func (r *recording) logRefusal(ctx context.Context, refusal *tool.Refusal) {
	level := slog.LevelInfo
	if refusal.Code == tool.RateLimited {
		level = slog.LevelDebug // a client that floods the server must not flood its log
	}
	attrs := []any{"tool", r.Tool, "principal", r.Key.Principal, "call", r.Call, "code", r.Code}
	if refusal.Cause != nil {
		attrs = append(attrs, "cause", refusal.Cause)
	}
	r.pipe.log().Log(ctx, level, "refused", attrs...)
}

// byCommand are the files that the command of a call changed: those of the git work tree, and those that the session
// had seen elsewhere.
func (r *recording) byCommand(m *tool.Meta) []tool.FileChange {
	all := slices.Clone(m.Changed)
	r.FilesCut = r.FilesCut || m.ChangedCut
	at := make(map[string]int, len(all))
	for i := range all {
		all[i].Did, all[i].Op = all[i].Op, opShell
		at[all[i].Path] = i
	}
	for _, seen := range r.changed {
		i, known := at[seen.Path]
		switch {
		case !known:
			all = append(all, seen)
		case all[i].SumBefore == "" && all[i].SumAfter == "":
			all[i].SumBefore, all[i].SumAfter = seen.SumBefore, seen.SumAfter
		}
	}
	return all
}

// command notes what a tool says of a command and of a job.
func (r *Record) command(m *tool.Meta) {
	r.Sandbox = m.Sandbox
	if m.Sandbox != nil {
		var d struct {
			Exit *int `json:"exitCode"`
		}
		if json.Unmarshal(m.Data, &d) == nil {
			r.Exit = d.Exit
		}
	}
	if j := m.Job; j != nil {
		r.Job, r.Exit = j.ID, nil
		if j.State == "completed" || j.State == "failed" {
			r.Exit = &j.Exit
		}
	}
}

// tell hands the record over. The call is over whatever comes of it, so what goes wrong is only logged.
func (r *recording) tell() {
	if r.pipe.Audit != nil {
		if err := guarded(func() error { return r.pipe.Audit(r.Record) }); err != nil {
			r.pipe.log().Error("audit of a call", "call", r.Call, "tool", r.Tool, "error", err)
		}
	}
	if r.pipe.Record != nil {
		if err := guarded(func() error { r.pipe.Record(r.Record); return nil }); err != nil {
			r.pipe.log().Error("record of a call", "call", r.Call, "error", err)
		}
	}
}

func newRef() string { return strings.ToUpper(randomText(8)) }

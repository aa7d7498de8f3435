// Package pipeline runs every call, from its raw input to its result.
//
// A call passes ten stages in a fixed order: validate the input, check plan mode, run the operator's hooks, decide
// about permission, wait at the gate, run the tool, shorten the result, run hooks again, leave the gate, record. Each
// stage is one function, and Visit.Call reads from top to bottom: safety depends on its order. The
// pipeline knows no tool by name and no MCP, and keeps nothing of a session but its place in the queue.
package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"codehand/tools/agent"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A Pipeline runs calls. Its fields are set once, before the first call. It is safe for concurrent use.
type Pipeline struct {
	// AskFallback says what becomes of a call that a mode would ask about: with AskClient it runs, because the
	// client's own approval dialog is the person. Anything else: a person is asked here, or the call is refused.
	AskFallback string

	Hooks Hooks // nil: none configured
	// Classify asks the operator's classifier about a call in mode auto; what it says but Allow and Deny asks a person.
	// nil: there is none.
	Classify func(context.Context, hooks.Event) (permission.Verdict, error)

	Always   *Always      // keeps what a person allows for good; nil: that is not offered
	UserFile string       // the user's file of settings, as refusals name it; "": there is none
	Parallel int          // readers of one session at the same time, 1 to 10; else 10
	Record   func(Record) // metrics; must not block; nil: not called

	Summaries bool // also a Record that no Audit gets says what the call is about

	Log *slog.Logger // nil: nothing is logged

	// Audit writes a record durably: of every call when it is done, and before Run of one that is not read-only, then
	// with Started. If a call cannot be recorded before it runs, it is refused. It is called from many goroutines. nil:
	// there is no audit.
	Audit func(Record) error
	// AuditReady says why no call may be made now: Audit failed, and has not worked since. It is asked twice a call, so
	// it must be cheap. nil: calls go on without audit.
	AuditReady func() error

	// Paused says why the calls of a principal wait now; nil: they do not. It is asked twice a call, so it must be
	// cheap. nil: no person can pause calls.
	Paused func(principal string) *Pause
	// PauseTime is how long a call waits for the end of a pause if its client shows how far it is.
	PauseTime time.Duration

	gates gates
	calls sync.Map // ids of those that are not answered yet, and of those that they made
}

// Runs says whether a call of that id has not been answered yet, or was made by such a call: its answer may still name
// what it kept.
func (p *Pipeline) Runs(call string) bool {
	_, ok := p.calls.Load(call)
	return ok
}

// AskClient is the AskFallback that leaves default asks to the client's own dialog.
const AskClient = "client"

// An Asking is a question with what must be kept until its answer comes.
type Asking struct {
	Call     string // id of this visit
	Tool     string
	Digest   string // SHA-256 of Call.Input, hex, as the client sent it: before any hook changed it
	Question tool.Question
	Before   json.RawMessage // what stages 3 and 4 have found so far
}

// An Admission is what server said of a call when it was its turn among those of its principal.
type Admission struct {
	Refused *tool.Refusal // what it refuses the call for: a scope, a quota; the call is recorded and not run
	// Located is what the session held when the call was located, for the first look at plan mode, which follows at
	// once. All further ones read the Store, and so does that one if it is zero.
	Located session.Snapshot
}

// log is where the pipeline writes; never nil.
func (p *Pipeline) log() *slog.Logger {
	if p.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Log
}

// An Arrival is what the transport knows about a call beside its input.
type Arrival struct {
	Admission
	Progress tool.Progress // nil: no progress is sent
	Token    bool          // the client gave a progress token, so it can be kept waiting
	Via      string        // the alias or the dispatcher that was called, for the record; "": the tool's own name
	From     From          // for the record
	Lost     func() bool   // says that the client left and no longer reads the result; nil: it does not
	Reply    *Reply        // the answer to an earlier Asking that this request brings, verified by server; nil: none

	// Ask puts a question to a person, through the client or on the Page; it goes up to server and may return
	// tool.ErrPending. nil: no person can be asked.
	Ask func(context.Context, Asking) (tool.Answer, error)

	// Page is where a person answers what the client cannot ask. The zero value: nowhere.
	Page WebPage

	// Teach says what helps a client whose input does not fit; "": nothing. It is asked at most once, and only then.
	// nil: nothing.
	Teach func(context.Context) string

	// Begin is told that the call is about to run, if it is not read-only, once. An error is a refusal, and it does not
	// run. nil: nobody is.
	Begin func(context.Context, Begun) error

	// Find finds a tool for a call that this one makes, by its name. It calls arrive, which takes the call's ticket at
	// the gate, in one step with taking its places in other queues. ok is false if there is no such tool. nil: a call
	// makes no other.
	Find func(name string, arrive func()) (found Inner, ok bool)

	News News // nil: there is never any

	// Hands open sessions for sub-agents that an Ungated call starts; nil: it starts none.
	Hands agent.Hands
	// Sample is Env.Sample; nil: the client's model may not be asked.
	Sample func(ctx context.Context, system, prompt string, maxTokens int) (string, error)
	// Elicit is Env.Elicit; nil: nobody can be asked.
	Elicit func(ctx context.Context, message string, schema json.RawMessage) (tool.Elicited, error)
	// Library is Env.Library; nil: there is none.
	Library tool.Library
	// Agent is the sub-agent that makes the call: the client's own dialog has not shown it to a person.
	Agent Agent

	inside *inside // a call that another one makes; nil: it comes from a client
}

// A Begun is a call that is about to run.
type Begun struct {
	Call       string // id of this visit: what it changes has it in the journal
	Tool       string
	Edits      bool // it changes files, and nothing else
	Idempotent bool // twice is the same as once
}

// A WebPage is where people answer questions about calls of clients that cannot ask. It does not change while a call is
// served, or the person would have seen another question than the one that counts.
type WebPage struct {
	URL  string // "": there is none
	Open bool   // Ask may put a question there
	// Start says with which command the user opens one, if there is none; "" or nil: a page could not answer here.
	Start func() string
}

// An Agent is a sub-agent. The zero value is none: a client calls itself.
type Agent struct{ ID, Type string }

// InProcess is From.Transport of a call that no client made, but our own command line.
const InProcess = "call"

// From is where a call came from, for the record, and whether its client can have a dialog that counts.
type From struct {
	Auth      string // none, token:<id>
	Transport string // stdio, http, sse, call
	Era       string // legacy, modern
	IP        string // of the client; "": none
	Trace     string // trace id; "": none
	// a web page that no operator listed sent it: no person can be taken to have seen it
	Page bool
}

// A Reply counts only if its Digest is that of this call's Input.
type Reply struct {
	Digest string
	Answer tool.Answer
	Before json.RawMessage
}

// An InternalError is a fault of ours or of the machine's. The model gets the reference; Err and, after a panic, the
// stack are in the log under it.
type InternalError struct {
	Ref   string // 8 characters
	Panic bool
	Err   error
}

// Error names only the reference, because the cause may hold anything.
func (e *InternalError) Error() string { return "internal error, reference " + e.Ref }

// Unwrap returns the cause.
func (e *InternalError) Unwrap() error { return e.Err }

// A call is the working state of one Visit.Call until it has run. Then it is part of a ran.
type call struct {
	pipe     *Pipeline
	visit    *Visit
	state    *session.State
	tool     tool.Tool
	arrival  Arrival
	progress tool.Progress

	bound    tool.Call
	mode     permission.Mode
	planFile bool                // in plan mode: the call touches the plan file and nothing else
	known    *permission.Request // of the bound input, when it was last looked at; nil: not yet
	digest   string              // of the input as the client sent it
	found    found               // by stages 3 and 4, now or before the person's answer
	answer   tool.Answer
	record   recording
}

// Call runs the call. It returns a Result, a *tool.Refusal, tool.ErrPending or an *InternalError, and never panics.
// After ErrPending it may be called again: a legacy client is asked while its call waits, and the call runs again from
// the top.
func (v *Visit) Call(ctx context.Context, t tool.Tool, raw json.RawMessage, a Arrival) (result tool.Result, err error) {
	c := v.newCall(t, a)
	v.begin()
	defer func() {
		err = c.record.fault(recover(), err)
		v.end()
		err = c.finish(ctx, &result, err)
	}()

	if a.Refused != nil {
		return result, a.Refused
	}
	if err := c.record.ready(); err != nil {
		return result, err
	}
	if err := c.record.timed(&c.record.Stages.Validate, func() error { return c.validate(ctx, raw) }); err != nil {
		return result, err
	}
	if a.Progress != nil && c.bound.Activity != "" {
		shown, _ := results.Show(c.bound.Activity)
		c.progress(0, 0, shown)
	}
	if _, err := resumed(ctx, c); err != nil {
		return result, err
	}
	if err := c.record.timed(&c.record.Stages.Plan, func() error { return c.plan(ctx) }); err != nil {
		return result, err
	}
	if err := c.record.timed(&c.record.Stages.Before, func() error { return c.before(ctx) }); err != nil {
		return result, err
	}
	if err := c.record.timed(&c.record.Stages.Permit, func() error { return c.denied(c.permit(ctx)) }); err != nil {
		return result, err
	}
	if err := c.record.timed(&c.record.Stages.Gate, func() error { return c.enter(ctx) }); err != nil {
		return result, err
	}
	if err := again(ctx, c); err != nil {
		return result, err
	}
	if err := c.record.announce(); err != nil {
		return result, err
	}
	if err := begins(ctx, c); err != nil {
		return result, err
	}
	c.tellFound(ctx)
	shell := c.beforeShell(ctx)
	err = c.record.timed(&c.record.Stages.Run, func() error { result, err = c.run(ctx); return err })
	shell.after(ctx, &c.record)
	if _, ok := refusal(err); err != nil && !ok {
		return result, err
	}

	// From here on the work is done, and a cancel must not lose what it did.
	late := context.WithoutCancel(ctx)
	text := result.Text
	r := &ran{call: c, outcome: newOutcome(&result, err)}
	// Looked at late, since the client may leave during hooks, and deferred, since hooks may panic.
	defer r.unseen(late)
	if !r.failed() {
		r.lend(late)
	}
	_ = c.record.timed(&c.record.Stages.Bound, func() error { r.bind(late); return nil })
	r.tellChanged()
	own := *r.text()
	_ = c.record.timed(&c.record.Stages.After, func() error { r.after(late); return nil })
	if ctx.Err() == nil { // no client may be left to read the result of a cancelled call
		r.paged = r.paged || own != *r.text() // what hooks said must not be cut away again
		a.News.add(late, r)
	}
	r.count()
	r.saw(late, text)
	return result, r.err()
}

func (v *Visit) newCall(t tool.Tool, a Arrival) *call {
	state := *v.state
	state.Results = v.shelf
	c := &call{pipe: v.pipe, visit: v, state: &state, tool: t, arrival: a, progress: a.Progress}
	if c.progress == nil {
		c.progress = func(float64, float64, string) {}
	}
	c.record = recording{pipe: v.pipe, Record: Record{
		Time: time.Now(), Call: v.id, Key: v.state.Key, Client: v.state.Client.Name,
		ClientVersion: v.state.Client.Version, Tool: t.Spec.Name, Via: a.Via, From: a.From,
	}}
	if v.state.Space != nil {
		c.record.Dir = v.state.Space.Cwd()
	}
	return c
}

// validate is stage 1: raw JSON becomes a Call.
func (c *call) validate(ctx context.Context, raw json.RawMessage) error {
	if reason := c.tool.Unavailable(c.state); reason != "" {
		return tool.Refuse(tool.ToolDisabled, "%s is not available: %s", c.tool.Spec.Name, reason)
	}
	if err := c.take(ctx, raw); err != nil {
		return taught(ctx, c.arrival.Teach, err)
	}
	c.digest = c.record.Digest
	if c.bound.Traits.Ungated {
		c.visit.stepAside() // it takes no turn, so no other call waits for it
	}
	c.recall()
	return interrupted(ctx)
}

// taught adds what the client may need to know to the refusal of its input.
func taught(ctx context.Context, teach func(context.Context) string, err error) error {
	r, ok := refusal(err)
	if !ok || r.Code != tool.InputInvalid || teach == nil {
		return err
	}
	text := teach(ctx)
	if text == "" {
		return err
	}
	told := *r
	told.Text += "\n" + text
	return &told
}

// take binds an input, the client's or a hook's.
func (c *call) take(ctx context.Context, raw json.RawMessage) error {
	bound, err := c.tool.BindWithin(ctx, c.state, raw)
	if err != nil && ctx.Err() != nil {
		if _, ok := refusal(err); !ok {
			return interrupted(ctx)
		}
	}
	if err != nil {
		return err
	}
	c.bound, c.known = bound, nil
	c.record.Digest = digest(bound.Input)
	c.record.ReadOnly = bound.Traits.ReadOnly
	if c.pipe.Audit != nil || c.pipe.Summaries {
		c.record.Summary = summarize(&c.bound)
	}
	return nil
}

// begins tells Arrival.Begin that a call runs now.
func begins(ctx context.Context, c *call) error {
	if c.arrival.Begin == nil || c.bound.Traits.ReadOnly {
		return nil
	}
	if err := interrupted(ctx); err != nil {
		return err
	}
	spec := &c.tool.Spec
	return c.arrival.Begin(ctx, Begun{Call: c.visit.id, Tool: spec.Name,
		Edits: spec.Family == permission.FamilyEdit, Idempotent: c.bound.Traits.Idempotent})
}

// run is stage 6.
func (c *call) run(ctx context.Context) (tool.Result, error) {
	if err := interrupted(ctx); err != nil {
		return tool.Result{}, err
	}
	if c.bound.Spec.Scope == tool.ScopeShell && !c.bound.Traits.ReadOnly {
		c.visit.commanded = true
	}
	env := tool.Env{
		State: c.state, CallID: c.visit.id, Limit: limitOf(c.bound.Spec.MaxRunes, c.state.Client),
		Answer: c.answer, Progress: c.progress, Inner: c.arrival.inside != nil,
		Library: c.arrival.Library,
	}
	if c.arrival.inside == nil {
		env.Sample, env.Elicit = c.arrival.Sample, c.arrival.Elicit
	}
	if c.mayCall() {
		env.Call = c.inner
		env.Hands = c.arrival.Hands
	}
	if !c.arrival.Token {
		env.AnswerBy = c.visit.arrived.Add(waitUnheard)
		if least := time.Now().Add(leastRunning); env.AnswerBy.Before(least) {
			env.AnswerBy = least
		}
	}
	result, err := c.bound.Run(ctx, env)
	err = toldDenied(c, err)
	if gone := ctx.Err(); gone != nil && (errors.Is(err, gone) || errors.Is(err, context.Cause(ctx))) {
		if _, ok := refusal(err); ok {
			return result, err // it says so itself, with what it has
		}
		return result, &tool.Refusal{Code: tool.Interrupted, Text: interruptedText, Cause: err}
	}
	return result, err
}

// limitOf is how many runes of one result a client is shown of a tool whose Spec.MaxRunes is n.
func limitOf(n int, client session.Client) int {
	if n <= 0 {
		n = tool.DefaultMaxRunes
	}
	if m := client.MaxRunes; m > 0 {
		n = min(n, m)
	}
	return n
}

package calls

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/answers"
	"codehand/server/asking"
	"codehand/server/jsonrpc"
	"codehand/server/mcpgo"
	"codehand/server/once"
	"codehand/server/pipeline"
	"codehand/server/progress"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/toolset"
	"codehand/tools/guidance"
	"codehand/tools/language"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A round is one run of a call through the pipeline. A call has another one when a legacy client answers its question.
type round struct {
	number int              // from 0
	token  string           // names the question that said answers; "": none does
	said   *asking.Elicited // the answer; nil: none came
	silent bool             // the person was asked and did not answer: there is no further question
	// likewise, because the server stops
	stopped bool
	asks    *asking.Question // what this round wants to know
	onPage  bool             // a person is asked that on the page, or said it there
	put     pipeline.Asking  // what asks is about, if onPage
}

// A toolCall is the turn of a call of one of our tools. mcp-go never sees it: it would decode the message several
// times, and nothing of it depends on mcp-go.
type toolCall struct {
	*turn
	client session.Client   // who calls
	once   *once.Attempt    // of a call that its client may repeat; nil: it may not
	note   tool.Progress    // nil: the client gave no token
	page   pipeline.WebPage // where a person answers what this client cannot ask; the same in all rounds
	barred *tool.Refusal    // nobody has let its chat work; nil: it may
}

// make runs a call, with as many rounds as a legacy client is asked questions.
func (t *turn) make(ctx context.Context, attempt *once.Attempt) request.Answer {
	client, bad := t.h.Gate.ClientOf(&t.Turn)
	if bad != nil {
		return replies.Failed(bad)
	}
	note, stop := t.progress()
	defer stop() // before the answer: no note is sent after it
	c := &toolCall{turn: t, client: client, once: attempt, note: note, page: t.pageFor(client)}
	c.barred = letIn(ctx, c)
	var now round
	if client.Modern { // what a legacy client writes into its own request is no answer
		var err error
		if now.said, now.token, err = asking.Answered(t.Req.InputResponses, t.Req.RequestState); err != nil {
			return replies.Failed(&jsonrpc.Error{
				Code: mcp.INVALID_PARAMS, Message: "the params do not have the form of " + t.Req.Method,
			})
		}
	}
	for {
		result, answer := c.run(ctx, &now)
		if result == nil {
			return answer
		}
		if now.asks == nil || client.Modern && !now.onPage {
			interrupted := answer.Interrupted
			answer = t.finish(ctx, client, result)
			answer.Interrupted = interrupted
			return answer
		}
		if now.onPage {
			now = c.askOnPage(ctx, now)
		} else {
			now = c.ask(ctx, now)
		}
		t.takePlaces() // it gave its places up when it asked, so that others could go on meanwhile
	}
}

// finish is the answer with a result, as its client takes it.
func (t *turn) finish(ctx context.Context, client session.Client, result *mcp.CallToolResult) request.Answer {
	if t.Profile.NoMeta {
		result.Meta = nil
	}
	answers.Decorate(result, client.Modern, t.h.Replies.Implementation)
	return t.h.Replies.Finish(ctx, t.Req.Envelope, client.Modern, result)
}

// next is the round that follows when the question of this one was put.
func (r round) next() round {
	return round{number: r.number + 1, token: r.asks.Token, silent: r.silent, onPage: r.onPage}
}

// ask puts the question of a round to a legacy client, and returns the round with its answer.
func (t *toolCall) ask(ctx context.Context, now round) round {
	next := now.next()
	late, cancel := context.WithTimeout(ctx, t.h.Asks.Life)
	defer cancel()
	answer, err := t.Req.Peer.Call(late, string(mcp.MethodElicitationCreate), now.asks.Form)
	if next.said = asking.Parse(answer); err != nil || next.said == nil {
		// the time of the question may be over, too; it is not put again
		next.silent, next.said = true, asking.Cancelled()
	}
	return next
}

// run leads a round into the pipeline: MCP ends here. A nil result: the answer is an error.
func (t *toolCall) run(ctx context.Context, now *round) (*mcp.CallToolResult, request.Answer) {
	h, to := t.h, t.target.Tool
	t.settleRoots(ctx)
	t.identify()
	t.asChild(ctx)
	defer t.places.LeaveQueues()
	a := pipeline.Arrival{
		Admission: admit(ctx, t, now.number > 0),
		Progress:  t.note, Token: t.Req.ProgressToken != nil || t.inProcess(), From: t.Req.Caller.From,
		Lost: t.lost, Begin: t.begin(),
		Page:  t.page,
		Teach: t.teach, News: t.news(),
		Find:  func(name string, arrive func()) (pipeline.Inner, bool) { return h.Places.Inner(&t.Turn, name, arrive) },
		Agent: t.agent(), Hands: t.hands(), Sample: t.sample(), Elicit: t.elicit(),
		Library: h.Notices.Resources.For(t.View),
		Ask: func(ctx context.Context, q pipeline.Asking) (tool.Answer, error) {
			return t.keepQuestion(ctx, now, q)
		},
	}
	if a.Refused == nil { // an answer that is taken is gone, so nothing is taken for a call that will not run
		var err error
		a.Reply, err = h.Asks.Reply(ctx, t.asked(now.onPage), to.Spec.Name, now.token, now.said, now.silent)
		if err != nil {
			return nil, replies.Failed(&jsonrpc.Error{Code: mcp.INVALID_PARAMS,
				Message: "requestState is not valid for this request"})
		}
		if a.Reply != nil {
			a.Reply.Answer.Stopped = now.stopped
		}
	}
	if t.Req.Name != to.Spec.Name {
		a.Via = t.Req.Name
	}
	result, err := t.places.Visit.Call(ctx, to, t.target.Input, a)
	if a.Refused == nil { // else nothing changed, and the state may be that of no directory
		if t.shelve(ctx) || result.ListChanged {
			t.tellListed(ctx)
		}
		h.Notices.TellPrompts(ctx, &t.Turn, t.places.Visit.Commanded(), result)
		t.tellUpdated(ctx)
	}
	refusal, refused := errors.AsType[*tool.Refusal](err)
	answer := request.Answer{Interrupted: result.Failed == tool.Interrupted ||
		refused && refusal.Code == tool.Interrupted}
	if m := result.Meta; m.Kept != nil || m.Job != nil || refused && refusal.Meta.Kept != nil {
		h.Keeps.Kept(t.State.Results.Dir())
	}
	out, bad := t.result(ctx, now, result, err)
	if bad != nil {
		return nil, replies.Failed(bad)
	}
	return out, answer
}

// admit says whether this call may run now. again: it comes back with an answer, in the same request.
func admit(ctx context.Context, t *toolCall, again bool) pipeline.Admission {
	if t.barred != nil {
		return pipeline.Admission{Refused: t.barred}
	}
	return t.places.Admit(ctx, &t.Turn, t.target, again)
}

// news tells the session what a person has set for it on the page, before all else.
func (t *toolCall) news() pipeline.News {
	said := t.State.Said
	if len(said) == 0 {
		return t.usualNews()
	}
	return func(ctx context.Context, _ pipeline.About) ([]string, func(int) []string) {
		return said, func(n int) (told []string) {
			_, err := t.State.Limit.Change(ctx, func(l session.Limit) (session.Limit, error) {
				told = nil
				l.News = slices.DeleteFunc(l.News, func(line string) bool {
					mine := slices.Contains(said[:n], line) && !slices.Contains(told, line)
					if mine {
						told = append(told, line)
					}
					return mine
				})
				return l, nil
			})
			if err != nil {
				return said[:n] // twice is better than never
			}
			return told
		}
	}
}

// usualNews tells the session which of its jobs have ended, and of the instructions where it works. Conversations that
// share a session are not told of jobs: nobody knows whose job it was, and another one may be next.
func (t *toolCall) usualNews() pipeline.News {
	if t.State.Shared || !t.View().Runs() {
		return t.guide
	}
	return func(ctx context.Context, about pipeline.About) ([]string, func(int) []string) {
		if lines := language.News(t.State); len(lines) > 0 {
			return lines, func(n int) []string { return lines[:n] } // there is one, and it is about this moment alone
		}
		if lines, claim := running.News(ctx, t.State, about.Job); len(lines) > 0 {
			return lines, claim // the instructions can wait for the next call there
		}
		return t.guide(ctx, about)
	}
}

// guide tells the session of the instructions of the directories that a call names.
func (t *toolCall) guide(ctx context.Context, about pipeline.About) ([]string, func(int) []string) {
	if !t.View().Reads() {
		return nil, nil
	}
	return guidance.News(ctx, t.State, about.Paths)
}

// tellUpdated tells subscribers, before the answer, which resources of the session the call has changed.
func (t *toolCall) tellUpdated(ctx context.Context) {
	if t.Req.Shelf.Session != "" && t.Req.Shelf != t.State.Key {
		t.h.Notices.Hub.NoteCall(t.Req.Shelf, t.State.Key)
	}
	t.h.Notices.TellUpdates(context.WithoutCancel(ctx), t.State.Key, t.View(), "")
}

// result turns what the pipeline gave back into a result. What the client cannot repair becomes a JSON-RPC error.
func (t *toolCall) result(
	ctx context.Context, now *round, result tool.Result, err error,
) (*mcp.CallToolResult, *jsonrpc.Error) {
	name := t.target.Tool.Spec.Name
	if err == nil {
		return answers.Result(name, result), nil
	}
	if errors.Is(err, tool.ErrPending) {
		return now.asks.Result(), nil
	}
	if refusal, ok := errors.AsType[*tool.Refusal](err); ok {
		if bad := t.lacksAsking(refusal); bad != nil {
			return nil, bad
		}
		return answers.Refusal(refusal, name), nil
	}
	if inner, ok := errors.AsType[*pipeline.InternalError](err); ok {
		if inner.Panic {
			return nil, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + inner.Ref + ")"}
		}
		return answers.Refusal(internalRefusal(inner.Ref), name), nil
	}
	return answers.Refusal(internalRefusal(t.h.Replies.Report(ctx, name, err, nil)), name), nil
}

func internalRefusal(ref string) error {
	return tool.Refuse(tool.Internal, "Internal error, reference %s. Report it to the operator.", ref)
}

// keepQuestion is Arrival.Ask. It never waits: the question is kept and becomes the result of the round.
func (t *toolCall) keepQuestion(ctx context.Context, now *round, q pipeline.Asking) (tool.Answer, error) {
	onPage := !t.State.Client.CanAsk
	if (onPage || !t.State.Client.Modern) && (now.number == asking.Most || now.silent) {
		return tool.Answer{Outcome: tool.Declined, Silent: true}, nil
	}
	kept, err := t.h.Asks.Ask(ctx, t.asked(onPage), q)
	if err != nil {
		return tool.Answer{}, err
	}
	now.asks, now.onPage, now.put = kept, onPage, q
	return tool.Answer{}, tool.ErrPending
}

// lacksAsking is the error that the modern era wants for a call of a tool that asks, by a client that takes no
// questions; nil: it is none. Through a dispatcher the model chose the tool and not the client, so it reads the
// refusal.
func (t *toolCall) lacksAsking(refusal *tool.Refusal) *jsonrpc.Error {
	c := t.State.Client
	if !c.Modern || c.CanAsk || refusal.Code != tool.ToolDisabled || t.target.Through {
		return nil
	}
	able := *t.State
	able.Client.CanAsk = true
	if to := t.target.Tool; to.Unavailable(t.State) == "" || to.Unavailable(&able) != "" {
		return nil
	}
	return &jsonrpc.Error{
		Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: refusal.Text,
		Data: map[string]any{"requiredCapabilities": map[string]any{"elicitation": map[string]any{}}},
	}
}

// progress starts what tells the client how far a call is. stop sends what is pending. note is nil if the client gave
// no token.
func (t *turn) progress() (note tool.Progress, stop func()) {
	token := t.Req.ProgressToken
	if token == nil {
		return nil, func() {}
	}
	hold := time.Duration(0)
	if t.Req.Caller.From.Transport == "http" {
		hold = progress.StreamHold
	}
	ticker := progress.Start(hold, func(n progress.Note) {
		token := token
		if t.waits != nil { // each request of the call has its own
			if token = t.waits.Token(); token == nil {
				return
			}
		}
		_ = t.Req.Peer.Notify(progress.Method, n.Params(token)) // a client that does not read loses notes
	})
	return ticker.Set, sync.OnceFunc(ticker.Stop)
}

// planOnPage is the plan.approval_fallback with which a plan is approved on the page, or not at all.
const planOnPage = "console"

// identify fills in who called, and what may be found for it.
func (t *toolCall) identify() {
	at, st, c := t.Req.Tenant, t.State, t.client
	st.Catalog = at.Offers(c.CanAsk).Catalog
	st.Relist = func(s *session.State) {
		t.h.Tools.Refresh() // what is left out is logged when the change is seen
		s.Catalog = at.Offers(s.Client.CanAsk).Catalog
	}
	// A page that nobody listed would answer its own questions.
	c.CanAsk = c.CanAsk && !t.Req.Client.Muted && !t.Req.Caller.From.Page
	st.Client = c
	if t.space == nil {
		t.space = st.Space
	}
	// A call that comes back with an answer has moved and chosen before, and what it did may hold no more.
	st.Space, st.Rules, st.Clean, st.Prefs = t.space, at.Rules, at.Clean, at.Prefs
	t.Req.Narrow(st, t.h.Replies.Log)
	plain, withTools := t.lends()
	st.Samples, st.PageModel = withTools && t.h.Lends.WithTools, plain && t.h.Lends.Plain
	if t.Req.Caller.From.Page {
		st.PlanFallback = planOnPage
	}
	if st.PlanPage = ""; st.PlanFallback == planOnPage {
		st.PlanPage = t.page.URL
	}
	if t.inProcess() {
		st.Prefs.ShellBackgroundMS = 0 // the process ends with its call, and a job with the process
	} else if t.Req.ProgressToken != nil {
		st.Prefs.ShellBackgroundMS = toBackground(st.Prefs, t.Profile.ToBackground())
	}
}

// toBackground is after how many milliseconds a command of a client with a progress token becomes a job; 0: never.
// known is what the client's profile says; 0: nothing.
func toBackground(p session.Prefs, known time.Duration) int {
	if known == 0 || p.ShellBackgroundSet {
		return p.ShellBackgroundMS
	}
	ms := int(known.Milliseconds())
	if p.ShellBackgroundMost > 0 {
		ms = min(ms, p.ShellBackgroundMost)
	}
	return ms
}

// inProcess says that Server.Call made the call: its caller waits for as long as the tool works.
func (t *turn) inProcess() bool { return t.Req.Caller.From.Transport == pipeline.InProcess }

// lends says whether the client lets its model answer, and with calls of tools, and can be asked during this call.
func (t *toolCall) lends() (answers, withTools bool) {
	r := t.Req.Client
	switch {
	case r.Muted:
		return false, false
	case !t.client.Modern:
		return r.Sampling, r.Samples
	case t.waits == nil:
		return false, false
	}
	caps, _ := mcpgo.Capabilities(t.Req.Capabilities)
	return caps.Sampling != nil, caps.Sampling != nil && caps.Sampling.Tools != nil
}

// settleRoots asks the client of a call which roots it wants to be used, if that is due.
func (t *toolCall) settleRoots(ctx context.Context) {
	t.Req.Client.Roots.Settle(ctx, t.h.Waits.Roots, t.Req.Tenant, func(ctx context.Context) (json.RawMessage, bool) {
		answer, err := t.Req.Peer.Call(ctx, string(mcp.MethodListRoots), nil)
		return answer, !errors.Is(err, jsonrpc.ErrNoCalls)
	})
}

// teach is Arrival.Teach: the schema, if the model was never shown it; where it is found, if it is long and the call
// needs no dispatcher. "": the model has seen it.
func (t *toolCall) teach(ctx context.Context) string {
	schema, whole := t.target.Schema()
	if t.target.Through {
		return schema
	}
	to, name := t.target.Tool, t.target.Tool.Spec.Name
	if !t.h.Tools.Lists.Defers(to) || t.State.Client.SeesAll || !t.h.Tools.Findable(t.Req.Tenant) {
		return ""
	}
	if active, err := t.State.Active.Load(ctx); err == nil && slices.Contains(active, name) {
		return ""
	}
	if whole {
		return schema
	}
	return "The schema of this tool was not loaded. Call " + toolset.Finder + ` with "select:` + name + `".`
}

// shelve lists for the connection of a call what the call's own session has found, and says whether that changed its
// list.
func (t *toolCall) shelve(ctx context.Context) (changed bool) {
	st, shelf := t.State, t.Req.Shelf
	if shelf.Session == "" || shelf == st.Key || t.target.Tool.Spec.Name != toolset.Finder || st.Client.SeesAll {
		return false
	}
	found, err := st.Active.Load(ctx)
	if err == nil && len(found) > 0 {
		changed, err = session.Activate(ctx, t.h.Active(shelf), found)
	}
	if err != nil { // what is not listed can be called all the same
		t.h.Replies.Log.WarnContext(ctx, "found tools do not join the list of a connection", "err", err)
	}
	return changed
}

// tellListed tells the client of a call, and nobody else, that its session's list changed. It comes before the answer.
func (t *toolCall) tellListed(ctx context.Context) {
	switch c := t.State.Client; {
	case c.Rereads && !c.SeesAll:
		t.h.Notices.Hub.Announce(t.Req.Session, string(mcp.MethodNotificationToolsListChanged))
		return
	case c.Modern || c.SeesAll:
		return // its list is the same as before
	}
	// A client that calls found tools by their names must know them when its model reads the answer.
	var read <-chan struct{}
	if t.State.Client.ByName {
		read = t.h.Notices.Hub.Relist(t.Req.Shelf)
		defer t.h.Notices.Hub.Relisted(t.Req.Shelf)
	}
	if err := t.Req.Peer.Notify(string(mcp.MethodNotificationToolsListChanged), nil); err != nil {
		// it has the schemas in the answer
		t.h.Replies.Log.DebugContext(ctx, "a client was not told of its new list", "err", err)
		return
	}
	if read == nil {
		return
	}
	late := time.NewTimer(t.h.Waits.Relist)
	defer late.Stop()
	select {
	case <-read:
	case <-late.C:
	case <-ctx.Done():
	case <-t.Req.Peer.Gone():
	}
}

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/clients"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/tools/catalog"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A clientRecord is what a client said about itself when it initialized. It is replaced as a whole, never changed.
type clientRecord struct {
	V        int      `json:"v"` // 1
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty"`
	Protocol string   `json:"protocol,omitempty"` // negotiated
	CanAsk   bool     `json:"ask,omitempty"`      // declared elicitation
	HasRoots bool     `json:"roots,omitempty"`    // declared roots
	Roots    []string `json:"dirs,omitzero"`      // its answer about them, over HTTP; nil: none yet
}

// register gives mcp-go every tool under its name and its aliases, with one handler.
func (s *Server) register(tools []tool.Tool) {
	var entries []mcpserver.ServerTool
	for _, t := range tools {
		for _, name := range append([]string{t.Spec.Name}, t.Spec.Aliases...) {
			d := describeTool(t, s.lists.defers(t))
			d.Name = name
			entries = append(entries, mcpserver.ServerTool{Tool: d, Handler: s.call})
			s.table[name] = t
		}
	}
	s.mcp.AddTools(entries...)
}

// call is the handler of every tool in mcp-go. It never returns a Go error, because mcp-go would choose its code and
// send its text.
func (s *Server) call(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	rec := recordFrom(ctx)
	if rec.kept != nil { // direct has run the call as far as its question
		rec.kept, rec.result = nil, rec.kept
		return rec.result, nil
	}
	rec.input = req.Params.MultiRoundTripParams
	if rec.asked > 0 {
		s.again(rec)
	}
	rec.result = s.run(ctx, rec)
	return rec.result, nil
}

// run leads a call into the corridor: MCP ends here.
func (s *Server) run(ctx context.Context, rec *record) *mcp.CallToolResult {
	t := s.aim(rec).tool
	s.heedRoots(ctx, rec)
	s.identify(ctx, rec)
	a := pipeline.Arrival{
		Progress: rec.progress, Token: rec.env.ProgressToken != nil, From: rec.from, Refused: s.locate(ctx, rec.state), Lost: rec.left,
		Teach: func(ctx context.Context) string { return s.teach(ctx, rec) },
	}
	if a.Refused == nil {
		a.Refused = rec.admit(ctx)
	}
	a.Find = s.inner(rec)
	defer rec.leave()
	if a.Refused == nil { // an answer that is taken is gone, so nothing is taken for a call that will not run
		var bad *jsonrpc.Error
		if a.Reply, bad = s.reply(ctx, rec, t); bad != nil {
			rec.override = bad
			return &mcp.CallToolResult{}
		}
	}
	if rec.state.Client.CanAsk {
		ctx = withRecord(ctx, rec) // ask looks for it
	}
	if rec.env.Name != t.Spec.Name {
		a.Via = rec.env.Name
	}
	result, err := rec.visit.Call(ctx, t, rec.aim.input, a)
	if a.Refused == nil { // else nothing changed, and the state may be that of no directory
		if s.shelve(ctx, rec) || result.ListChanged {
			s.tellListed(ctx, rec)
		}
		s.tellPrompts(ctx, rec, result)
	}
	refusal, refused := errors.AsType[*tool.Refusal](err)
	rec.interrupted = result.Failed == tool.Interrupted || refused && refusal.Code == tool.Interrupted
	if m := result.Meta; m.Kept != nil || m.Job != nil || refused && refusal.Meta.Kept != nil {
		s.engines.keeps.kept(rec.state.Results.Dir())
	}
	out := s.answer(ctx, rec, t.Spec.Name, result, err)
	if out.IsError {
		rec.failed = "tool_error"
	}
	return out
}

// left says that the client of the request has left, so that nobody reads the answer.
func (r *record) left() bool { return r.lost.Load() || r.gone != nil && r.gone() }

// tellListed tells the client of a call, and nobody else, that its session's list changed. It comes before the answer.
func (s *Server) tellListed(ctx context.Context, rec *record) {
	if c := rec.state.Client; c.Modern || c.SeesAll || rec.notify == nil {
		return // its list is the same as before
	}
	if err := rec.notify(string(mcp.MethodNotificationToolsListChanged), nil); err != nil {
		s.log.DebugContext(ctx, "a client was not told of its new list", "err", err) // it has the schemas in the answer
	}
}

// queue takes the call's places in its principal's queues. It comes with the ticket, in the order of arrival: a call that
// waits for a turn never has one before it at the gate that still waits for one.
func (r *record) queue() {
	l := r.limits
	if l == nil {
		return
	}
	r.turns = append(r.turns, l.Arrive())
	if r.aim.tool.Spec.Scope == tool.ScopeShell {
		r.turns = append(r.turns, l.Shell())
	}
}

// leave gives the places back.
func (r *record) leave() {
	for _, t := range r.turns {
		t.Leave()
	}
}

// admit says why the principal may not make this call, or not now; nil: it may.
func (r *record) admit(ctx context.Context) *tool.Refusal {
	if refusal := r.place.forbids(r.aim.tool); refusal != nil {
		return refusal
	}
	l := r.limits
	if l == nil {
		return r.aim.misled(r.state.Catalog)
	}
	for _, turn := range r.turns {
		if ok, err := turn.Wait(ctx); err == nil && !ok {
			return tooManyCalls(time.Second)
		}
	}
	if r.asked > 0 {
		return nil // it comes back with an answer, in the same request, and was counted
	}
	if after, ok := l.Call(); !ok { // last: a call that is refused counts for nothing
		return tooManyCalls(after)
	}
	return r.aim.misled(r.state.Catalog) // a call that was cancelled meanwhile ends in the corridor
}

func tooManyCalls(after time.Duration) *tool.Refusal {
	seconds := max(1, int((after+time.Second-1)/time.Second))
	return &tool.Refusal{
		Code: tool.RateLimited,
		Text: fmt.Sprintf("Too many calls. Try again in %d s.", seconds),
		Meta: tool.Meta{Data: json.RawMessage(fmt.Sprintf(`{"retryAfterMs":%d}`, max(after, 0).Milliseconds()))},
	}
}

// client is who sent a request: by the request itself in the modern era, by the connection's record otherwise.
func (s *Server) client(ctx context.Context, rec *record) session.Client {
	c := session.Client{}
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		c.Modern, c.Revision = true, info.ProtocolVersion
		if info.ClientInfo != nil {
			c.Name, c.Version = info.ClientInfo.Name, info.ClientInfo.Version
		}
		c.CanAsk = info.ClientCapabilities != nil && canElicit(info.ClientCapabilities.Elicitation)
	} else if rec.client != nil {
		c.Name, c.Version, c.Revision, c.CanAsk = rec.client.Name, rec.client.Version, rec.client.Protocol, rec.client.CanAsk
	}
	p := s.profile(c.Name)
	c.SeesAll = s.lists.showsAll(p)
	c.MaxRunes, c.MaxBytes, c.MaxLines = p.Runes, p.Bytes, p.Lines
	c.MaxImages = imagesOf(p)
	return c
}

// maxImages is how many images one result has at most, whoever reads it.
const maxImages = 8

// imagesOf is how many images of one result a client takes.
func imagesOf(p clients.Profile) int {
	switch p.Images {
	case clients.AllImages:
		return maxImages
	case clients.FirstImage:
		return 1
	}
	return 0
}

// identify fills in who called, and what may be found for it.
func (s *Server) identify(ctx context.Context, rec *record) {
	c := s.client(ctx, rec)
	rec.state.Catalog = rec.place.offers(c.CanAsk).catalog
	c.CanAsk = c.CanAsk && (c.Modern || rec.to != nil)
	rec.state.Client = c
	if rec.space == nil {
		rec.space = rec.state.Space
	}
	// A call that comes back with an answer has moved and chosen before, and what it did may hold no more.
	rec.state.Space, rec.state.Rules, rec.state.Prefs = s.narrow(rec, rec.space), rec.place.rules, rec.place.prefs
	p := s.profile(c.Name)
	if p.Background > 0 && rec.env.ProgressToken != nil {
		rec.state.Prefs.ShellBackgroundMS = int(p.Background.Milliseconds())
	}
}

// profile is the client profile of a name, or the one that the operator forces.
func (s *Server) profile(name string) clients.Profile {
	if p, ok := clients.Named(s.cfg.Client.Profile); ok {
		return p
	}
	return clients.Find(name)
}

// locate gives the state its cwd as of now, and the rules that go with it, and what the session has chosen for itself. A
// cwd that no longer lies in a root counts as none; one that was removed stays, and the tools say so.
func (s *Server) locate(ctx context.Context, st *session.State) *tool.Refusal {
	cwd, err := st.Cwd.Load(ctx)
	if err != nil {
		return notRead(ctx, "the current directory is", err)
	}
	st.Usual = session.Usual{Cwd: st.Space.Cwd(), MaxRunes: st.Client.MaxRunes, Prefs: st.Prefs}
	if cwd != "" && st.Space.Inside(cwd) {
		st.Space = st.Space.At(cwd)
	}
	st.Rules = st.Rules.Moved(st.Space.Cwd())
	chosen, err := st.Choices.Load(ctx)
	if err != nil {
		return notRead(ctx, "the options of this session are", err)
	}
	now := chosen.Under(st.Usual)
	st.Client.MaxRunes, st.Prefs = now.MaxRunes, now.Prefs
	s.reachPlan(ctx, st)
	return nil
}

// notRead is the refusal of a call for which the Store was not read. For one that was cancelled it need not be down.
func notRead(ctx context.Context, what string, err error) *tool.Refusal {
	if ctx.Err() != nil {
		return &tool.Refusal{Code: tool.Interrupted, Text: "Interrupted by the client.", Cause: context.Cause(ctx)}
	}
	return &tool.Refusal{Code: tool.StateUnavailable, Text: "The state store does not answer, so " + what + " not known. Try again.", Cause: err}
}

// reachPlan opens the session's plan file, which lies outside the roots mostly: for changes in plan mode, and to be read
// later. If the Store does not say, it stays closed.
func (s *Server) reachPlan(ctx context.Context, st *session.State) {
	plan, err := st.Plan.Load(ctx)
	if err != nil || plan.Path == "" {
		return
	}
	if mode, _, err := st.InForce(ctx, time.Now()); err == nil && mode == permission.Plan {
		st.Space = st.Space.Writable(plan.Path)
		return
	}
	st.Space = st.Space.ReadableFile(plan.Path)
}

// answer turns what the corridor gave back into a result. What the client cannot repair becomes a JSON-RPC error, by
// the record's override.
func (s *Server) answer(ctx context.Context, rec *record, name string, result tool.Result, err error) *mcp.CallToolResult {
	if err == nil {
		return s.describeResult(name, result)
	}
	if errors.Is(err, tool.ErrPending) {
		return rec.question
	}
	if refusal, ok := errors.AsType[*tool.Refusal](err); ok {
		if rec.override = rec.lacksAsking(refusal); rec.override != nil {
			return &mcp.CallToolResult{}
		}
		return s.describeError(refusal, name)
	}
	if inner, ok := errors.AsType[*pipeline.InternalError](err); ok {
		if inner.Panic {
			rec.override = &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + inner.Ref + ")"}
			return &mcp.CallToolResult{}
		}
		return s.describeError(internalRefusal(inner.Ref), name)
	}
	return s.describeError(internalRefusal(s.report(ctx, name, err, nil)), name)
}

func internalRefusal(ref string) error {
	return tool.Refuse(tool.Internal, "Internal error, reference %s. Report it to the operator.", ref)
}

// unknownTool is the error for a tool name that does not exist, with the names of known that may have been meant.
func (s *Server) unknownTool(known []catalog.Entry, name string) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("unknown tool %q", results.Line(name, 80))}
	if near := catalog.Nearest(known, name); len(near) > 0 {
		e.Message += `; nearest: "` + strings.Join(near, `", "`) + `"`
		e.Data = map[string]any{"nearest": near}
	}
	return e
}

// unknownCall is unknownTool for a client. What a modern one can be asked is known to mcp-go alone here, so it is taken
// for one that cannot: better no name than one that it cannot call.
func (s *Server) unknownCall(rec *record) *jsonrpc.Error {
	e := s.unknownTool(rec.place.offers(!rec.modern && rec.client != nil && rec.client.CanAsk).catalog, rec.env.Name)
	if s.findable(rec.place) {
		e.Message += ". " + finder + " finds tools."
	}
	return e
}

// Call runs one tool in process, as principal local, with the same checks and through the same corridor as a client's
// call. It returns what the model would read, however much the calls before it showed, and whether that is an error.
// err is a tool that does not exist, or a fault of ours.
func (s *Server) Call(ctx context.Context, name string, arguments json.RawMessage) (text string, failed bool, err error) {
	quoted, err := jsonrpc.Marshal(name)
	if err != nil {
		return "", false, err
	}
	env, bad := jsonrpc.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":%s}}`, quoted, arguments))
	switch {
	case bad != nil && bad.InArguments:
		return unusable(env.Name, bad).Error(), true, nil
	case bad != nil:
		return "", false, errors.New(bad.Message)
	}
	t, ok := s.table[env.Name]
	if !ok {
		return "", false, errors.New(s.unknownTool(s.local.unasked.catalog, env.Name).Message)
	}
	target := s.aimAt(s.local, t, env.Arguments)
	state, release, err := s.sessions.acquire(s.stdioKey(env), s.local)
	if err != nil {
		return "", false, err
	}
	defer release()
	if state.Results != nil {
		state.Results.Part() // a command reads page after page, faster than any model
	}
	rec := &record{
		env: env, aim: &target, state: state, place: s.local, client: &clientRecord{Name: "codehand-call"}, visit: s.pipe.Arrive(state),
		from: pipeline.From{Auth: "none", Transport: "call"},
	}
	defer rec.visit.Leave()
	result := s.run(ctx, rec)
	if rec.override != nil {
		return "", false, errors.New(rec.override.Message)
	}
	var b strings.Builder
	for _, c := range result.Content {
		if c, ok := c.(mcp.TextContent); ok {
			b.WriteString(c.Text)
		}
	}
	return b.String(), result.IsError, nil
}

// unusable is the refusal for arguments that the model wrote and that no parser should guess about.
func unusable(name string, bad *jsonrpc.Fault) error {
	return tool.Refuse(tool.InputInvalid, "Input validation failed for %s:\n- the arguments are not usable JSON: %s", name, bad.Message)
}

// tooMany is the refusal of a call on a connection that has as many as it may.
func tooMany() error {
	return tool.Refuse(tool.Busy, "%d calls are in flight on this connection. Nothing was done. Try again when some are answered.",
		jsonrpc.MaxInFlight)
}

// Refusals makes the lines by which a bridge refuses calls itself, as a server of this version does: bad says what is wrong
// with the arguments; nil: too many calls are in flight. The function is safe for concurrent use.
func Refusals(version string) func(env jsonrpc.Envelope, bad *jsonrpc.Fault) []byte {
	s := &Server{implementation: mcp.Implementation{Name: "codehand", Version: version}}
	return func(env jsonrpc.Envelope, bad *jsonrpc.Fault) []byte {
		refusal := tooMany()
		if bad != nil {
			refusal = unusable(env.Name, bad)
		}
		body, err := encodeResult(s.decorate(env, s.describeError(refusal, env.Name)).Result)
		if err != nil {
			return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "result could not be encoded"})
		}
		return jsonrpc.ResultLine(env.ID, body)
	}
}

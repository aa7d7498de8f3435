package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A record is what the layer knows of one request. It is the one value that crosses mcp-go in a context: the transport
// puts it in, and the handlers of this room take it out.
type record struct {
	env         jsonrpc.Envelope
	aim         *aim             // of a call of a tool of ours; else nil
	state       *session.State   // of a call; a copy, so that handlers may set Client and Space
	visit       *pipeline.Visit  // of a call
	space       *workspace.Space // of the state before any turn of the call moved it; nil: none has begun
	client      *clientRecord    // of the connection or session, for legacy requests
	modern      bool             // of protocol 2026-07-28 or later; over HTTP a header may say so, too
	newID       string           // of the session that an initialize over HTTP begins
	place       *place           // where the caller works
	limits      *auth.Limits     // of the principal; nil: none
	from        pipeline.From
	hello       *clientRecord                         // what initialize said, if it succeeded
	askable     bool                                  // it said that the client takes requests of the server
	lost        atomic.Bool                           // the client left while the call ran
	gone        func() bool                           // says the same before anybody was told; nil: it cannot be asked
	turns       []*auth.Turn                          // places in the principal's queues, in the order in which they must come
	failed      string                                // code of an error answer, or tool_error; for the metrics
	interrupted bool                                  // a call was cancelled before it was done
	result      *mcp.CallToolResult                   // of a call that came here through mcp-go: encoded by us, not by it
	override    *jsonrpc.Error                        // takes the place of mcp-go's answer
	prompt      *promptCall                           // of a prompts/get of ours; nil: there is none of its name
	input       mcp.MultiRoundTripParams              // what the request brings as the answer to a question
	roots       *clientRoots                          // that a legacy client wants to be used; nil: it is not asked
	rootsTo     asking                                // puts the question for them; nil: this request cannot
	rootsSaid   func(context.Context, []string)       // keeps the answer; nil: it lives as long as the connection
	to          asking                                // puts questions to a legacy client; nil: it cannot be asked
	asked       int                                   // questions that were put for this request
	unheard     bool                                  // one of them got no answer: there is no further one
	question    *mcp.CallToolResult                   // the last of them
	kept        *mcp.CallToolResult                   // of a call that direct has run: for the handler's first turn
	notify      func(method string, params any) error // sends a notification before the answer; nil: none can be sent
	announce    func(method string)                   // tells those who listen in the caller's session; nil: nobody can
	flush       func()                                // sends pending progress; called before the answer
	progress    tool.Progress                         // nil: the client gave no token
	prompts     *promptMark                           // what its client was shown; nil: nobody can be told of others
	shelf       session.Key                           // what tools are listed by: of a legacy tools/list, and of a legacy call with a session of its own
}

type recordKey struct{}

func withRecord(ctx context.Context, r *record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// recordFrom returns the request's record. Every request that reaches mcp-go has one.
func recordFrom(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}

// dispatch runs one request through mcp-go and returns its answer as one line, or an error line. It never panics and
// never returns nothing: an answer that cannot be encoded is an error with a reference.
func (s *Server) dispatch(ctx context.Context, rec *record, msg []byte) (answer []byte) {
	defer func() {
		if p := recover(); p != nil {
			answer = jsonrpc.ErrorLine(rec.env.ID, s.panicked(ctx, p))
		}
	}()
	if e := s.refuse(rec); e != nil {
		return rec.fail(e)
	}
	resp, ok := s.direct(ctx, rec)
	if !ok {
		if rec.kept != nil {
			ctx = s.mcp.WithContext(ctx, &askSession{rec, s.asks.life})
		}
		resp = s.mcp.HandleMessage(withRecord(ctx, rec), s.slim(rec.env, msg))
	}
	if rec.flush != nil {
		rec.flush()
	}
	return s.encode(ctx, rec, resp)
}

// direct answers a legacy tools/call of a known tool without mcp-go, which would decode the message four times and do
// nothing else with it (BenchmarkStdioRoundTrip). ok is false for everything else, and for a call that asks: mcp-go puts
// the question, and runs the handler again with the answer.
func (s *Server) direct(ctx context.Context, rec *record) (mcp.JSONRPCMessage, bool) {
	if rec.visit == nil || rec.env.Modern() {
		return nil, false
	}
	result := s.run(ctx, rec)
	if wantsInput(result) {
		rec.kept = result
		return nil, false
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, Result: result}, true
}

// refuse answers what mcp-go would let pass or would answer without help: versions that the operator does not serve,
// and unknown tools.
func (s *Server) refuse(rec *record) *jsonrpc.Error {
	if v := rec.env.Version; rec.env.Modern() {
		if slices.Contains(mcp.ValidProtocolVersions, v) && !slices.Contains(s.versions, v) {
			return &jsonrpc.Error{
				Code:    unsupportedVersion,
				Message: "unsupported protocol version " + v,
				Data:    map[string]any{"supported": s.versions, "requested": v},
			}
		}
	} else if rec.env.Method == string(mcp.MethodInitialize) && len(s.legacyVersions()) == 0 {
		return &jsonrpc.Error{Code: mcp.METHOD_NOT_FOUND, Message: "initialize is not served: this server speaks " + strings.Join(s.versions, ", ")}
	}
	if rec.env.HasCursor && onePage(rec.env.Method) {
		return &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: errCursor.Error()}
	}
	return nil
}

// onePage says whether a list of mcp-go's is answered whole, so that it never gives a cursor out. mcp-go v1.2.1 takes any
// that is base64, and answers with the first page again.
func onePage(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList:
		return true
	}
	return false
}

// unsupportedVersion is UnsupportedProtocolVersionError of protocol 2026-07-28.
const unsupportedVersion = -32022

// legacyVersions returns the served versions that have the initialize handshake, newest first.
func (s *Server) legacyVersions() []string {
	var vs []string
	for _, v := range s.versions {
		if v < mcp.ProtocolVersion20260728 {
			vs = append(vs, v)
		}
	}
	return vs
}

// slim returns msg with the arguments of a call replaced by {}. mcp-go v1.2.1 decodes each message about five times,
// into trees of any; the handler takes the arguments' bytes from the record instead.
func (s *Server) slim(env jsonrpc.Envelope, msg []byte) []byte {
	if env.Arguments == nil || env.Method != string(mcp.MethodToolsCall) {
		return msg
	}
	if _, ours := s.table[env.Name]; !ours {
		return msg
	}
	from := env.ArgumentsAt
	out := make([]byte, 0, len(msg)-len(env.Arguments)+2)
	out = append(out, msg[:from]...)
	out = append(out, "{}"...)
	return append(out, msg[from+len(env.Arguments):]...)
}

// fail makes the line of an error answer, and notes it.
func (r *record) fail(e *jsonrpc.Error) []byte {
	r.failed = strconv.Itoa(e.Code)
	return jsonrpc.ErrorLine(r.env.ID, e)
}

// encode makes the line of an answer, with the id as it was sent.
func (s *Server) encode(ctx context.Context, rec *record, resp mcp.JSONRPCMessage) []byte {
	id := rec.env.ID
	if rec.override != nil {
		return rec.fail(rec.override)
	}
	switch r := resp.(type) {
	case mcp.JSONRPCError:
		if own, ok := s.extended(ctx, rec, r.Error.Code); ok {
			return s.encode(ctx, rec, own)
		}
		return rec.fail(s.mapError(rec, r.Error))
	case mcp.JSONRPCResponse:
		if listen, ok := r.Result.(mcp.SubscriptionsListenResult); ok {
			// mcp-go decoded the id, which loses digits of a large one.
			listen.EnsureResultMeta().SetMetaField(mcp.MetaKeySubscriptionID, id)
			r.Result = listen
		}
		body, err := encodeResult(r.Result)
		if err != nil {
			ref := s.report(ctx, "encode", err, nil)
			return jsonrpc.ErrorLine(id, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded (ref " + ref + ")"})
		}
		if line := jsonrpc.ResultLine(id, body); len(line) < jsonrpc.MaxResponse {
			return line
		}
		return s.tooLarge(rec, len(body))
	}
	ref := s.report(ctx, "dispatch", fmt.Errorf("mcp-go answered %T to %s", resp, rec.env.Method), nil)
	return jsonrpc.ErrorLine(id, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"})
}

// mapError gives mcp-go's errors the words of this server where its own do not help.
func (s *Server) mapError(rec *record, e mcp.JSONRPCErrorDetails) *jsonrpc.Error {
	if rec.env.Method == string(mcp.MethodToolsCall) && e.Code == mcp.INVALID_PARAMS {
		if _, ok := s.table[rec.env.Name]; !ok && s.mcp.GetTool(rec.env.Name) == nil {
			return s.unknownCall(rec)
		}
	}
	if rec.env.Method == string(mcp.MethodResourcesRead) && (e.Code == mcp.RESOURCE_NOT_FOUND || e.Code == mcp.INVALID_PARAMS && strings.Contains(e.Message, "not found")) {
		return rec.noResource()
	}
	if rec.env.Method == string(mcp.MethodPromptsGet) && e.Code == mcp.INVALID_PARAMS && strings.Contains(e.Message, "not found") {
		return &jsonrpc.Error{Code: e.Code, Message: fmt.Sprintf("unknown prompt %q", results.Line(rec.env.Name, 80))}
	}
	if strings.Contains(e.Message, "json:") || strings.Contains(e.Message, "unparsable") { // names of Go's types help nobody
		e.Code, e.Message = mcp.INVALID_PARAMS, "the params do not have the form of "+results.Line(rec.env.Method, 80)
	}
	return &jsonrpc.Error{Code: e.Code, Message: results.Line(e.Message, 300), Data: e.Data}
}

// tooLarge answers when an answer does not fit the wire. Results are cut long before; this is the backstop.
func (s *Server) tooLarge(rec *record, size int) []byte {
	if rec.env.Method != string(mcp.MethodToolsCall) {
		return jsonrpc.ErrorLine(rec.env.ID, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: fmt.Sprintf("the answer is larger than the wire allows (%d bytes, limit %d)", size, jsonrpc.MaxResponse)})
	}
	refusal := &tool.Refusal{
		Code: tool.ResultTooLarge,
		Text: fmt.Sprintf("The result is larger than the wire allows (%d bytes, limit 8 MiB). Ask for less: a smaller range, a narrower pattern.", size),
	}
	body, err := encodeResult(s.decorate(rec.env, s.describeError(refusal, rec.called())).Result)
	if err != nil {
		return jsonrpc.ErrorLine(rec.env.ID, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded"})
	}
	return jsonrpc.ResultLine(rec.env.ID, body)
}

// called is the tool that a call is for.
func (r *record) called() string {
	if r.aim == nil {
		return r.env.Name
	}
	return r.aim.tool.Spec.Name
}

// panicked is the answer to a request whose handler panicked.
func (s *Server) panicked(ctx context.Context, p any) *jsonrpc.Error {
	ref := s.report(ctx, "panic", fmt.Errorf("%v", p), debug.Stack())
	return &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"}
}

// internal is the answer to a request that failed for a reason of ours.
func (s *Server) internal(ctx context.Context, where string, err error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + s.report(ctx, where, err, nil) + ")"}
}

// report logs what went wrong inside and returns the reference under which it is found. Nothing else of it leaves.
func (s *Server) report(ctx context.Context, where string, err error, stack []byte) string {
	ref := newRef()
	attrs := []any{slog.String("ref", ref), slog.String("where", where), slog.Any("err", err)}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	s.log.ErrorContext(ctx, "internal error", attrs...)
	return ref
}

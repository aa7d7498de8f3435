package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/answers"
	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/prompts"
	"codehand/server/request"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A turn is what changes while one request is served. It lives as long as its Work and belongs to that goroutine.
type turn struct {
	s       *Server
	req     request.Request
	target  *target        // of a call of a tool of ours; else nil
	state   *session.State // of a request that needs its session: a copy, so that the turn may set Client and Space
	release func()         // gives state back
	visit   *pipeline.Visit
	places  []*auth.Turn     // in the principal's queues, in the order in which they must come
	space   *workspace.Space // of state before any round of the call moved it; nil: none has begun

	failure *jsonrpc.Error         // takes the place of mcp-go's answer
	client  *sessions.ClientRecord // what initialize said, if it succeeded
	prompt  *prompts.Prompt        // of a prompts/get of ours; nil: there is none of its name
	tools   []tenants.Listing      // of a tools/list of ours
}

// Serve is request.Serve.
func (s *Server) Serve(r request.Request) (request.Work, bool) {
	t := &turn{s: s, req: r, release: func() {}}
	err := t.arrive()
	changes := t.target != nil && !t.target.tool.Spec.Traits.ReadOnly
	return func(ctx context.Context) (a request.Answer) {
		began := time.Now()
		defer func() {
			t.leave()
			s.observe(r, a, time.Since(began))
		}()
		if err != nil {
			return failed(err)
		}
		return t.answer(ctx)
	}, changes
}

// arrive finds the target of a call, takes its session, its places in its principal's queues, and its ticket, in this
// order. Another request only takes the session that it needs.
func (t *turn) arrive() *jsonrpc.Error {
	s, env := t.s, t.req.Envelope
	call := env.Method == string(mcp.MethodToolsCall)
	if call {
		found, ours := s.tools.get(env.Name)
		if !ours {
			return nil // mcp-go answers it
		}
		to := s.tools.follow(t.req.Tenant, found, env.Arguments)
		t.target = &to
	} else if !sessions.Looks(env.Method) {
		return nil
	}
	state, release, err := s.sessions.Acquire(t.req.Session, t.req.Tenant)
	if err != nil {
		return s.internal(context.Background(), "session", err)
	}
	t.state, t.release = state, release
	if !call {
		t.state.Space = t.narrow(state.Space)
		return nil
	}
	t.takePlaces()
	return nil
}

// takePlaces takes places in all queues. That is one step: over HTTP several calls arrive at once, and two queues taken
// separately can deadlock, when a call that is first in one is second in the other.
func (t *turn) takePlaces() {
	s := t.s
	s.arrival.Lock()
	defer s.arrival.Unlock()
	t.places = nil
	if l := t.req.Caller.Limits; l != nil {
		t.places = append(t.places, l.Arrive())
		if t.target.tool.Spec.Scope == tool.ScopeShell {
			t.places = append(t.places, l.Shell())
		}
	}
	t.visit = s.pipe.Arrive(t.state)
}

// leave gives back all that the turn holds.
func (t *turn) leave() {
	if t.visit != nil {
		t.visit.Leave()
		t.leavePlaces()
	}
	t.release()
}

func (t *turn) leavePlaces() {
	for _, p := range t.places {
		p.Leave()
	}
}

// answer serves the request. It never panics, and an answer that cannot be encoded is an error with a reference.
func (t *turn) answer(ctx context.Context) (a request.Answer) {
	defer func() {
		if p := recover(); p != nil {
			ref := t.s.report(ctx, "panic", fmt.Errorf("%v", p), debug.Stack())
			a = failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"})
		}
		a.Tool = t.tool()
	}()
	if e := t.s.unserved(t.req.Envelope); e != nil {
		return failed(e)
	}
	switch {
	case t.target != nil:
		return t.call(ctx)
	case t.req.Client.Modern && t.req.Method == string(mcp.MethodSubscriptionsListen):
		return t.listen(ctx)
	}
	return t.dispatch(ctx)
}

// tool is the tool that a call is for; "": the request is none.
func (t *turn) tool() string {
	if t.target == nil {
		return t.req.Name
	}
	return t.target.tool.Spec.Name
}

// unserved answers what mcp-go would let pass or would answer without help: versions that the operator does not serve,
// and cursors.
func (s *Server) unserved(env jsonrpc.Envelope) *jsonrpc.Error {
	switch modern := env.Modern(); {
	case modern && slices.Contains(mcp.ValidProtocolVersions, env.Version) && !slices.Contains(s.versions, env.Version):
		return &jsonrpc.Error{
			Code:    unsupportedVersion,
			Message: "unsupported protocol version " + env.Version,
			Data:    map[string]any{"supported": s.versions, "requested": env.Version},
		}
	case !modern && env.Method == string(mcp.MethodInitialize) && len(s.legacyVersions()) == 0:
		return &jsonrpc.Error{
			Code:    mcp.METHOD_NOT_FOUND,
			Message: "initialize is not served: this server speaks " + strings.Join(s.versions, ", "),
		}
	}
	if env.HasCursor && onePage(env.Method) {
		return &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: resources.ErrCursor.Error()}
	}
	return nil
}

// unsupportedVersion is UnsupportedProtocolVersionError of protocol 2026-07-28.
const unsupportedVersion = -32022

// onePage says whether a list of mcp-go's is answered whole, so that it never gives a cursor out. mcp-go v1.2.1 takes
// any that is base64, and answers with the first page again.
func onePage(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList:
		return true
	}
	return false
}

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

// failed is an answer that is an error.
func failed(e *jsonrpc.Error) request.Answer {
	return request.Answer{Err: e, Failed: strconv.Itoa(e.Code)}
}

// Refuse answers a call that never begins: its arguments are not usable, or too many are in flight. It is for
// transports; env need not be whole.
func (s *Server) Refuse(env jsonrpc.Envelope, modern bool, err error) request.Answer {
	result := answers.Refusal(err, env.Name)
	answers.Decorate(result, modern, s.implementation)
	return s.finish(context.Background(), env, modern, result)
}

// finish encodes the result of a call. One that does not fit the wire becomes a refusal; results are cut long before,
// so this is the backstop.
func (s *Server) finish(ctx context.Context, env jsonrpc.Envelope, modern bool, r *mcp.CallToolResult) request.Answer {
	body, err := answers.Encode(r)
	if err != nil {
		ref := s.report(ctx, "encode", err, nil)
		return failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded (ref " + ref +
			")"})
	}
	a := request.Answer{Result: body}
	if r.IsError {
		a.Failed = "tool_error"
	}
	if n := len(body) + len(env.ID); n >= jsonrpc.MaxResponse-answerFrame {
		result := answers.Refusal(&tool.Refusal{
			Code: tool.ResultTooLarge,
			Text: fmt.Sprintf("The result is larger than the wire allows (%d bytes, limit 8 MiB). "+
				"Ask for less: a smaller range, a narrower pattern.", n),
		}, env.Name)
		answers.Decorate(result, modern, s.implementation)
		if a.Result, err = answers.Encode(result); err != nil {
			return failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded"})
		}
		a.Failed = "tool_error"
	}
	return a
}

// answerFrame is what an answer has besides its result and its id, in bytes.
const answerFrame = len(`{"jsonrpc":"2.0","id":,"result":}`) + len("\n")

// observe counts a request that was served.
func (s *Server) observe(r request.Request, a request.Answer, took time.Duration) {
	if s.team == nil {
		return
	}
	version := r.Version
	if !r.Client.Modern {
		version = r.Client.Protocol
	}
	s.team.metrics.Request(r.Method, a.Tool, a.Failed, version, r.Caller.From.Transport, took)
}

// internal is the answer to a request that failed for a reason of ours.
func (s *Server) internal(ctx context.Context, where string, err error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + s.report(ctx, where, err, nil) +
		")"}
}

// report logs what went wrong inside and returns the reference under which it is found. Nothing else of it leaves.
func (s *Server) report(ctx context.Context, where string, err error, stack []byte) string {
	ref := rand.Text()[:8]
	attrs := []any{slog.String("ref", ref), slog.String("where", where), slog.Any("err", err)}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	s.log.ErrorContext(ctx, "internal error", attrs...)
	return ref
}

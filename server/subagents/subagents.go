// Package subagents lets the calls of a client have sub-agents: each is a client of the same server, with a session of
// its own.
package subagents

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/server/waiting"
	"codehand/tools/agent"
	"codehand/tools/agent/loop"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A Host is what sub-agents need of the server. It is safe for concurrent use.
type Host struct {
	Serve  request.Serve
	Memory func(session.Key) state.Store // the part of the Store that a session has
	End    func(session.Key)             // ends what a session runs
	Hooks  *hooks.Runner
	Log    *slog.Logger
}

// Hands are what a call of a client has for its sub-agents: they are its agent.Hands.
type Hands struct {
	Host  *Host
	Call  *request.Turn
	Waits *waiting.Call // of a modern call that may ask its client while it works; else nil
	Leave func()        // gives up the places of the call: its sub-agents take their own, and would wait for it
}

var _ agent.Hands = Hands{}

// Open is agent.Hands.Open.
func (h Hands) Open(ctx context.Context, o agent.Opening) (agent.Child, error) {
	t, s, parent := h.Call, h.Host, *h.Call.State
	h.Leave()
	// Its own name: it is shared with nobody, and no later process goes on with it.
	key := session.Key{Principal: parent.Key.Principal, Session: session.AgentPrefix + parent.Key.Session + "." + o.ID}
	c := &child{
		host: s, key: key, tools: o.Tools, peer: &childPeer{parent: t.Req.Peer},
		request: request.Request{
			Tenant: t.Req.Tenant, Session: key, Caller: t.Req.Caller,
			Client: request.Client{
				ClientRecord: sessions.ClientRecord{
					Name: childClient, CanAsk: parent.Client.CanAsk && !t.Req.Client.Muted &&
						(!t.Req.Client.Modern || h.Waits != nil),
				},
				Roots: t.Req.Client.Roots,
			},
			Child: &request.Child{
				ID: o.ID, Type: o.Type, Depth: o.Depth, Mode: h.mode(&parent, o), Forms: parent.Client.Forms,
				Searches: parent.Searches, Apart: h.apart(o),
				Limits: append(slices.Clip(parent.Over), parent.Limit),
			},
		},
	}
	c.request.Peer = c.peer
	if o.Again {
		return c, nil
	}
	memory := s.Memory(key)
	if err := copyRead(ctx, s.Memory(parent.Key), memory); err != nil {
		return nil, fmt.Errorf("what was read cannot be copied: %w", err)
	}
	cwd := session.NewCell[string](memory, cwdCell)
	at := cmp.Or(o.Apart.Tree, parent.Space.Cwd())
	if _, err := cwd.Change(ctx, func(string) (string, error) { return at, nil }); err != nil {
		return nil, err
	}
	return c, nil
}

// apart is the work tree to which a sub-agent is narrowed: what its parent cannot reach, it cannot either.
func (h Hands) apart(o agent.Opening) agent.Apart {
	if outer := h.Call.Req.Child; outer != nil && outer.Apart.Tree != "" {
		return outer.Apart
	}
	return o.Apart
}

// Begin is agent.Hands.Begin: it asks the hooks of SubagentStart, and ended tells those of SubagentStop.
func (h Hands) Begin(ctx context.Context, id, kind string) (added string, ended func(how string), err error) {
	r, st := h.Host.Hooks, *h.Call.State
	if !r.Wants(hooks.SubagentStart) && !r.Wants(hooks.SubagentStop) {
		return "", func(string) {}, nil
	}
	e := pipeline.SessionEvent(hooks.SubagentStart, &st)
	e.Agent, e.AgentType = id, kind
	if mode, _, err := st.InForce(ctx, time.Now()); err == nil {
		e.Mode = mode
	}
	o, err := r.Starting(ctx, e)
	if err == nil {
		added, err = pipeline.Started(o)
	}
	if err != nil {
		return "", nil, err
	}
	return added, func(how string) {
		e.Name, e.Reason = hooks.SubagentStop, how
		r.Tell(e)
	}, nil
}

// cwdCell is where the current directory of a session is kept.
const cwdCell = "cell.cwd"

// childClient is the name under which sub-agents call.
const childClient = "codehand-agent"

// readFamily is the family of keys of what a session has read.
const readFamily = "seen"

// A keeper is the part of a Store that copyRead needs.
type keeper interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Set(ctx context.Context, key string, value []byte) error
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// copyRead copies what a session has read.
func copyRead(ctx context.Context, from, to keeper) error {
	keys, err := from.Keys(ctx, readFamily)
	if err != nil {
		return err
	}
	for _, key := range keys {
		value, _, err := from.Get(ctx, key)
		if err == nil && value != nil {
			err = to.Set(ctx, key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mode is the mode of a sub-agent: that of its parent as it is at each call, narrowed by its type. Where nobody can say
// what its parent's is, it may only read.
func (h Hands) mode(parent *session.State, o agent.Opening) func(context.Context) permission.Mode {
	outer := h.Call.Req.Child
	return func(ctx context.Context) permission.Mode {
		mode, _, err := parent.InForce(ctx, time.Now())
		if err != nil {
			return permission.Plan
		}
		if outer != nil {
			mode = mode.AtMost(outer.Mode(ctx))
		}
		if o.Narrows {
			mode = mode.AtMost(o.Mode)
		}
		return mode
	}
}

// A child is the session of a sub-agent.
type child struct {
	host    *Host
	key     session.Key
	tools   []string
	request request.Request // without message
	peer    *childPeer
}

// Do is agent.Child.Do: the call enters the server as one of a client does.
func (c *child) Do(ctx context.Context, call loop.Call) loop.Result {
	bad := func(format string, args ...any) loop.Result {
		return loop.Result{CallID: call.ID, IsError: true, Text: fmt.Sprintf(format, args...)}
	}
	if !slices.Contains(c.tools, call.Name) {
		return bad("%s: %s is not available: this sub-agent has only %s.", tool.ToolDisabled, call.Name,
			strings.Join(c.tools, ", "))
	}
	message, err := jsonrpc.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": call.ID, "method": mcp.MethodToolsCall, "params": map[string]any{
			// It waits as long as it takes.
			"name": call.Name, "arguments": call.Arguments, "_meta": map[string]any{"progressToken": call.ID},
		},
	})
	if err != nil {
		return bad("%s: %v", tool.InputInvalid, err)
	}
	env, wrong := jsonrpc.Scan(message)
	if wrong != nil {
		return bad("%s: %s", tool.InputInvalid, wrong.Message)
	}
	r := c.request
	r.Envelope, r.Message = env, message
	r.Client.Muted = c.peer.alone.Load()
	work, _ := c.host.Serve(r)
	a := work(ctx)
	if a.Err != nil {
		return bad("%s", a.Err.Message)
	}
	return readResult(call.ID, a.Result)
}

// readResult is the result of a call as a model gets it.
func readResult(id string, raw json.RawMessage) loop.Result {
	var result struct {
		Content []struct{ Type, Text, Data, MimeType string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return loop.Result{CallID: id, IsError: true, Text: string(tool.Internal) + ": the result cannot be read."}
	}
	out := loop.Result{CallID: id, IsError: result.IsError}
	var texts []string
	for _, c := range result.Content {
		switch c.Type {
		case "text":
			texts = append(texts, c.Text)
		case "image":
			if data, err := base64.StdEncoding.DecodeString(c.Data); err == nil {
				out.Images = append(out.Images, loop.Image{MIME: c.MimeType, Data: data})
			}
		}
	}
	out.Text = strings.Join(texts, "\n")
	return out
}

// Alone is agent.Child.Alone.
func (c *child) Alone() { c.peer.alone.Store(true) }

// Close is agent.Child.Close.
func (c *child) Close() { c.host.End(c.key) }

// forgetTime is how long the Store may take to forget a session.
const forgetTime = 2 * time.Second

// Forget is agent.Child.Forget. What the Store does not forget now expires.
func (c *child) Forget() {
	c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), forgetTime)
	defer cancel()
	memory := c.host.Memory(c.key)
	keys, err := memory.Keys(ctx, "")
	for _, key := range keys {
		err = errors.Join(err, memory.Delete(ctx, key))
	}
	if err != nil {
		c.host.Log.Debug("the session of a sub-agent is not forgotten yet", "error", err)
	}
}

// A childPeer is the other end of the calls of a sub-agent. What they ask goes to the client of the parent, while its
// call waits.
type childPeer struct {
	parent request.Peer
	alone  atomic.Bool
	asking sync.Mutex // one question at a time
}

func (p *childPeer) Notify(string, any) error { return jsonrpc.ErrAnswered }

func (p *childPeer) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if method != string(mcp.MethodElicitationCreate) || p.alone.Load() {
		return nil, jsonrpc.ErrNoCalls
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	return p.parent.Call(ctx, method, params)
}

func (p *childPeer) Gone() <-chan struct{} {
	if p.alone.Load() {
		return nil
	}
	return p.parent.Gone()
}

package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/tools/agent"
	"codehand/tools/agent/loop"
	"codehand/tools/keys"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// agentQueue is how many sub-agents of a principal wait for others at most.
const agentQueue = 16

// newAgents makes what runs the sub-agents of this process.
func newAgents(s *Server, o Options) (*agent.Runner, error) {
	c := o.Config.Tools.Agent
	r := agent.Options{
		Auto: c.Backend == config.AgentAuto, Backend: agent.Backend(c.Backend), Sampling: c.Sampling, Depth: c.Depth,
		Limits: agent.Limits{
			Depth: c.MaxDepth, Parallel: c.MaxParallel, Queue: agentQueue, Turns: c.MaxTurns, Tokens: c.MaxTokens,
			Time: c.MaxTime, MaxOutput: c.TurnTokens,
		},
	}
	if o.Serve {
		r.PerHour = c.MaxPerHour
	}
	r.Tools = func() []agent.Offered { return offered(s.tools.All()) }
	if err := agentModels(s.replies.Log, &r, o); err != nil {
		return nil, err
	}
	if why := noAgentCommand(o); len(c.Command.Argv) > 0 && why != "" {
		s.replies.Log.Warn("agent.command is not used", "reason", why)
	} else if len(c.Command.Argv) > 0 {
		r.Command = agentCommand(s, o)
	}
	return agent.New(r), nil
}

// offered are the tools as sub-agents are given them. A dispatcher only leads to the others.
func offered(all []tool.Tool) []agent.Offered {
	var offers []agent.Offered
	for _, t := range all {
		if !t.Dispatches() {
			offers = append(offers, t.Offered())
		}
	}
	return offers
}

// limitReports gives the tools that return reports of sub-agents as many characters as agent.max_output says.
func limitReports(tools []tool.Tool, most int) []tool.Tool {
	limited := slices.Clone(tools)
	for i, t := range limited {
		if most > 0 && t.Spec.Reports {
			limited[i] = t.Limited(most)
		}
	}
	return limited
}

// agentModels opens the models behind an API. A key that cannot be had is no reason not to start: each task says so.
func agentModels(log *slog.Logger, r *agent.Options, o Options) error {
	c := o.Config.Tools.Agent.API
	switch {
	case o.agentModel != nil:
		r.Model, r.Models = o.agentModel, []string{"test"}
		return nil
	case !c.Configured():
		return nil
	}
	r.Models = append([]string{c.Model}, c.Models...)
	if _, err := c.Key(); err != nil {
		log.Warn("sub-agents have no model", "error", err)
	}
	others := map[string]loop.Model{}
	var idle []func()
	for _, name := range r.Models {
		m, release, err := openModel(c, name)
		if err != nil {
			return fmt.Errorf("agent.api: %w", err)
		}
		others[name], idle = m, append(idle, release)
	}
	r.Model, r.Pick = others[c.Model], func(name string) loop.Model { return others[name] }
	r.Release = func() {
		for _, release := range idle {
			release()
		}
	}
	return nil
}

// noAgentCommand says why the command line of another agent is not started; "": it may be. It runs with the rights of
// this process, so it is for the one person whose process this is.
func noAgentCommand(o Options) string {
	if o.Serve {
		if why := listen.WhyShared(o.Config); why != "" {
			return "it runs with all rights of this server, and others can connect: " + why
		}
	}
	return ""
}

// shortestKey is how long a value is at least that is taken for a key: "none" and the like are words.
const shortestKey = 8

// agentCommand is the command line of another agent, with this server for its tools.
func agentCommand(s *Server, o Options) agent.Command {
	c := o.Config.Tools.Agent.Command
	env := func() []string {
		return sandbox.Environ(sandbox.EnvOptions{
			Roots: s.local.Space.Roots(), Allow: slices.Concat(o.Config.Shell.EnvAllow, c.EnvAllow),
			AllowSecret: c.EnvAllow, Withhold: o.Config.KeyEnvs(), Personal: true,
		})
	}
	return agent.Command{
		Argv: c.Argv, Resume: c.Resume, Dir: filepath.Join(o.Config.StateDir, "agents"), Env: env,
		Hide: func(text string) string {
			for _, entry := range env() {
				name, value, _ := strings.Cut(entry, "=")
				if len(value) >= shortestKey && sandbox.SoundsSecret(name) && sandbox.Matches(c.EnvAllow, name) {
					text = keys.Redact(text, value)
				}
			}
			return text
		},
		Server: func(p agent.Parent, without []string) []string {
			own, err := os.Executable()
			if err != nil {
				own = "codehand"
			}
			if o.Serve {
				people := o.Config.Principals
				without = slices.Concat(without, people.Default.Deny, people.Named[p.Principal].Deny)
			}
			argv := append([]string{own, "stdio"}, o.Config.Handed(without)...)
			// The other agent runs without a person, so its own dialog is nobody's word.
			argv = append(argv, "--permissions-mode="+p.Mode.String(), "--permissions-ask-fallback=deny")
			return append(argv, p.Roots...)
		},
	}
}

// hands is Arrival.Hands. A call that another one makes has none.
func (t *toolCall) hands() agent.Hands { return agentHands{t} }

// agentHands are what a call of a client has for its sub-agents.
type agentHands struct{ call *toolCall }

// Open is agent.Hands.Open.
func (h agentHands) Open(ctx context.Context, o agent.Opening) (agent.Child, error) {
	t, s, parent := h.call, h.call.s, *h.call.State
	t.leavePlaces() // its sub-agents take places of their own, and would wait for it
	// Its own name: it is shared with nobody, and no later process goes on with it.
	key := session.Key{Principal: parent.Key.Principal, Session: "agent:" + parent.Key.Session + "." + o.ID}
	c := &child{
		server: s, key: key, tools: o.Tools, peer: &childPeer{parent: t.Req.Peer},
		request: request.Request{
			Tenant: t.Req.Tenant, Session: key, Caller: t.Req.Caller,
			Client: request.Client{
				ClientRecord: sessions.ClientRecord{
					Name: childClient, CanAsk: parent.Client.CanAsk && !t.Req.Client.Muted &&
						(!t.Req.Client.Modern || t.waits != nil),
				},
				Roots: t.Req.Client.Roots,
			},
			Child: &request.Child{
				ID: o.ID, Type: o.Type, Depth: o.Depth, Mode: h.mode(&parent, o), Forms: parent.Client.Forms,
				Searches: parent.Searches,
			},
		},
	}
	c.request.Peer = c.peer
	if o.Again {
		return c, nil
	}
	memory := s.engines.memory(key)
	if err := copyRead(ctx, s.engines.memory(parent.Key), memory); err != nil {
		return nil, fmt.Errorf("what was read cannot be copied: %w", err)
	}
	cwd := session.NewCell[string](memory, cwdCell)
	if _, err := cwd.Change(ctx, func(string) (string, error) { return parent.Space.Cwd(), nil }); err != nil {
		return nil, err
	}
	return c, nil
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
func (h agentHands) mode(parent *session.State, o agent.Opening) func(context.Context) permission.Mode {
	outer := h.call.Req.Child
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

// asChild makes the state that of a sub-agent, if it makes the call.
func (t *toolCall) asChild(ctx context.Context) {
	of := t.Req.Child
	if of == nil {
		return
	}
	mode := of.Mode(ctx)
	t.State.Start, t.State.Highest, t.State.Depth = mode, mode, of.Depth
	t.State.Client.Forms, t.State.Searches = of.Forms, of.Searches
	t.State.Samples, t.State.PageModel = false, false
}

// A child is the session of a sub-agent.
type child struct {
	server  *Server
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
	work, _ := c.server.Serve(r)
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
func (c *child) Close() { c.server.sessions.End(c.key) }

// forgetTime is how long the Store may take to forget a session.
const forgetTime = 2 * time.Second

// Forget is agent.Child.Forget. What the Store does not forget now expires.
func (c *child) Forget() {
	c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), forgetTime)
	defer cancel()
	memory := c.server.engines.memory(c.key)
	keys, err := memory.Keys(ctx, "")
	for _, key := range keys {
		err = errors.Join(err, memory.Delete(ctx, key))
	}
	if err != nil {
		c.server.replies.Log.Debug("the session of a sub-agent is not forgotten yet", "error", err)
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

package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/cards"
	"codehand/server/instructions"
	"codehand/server/jsonrpc"
	"codehand/server/notices"
	"codehand/server/prompts"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/results"
	"codehand/tools/session"
)

// Parts are what a Gateway answers with. They do not change once a request is served.
type Parts struct {
	Replies  replies.Replies
	Tools    *toolset.Set
	Profiles toolset.Profiles
	Notices  *notices.Notifier
	// Active is what a session has found, without opening it: nothing begins because a client lists.
	Active func(session.Key) session.Cell[[]string]
	// KeepsCalls: a call that arrives again with the same codehand/call is made once, so a bridge may send it again.
	KeepsCalls bool
}

// A Gateway answers requests through mcp-go. It is safe for concurrent use.
type Gateway struct {
	Parts
	// Server is where an author of Extend adds what is no tool of ours, before anything is served.
	Server    *mcpserver.MCPServer
	resources *resources.Library
	prompts   *prompts.Library
}

// A turn is the Turn of a request that mcp-go answers, with what our hooks found for it.
type turn struct {
	*request.Turn
	g      *Gateway
	prompt *prompts.Prompt   // of a prompts/get of ours; nil: there is none of its name
	tools  []toolset.Listing // of a tools/list of ours
}

// bridgeCapability says that of KeepsCalls; `codehand connect` looks for it.
const bridgeCapability = "codehand/bridge"

// New makes a Gateway.
func New(p Parts) *Gateway {
	g := &Gateway{Parts: p, resources: p.Notices.Resources, prompts: p.Notices.Prompts}
	about := p.Replies.Implementation
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterListTools(g.listTools)
	hooks.AddAfterListResources(g.listResources)
	hooks.AddAfterListPrompts(g.listPrompts)
	hooks.AddBeforeGetPrompt(g.findPrompt)
	hooks.AddAfterInitialize(g.greet)
	hooks.AddAfterDiscover(g.discover)
	complete := completions{g}
	g.Server = mcpserver.NewMCPServer(about.Name, about.Version,
		mcpserver.WithTitle(about.Title),
		mcpserver.WithDescription(about.Description),
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithPromptCapabilities(true),
		mcpserver.WithResourceCapabilities(true, false),
		mcpserver.WithCompletions(),
		mcpserver.WithResourceCompletionProvider(complete),
		mcpserver.WithPromptCompletionProvider(complete),
		mcpserver.WithExtensions(resources.Extensions()),
		mcpserver.WithLogging(),
		mcpserver.WithHooks(hooks),
		mcpserver.WithMethodCacheHints(mcp.MethodServerDiscover, 3_600_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodToolsList, 300_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodPromptsList, 60_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesTemplatesList, 3_600_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesList, 0, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesRead, 0, mcp.CacheScopePrivate),
	)
	if p.KeepsCalls {
		mcpserver.WithExperimental(map[string]any{bridgeCapability: map[string]any{"version": 1}})(g.Server)
	}
	for _, t := range resources.Templates() {
		g.Server.AddResourceTemplate(t, g.readResource)
	}
	for _, r := range resources.Constants() {
		g.Server.AddResource(r, g.readResource)
	}
	g.Server.AddResource(mcp.Resource{URI: cards.URI, Name: "card", MIMEType: cards.MIMEType}, readCard)
	g.Server.AddPrompt(prompts.Commit, g.getPrompt)
	return g
}

type turnKey struct{}

// turnFrom returns the turn of a handler's request. Every request that reaches mcp-go has one.
func turnFrom(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

// Dispatch serves a request through mcp-go.
func (g *Gateway) Dispatch(ctx context.Context, of *request.Turn) request.Answer {
	t := &turn{Turn: of, g: g}
	return t.handle(ctx, &clientSession{t: t, id: "request"})
}

// handle is Dispatch with a session of mcp-go's.
func (t *turn) handle(ctx context.Context, session *clientSession) request.Answer {
	g := t.g
	ctx = mcpserver.WithSupportedProtocolVersions(g.Server.WithContext(ctx, session), t.g.Replies.Versions)
	ctx = context.WithValue(ctx, turnKey{}, t)
	return t.encode(ctx, g.Server.HandleMessage(ctx, t.Req.Message))
}

// encode makes our answer of mcp-go's.
func (t *turn) encode(ctx context.Context, resp mcp.JSONRPCMessage) request.Answer {
	if t.Failure != nil {
		return replies.Failed(t.Failure)
	}
	switch r := resp.(type) {
	case mcp.JSONRPCError:
		if own, ok := t.extended(ctx, r.Error.Code); ok {
			return own
		}
		if t.Req.Method == string(mcp.MethodToolsCall) && r.Error.Code == mcp.INVALID_PARAMS &&
			t.g.Server.GetTool(t.Req.Name) == nil {
			return t.unknownTool()
		}
		return replies.Failed(t.mapError(r.Error))
	case mcp.JSONRPCResponse:
		switch result := r.Result.(type) {
		case mcp.ListToolsResult:
			list, err := t.listed(result)
			if err != nil {
				return replies.Failed(t.g.Replies.Internal(ctx, "tools", err))
			}
			r.Result = list
		case mcp.SubscriptionsListenResult:
			// mcp-go decoded the id, which loses digits of a large one.
			result.EnsureResultMeta().SetMetaField(mcp.MetaKeySubscriptionID, t.Req.ID)
			r.Result = result
		case *mcp.CallToolResult: // of Extend
			return t.g.Replies.Finish(ctx, t.Req.Envelope, t.Req.Client.Modern, result)
		case mcp.CallToolResult:
			return t.g.Replies.Finish(ctx, t.Req.Envelope, t.Req.Client.Modern, &result)
		}
		a := t.g.Replies.Result(ctx, t.Req.ID, r.Result)
		if a.Err == nil {
			a.Client = t.Said
		}
		return a
	}
	ref := t.g.Replies.Report(ctx, "dispatch", fmt.Errorf("mcp-go answered %T to %s", resp, t.Req.Method), nil)
	return replies.Failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"})
}

// mapError gives mcp-go's errors the words of this server where its own do not help.
func (t *turn) mapError(e mcp.JSONRPCErrorDetails) *jsonrpc.Error {
	notFound := strings.Contains(e.Message, "not found")
	switch method := mcp.MCPMethod(t.Req.Method); {
	case method == mcp.MethodResourcesRead &&
		(e.Code == mcp.RESOURCE_NOT_FOUND || e.Code == mcp.INVALID_PARAMS && notFound):
		return t.noResource()
	case method == mcp.MethodPromptsGet && e.Code == mcp.INVALID_PARAMS && notFound:
		return &jsonrpc.Error{Code: e.Code, Message: fmt.Sprintf("unknown prompt %q", results.Line(t.Req.Name, 80))}
	}
	// names of Go's types help nobody
	if strings.Contains(e.Message, "json:") || strings.Contains(e.Message, "unparsable") {
		e.Code, e.Message = mcp.INVALID_PARAMS, "the params do not have the form of "+results.Line(t.Req.Method, 80)
	}
	return &jsonrpc.Error{Code: e.Code, Message: results.Line(e.Message, 300), Data: e.Data}
}

// unknownTool answers a call of a tool that does not exist. The protocol has an error for it, which many clients keep
// from the model; as a result the model reads it, with the names that are near. What a modern client can be asked is
// known to mcp-go alone here, so it is taken for one that cannot: better no name than one that it cannot call.
func (t *turn) unknownTool() request.Answer {
	c := t.Req.Client
	known := t.Req.Tenant.Offers(!c.Modern && c.CanAsk).Catalog
	env := t.Req.Envelope
	env.Name, _ = results.Show(results.Line(env.Name, 80)) // it is in _meta, too
	return t.g.Replies.Refuse(env, c.Modern, t.g.Tools.NoSuchTool(t.Req.Tenant, known, t.Req.Name))
}

// greet notes what a client said about itself in a handshake that succeeded, caps the version of the answer to what the
// operator serves, and instructs the client's model.
func (g *Gateway) greet(ctx context.Context, _ any, req *mcp.InitializeRequest, result *mcp.InitializeResult) {
	t := turnFrom(ctx)
	if vs := g.Replies.LegacyVersions(); len(vs) > 0 && !slices.Contains(vs, result.ProtocolVersion) {
		result.ProtocolVersion = vs[0]
	}
	info, caps := req.Params.ClientInfo, req.Params.Capabilities
	t.Said = &sessions.ClientRecord{
		Name: results.Line(info.Name, maxClientName), Version: results.Line(info.Version, maxClientName),
		Protocol: result.ProtocolVersion, CanAsk: canElicit(caps.Elicitation), HasRoots: caps.Roots != nil,
		Samples: caps.Sampling != nil && caps.Sampling.Tools != nil, Sampling: caps.Sampling != nil,
		Cards: cards.Shows(caps.Extensions),
	}
	if g.Replies.Extended { // the conformance fixture asks for more than we do
		t.Said.Capabilities = caps
	}
	result.Instructions = g.instruct(ctx, t.Req.Tenant,
		g.Profiles.Add(session.Client{Name: t.Said.Name, CanAsk: t.Said.CanAsk}, g.Profiles.Of(t.Said.Name), "",
			t.Req.Caller.From.Transport),
		t.Req.Caller.From.Transport)
	g.Replies.Log.InfoContext(ctx, "client initialized", "name", results.Line(info.Name, 80),
		"version", results.Line(info.Version, 80), "principal", t.Req.Session.Principal)
}

// maxClientName bounds what is kept of a client's name and version, in characters.
const maxClientName = 200

// instruct makes the server's words to the model of one client.
func (g *Gateway) instruct(ctx context.Context, at *tenants.Tenant, c session.Client, transport string) string {
	a := instructions.Author{Log: g.Replies.Log, Tools: g.Tools.All(), Profiles: g.Profiles,
		SkillTime: g.Notices.SkillTime}
	return a.Instruct(ctx, at, c, transport)
}

// discover instructs the model of a client of a protocol without a handshake.
func (g *Gateway) discover(ctx context.Context, _ any, _ *mcp.DiscoverRequest, result *mcp.DiscoverResult) {
	t := turnFrom(ctx)
	if c, bad := g.ClientOf(t.Turn); bad == nil {
		result.Instructions = g.instruct(ctx, t.Req.Tenant, c, t.Req.Caller.From.Transport)
	}
}

// listTools replaces what mcp-go would list: no aliases, nothing that is switched off, and of the deferred tools none,
// those that the session found, or all, by client and setting. What it leaves out stays callable, but for tools that a
// rule or the token forbids. In the modern era the list depends on the request and the configuration alone, unless the
// client listens for its changes; in any, its bytes are the same as long as it holds the same tools.
func (g *Gateway) listTools(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	t := turnFrom(ctx)
	c, bad := g.ClientOf(t.Turn)
	if bad != nil {
		t.Failure = bad
		return
	}
	var active []string
	if !c.Modern || c.Rereads {
		var err error
		if active, err = g.Active(t.Req.Session).Load(ctx); err != nil {
			// The core is better than nothing, and every tool can still be called.
			g.Replies.Log.WarnContext(ctx, "cannot load the tools that a session found; listing the core only",
				"err", err)
		}
	}
	if c.SeesAll { // it finds tools in its list alone
		g.Tools.Wake(t.Req.Session)
	}
	offer := t.Req.Tenant.Offers(c.CanAsk)
	t.tools = offer.Listed(c, t.Profile, active)
}

// toolList is the result of tools/list with entries that are encoded already.
type toolList struct {
	mcp.ListToolsResult
	Tools []json.RawMessage `json:"tools"` // in the place of the field of the same name
}

// listed puts the entries of the caller's session before those of Extend.
func (t *turn) listed(result mcp.ListToolsResult) (toolList, error) {
	l := toolList{ListToolsResult: result, Tools: make([]json.RawMessage, 0, len(t.tools)+len(result.Tools))}
	for _, x := range t.tools {
		entry, err := x.JSON()
		if err != nil {
			return l, err
		}
		l.Tools = append(l.Tools, entry)
	}
	for _, x := range result.Tools {
		entry, err := jsonrpc.Marshal(x)
		if err != nil {
			return l, err
		}
		l.Tools = append(l.Tools, entry)
	}
	return l, nil
}

// listResources replaces what mcp-go would list by what the caller's session has.
func (g *Gateway) listResources(ctx context.Context, _ any, _ *mcp.ListResourcesRequest,
	result *mcp.ListResourcesResult) {
	t := turnFrom(ctx)
	list, err := g.resources.List(ctx, t.View())
	if err != nil {
		t.Failure = g.Replies.Internal(ctx, "resources", err)
		return
	}
	for _, r := range result.Resources {
		if !resources.Constant(r.URI) && r.URI != cards.URI { // of Extend
			list = append(list, r)
		}
	}
	result.Resources = list
}

// readResource is the handler of all resources. The answer to what cannot be read is the turn's failure, because mcp-go
// v1.2.1 lets no handler choose a code (server/handler_errors.go:19).
func (g *Gateway) readResource(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	t := turnFrom(ctx)
	contents, err := g.resources.Read(ctx, t.View(), req.Params.URI)
	switch {
	case errors.Is(err, resources.ErrNone):
		t.Failure = t.noResource()
	case errors.Is(err, resources.ErrWindow), errors.Is(err, resources.ErrTooLarge):
		t.Failure = t.badURI(mcp.INVALID_PARAMS, err)
	case err != nil:
		t.Failure = g.Replies.Internal(ctx, "resource", err)
	}
	return []mcp.ResourceContents{contents}, nil
}

// readCard is the handler of the page that chats draw results with. It is the same for everybody, and in no list: the
// tools name it.
func readCard(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	return []mcp.ResourceContents{mcp.TextResourceContents{
		URI: cards.URI, MIMEType: cards.MIMEType, Text: cards.HTML, Meta: cards.Meta(),
	}}, nil
}

// noResource is the error for a resource that the caller does not have, even if another session has it.
func (t *turn) noResource() *jsonrpc.Error {
	code := mcp.RESOURCE_NOT_FOUND
	if t.Req.Client.Modern {
		code = mcp.INVALID_PARAMS
	}
	return t.badURI(code, resources.ErrNone)
}

func (t *turn) badURI(code int, err error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: err.Error(), Data: map[string]any{"uri": t.Req.URI}}
}

// extended answers a method of the skills extension in the place of mcp-go, which has made all its checks by then and
// knows no such method. ok is false for any other method, and for any other answer of mcp-go.
func (t *turn) extended(ctx context.Context, code int) (a request.Answer, ok bool) {
	if code != mcp.METHOD_NOT_FOUND || !resources.Extends(t.Req.Method) {
		return a, false
	}
	result, err := t.g.resources.Extend(ctx, t.View(), resources.Asked{
		Method: t.Req.Method, URI: t.Req.URI, Cursor: t.Req.Cursor, HasCursor: t.Req.HasCursor,
	})
	switch {
	case errors.Is(err, resources.ErrNone), errors.Is(err, resources.ErrNoDirectory):
		return replies.Failed(t.badURI(mcp.INVALID_PARAMS, err)), true
	case errors.Is(err, resources.ErrCursor):
		return replies.Failed(&jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: err.Error()}), true
	case err != nil:
		return replies.Failed(t.g.Replies.Internal(ctx, t.Req.Method, err)), true
	}
	if t.Req.Client.Modern {
		result.SetResultType(mcp.ResultTypeComplete)
		result.EnsureResultMeta().SetServerInfo(t.g.Replies.Implementation)
		result.SetCacheHints(0, mcp.CacheScopePrivate) // files change at any time, and their digests with them
	}
	return t.g.Replies.Result(ctx, t.Req.ID, result), true
}

// listPrompts replaces what mcp-go would list by what the caller's session has.
func (g *Gateway) listPrompts(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, result *mcp.ListPromptsResult) {
	t := turnFrom(ctx)
	ours, err := g.prompts.List(ctx, t.View())
	if err != nil {
		t.Failure = g.Replies.Internal(ctx, "prompts", err)
		return
	}
	list := make([]mcp.Prompt, 0, len(ours))
	for _, p := range ours {
		list = append(list, p.MCP)
	}
	g.Notices.ShownPrompts(t.Turn).Set(t.State.Key, prompts.Digest(ours))
	for _, p := range result.Prompts {
		if !slices.ContainsFunc(list, func(own mcp.Prompt) bool { return own.Name == p.Name }) { // of Extend
			list = append(list, p)
		}
	}
	result.Prompts = list
}

// findPrompt finds the prompt that a request names. mcp-go knows the prompt commit alone, so every other name becomes
// that one on the way to the handler. What the session does not have keeps its name, for which mcp-go has no handler.
func (g *Gateway) findPrompt(ctx context.Context, _ any, req *mcp.GetPromptRequest) {
	t := turnFrom(ctx)
	p, err := g.prompts.Find(ctx, t.View(), req.Params.Name)
	switch {
	case err != nil:
		t.Failure = g.Replies.Internal(ctx, "prompts", err)
	case p != nil:
		t.prompt = p
		req.Params.Name = prompts.Commit.Name
	}
}

// getPrompt is the handler of all prompts.
func (g *Gateway) getPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	t := turnFrom(ctx)
	if t.prompt == nil {
		return &mcp.GetPromptResult{}, nil // the failure says why
	}
	text, err := g.prompts.Text(ctx, t.View(), t.prompt, req.Params.Arguments)
	if bad, ok := errors.AsType[*prompts.ArgumentError](err); ok {
		t.Failure = &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: bad.Error()}
	} else if err != nil {
		t.Failure = g.Replies.Internal(ctx, "prompt", err)
	}
	return &mcp.GetPromptResult{
		Description: t.prompt.MCP.Description,
		Messages:    []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}},
	}, nil
}

// completions completes the variables of resource templates and the arguments of prompts, with what the caller's
// session has. What it does not know has none.
type completions struct{ *Gateway }

// maxCompletions is how many values one answer has (the protocol's own limit).
const maxCompletions = 100

// CompleteResourceArgument returns ids, names and paths that begin with what was typed: ids newest first, the rest in
// order.
func (c completions) CompleteResourceArgument(
	ctx context.Context, uri string, arg mcp.CompleteArgument, known mcp.CompleteContext,
) (*mcp.Completion, error) {
	all, err := c.resources.Complete(ctx, turnFrom(ctx).View(), uri, arg.Name, known.Arguments)
	return c.answer(ctx, all, arg.Value, err), nil
}

// CompletePromptArgument returns what the hint of a skill offers for the word that is being typed, behind the words
// before it.
func (c completions) CompletePromptArgument(
	ctx context.Context, name string, arg mcp.CompleteArgument, _ mcp.CompleteContext,
) (*mcp.Completion, error) {
	all, err := c.prompts.Complete(ctx, turnFrom(ctx).View(), name, arg.Name, arg.Value)
	return c.answer(ctx, all, arg.Value, err), nil
}

// answer is what begins with typed.
func (c completions) answer(ctx context.Context, all []string, typed string, err error) *mcp.Completion {
	if err != nil {
		turnFrom(ctx).Failure = c.Replies.Internal(ctx, "completion", err)
	}
	found := &mcp.Completion{Values: []string{}}
	for _, value := range all {
		if !strings.HasPrefix(value, typed) {
			continue
		}
		found.Total++
		if len(found.Values) < maxCompletions {
			found.Values = append(found.Values, value)
		}
	}
	found.HasMore = found.Total > len(found.Values)
	return found
}

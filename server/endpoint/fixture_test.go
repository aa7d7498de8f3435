package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/metrics"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/session"
)

// A site is an endpoint without a server behind it: a setup answers its requests.
type site struct {
	*Endpoint
	by caller // who calls, without a token
}

// A setup says what a site is made of. Zero fields: defaults.
type setup struct {
	settings map[string]string
	call     func(context.Context, request.Request) request.Answer // answers a tools/call; nil: at once
	changes  bool                                                  // a tools/call may change something
	// receives the Peer of messages that answer no request; nil: they are dropped
	follow   func(request.Peer)
	tireless bool // the caller has no quota
}

// newSite makes an endpoint whose server answers an initialize, a tools/call as o says, and all else by {}.
func newSite(t testing.TB, o setup) *site {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	flags := map[string]string{"state-dir": dir, "http-sse": "true"}
	for k, v := range o.settings {
		flags[replaytest.FlagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{WorkDir: dir, Home: dir, Flags: flags, Serve: true})
	must(t, err)
	who, _ := auth.Resolve(auth.LocalID, "")
	who.Roots, who.Via = []string{dir}, auth.ModeNone
	if o.tireless {
		who.Quota = limits.Quota{}
	}
	porter, err := auth.New(auth.Options{Mode: auth.ModeNone, LocalPeer: "any", Local: who})
	must(t, err)
	store := memoryStore(t)
	signer, err := NewSigner(t.Context(), store, cfg.Session.TTL)
	must(t, err)
	e := New(Options{
		Server: stdio.Server{
			Serve: o.serve, Refuse: refuse, Unusable: func(_ string, bad *jsonrpc.Fault) error { return errors.New(bad.Message) },
			Follow: func(_ session.Key, p request.Peer) func() {
				if o.follow != nil {
					o.follow(p)
				}
				return func() {}
			},
			Hurry: func() {}, RootsTime: replaytest.HangAfter,
		},
		HTTP: cfg.HTTP, Session: cfg.Session, Log: log, Versions: []string{jsonrpc.FirstModern, legacyVersion},
		Patience: replaytest.HangAfter,
		Porter:   porter, Tenants: tenants.NewRegistry(&tenants.Maker{Config: cfg, Tools: new(toolset.Set), Log: log, State: dir, Durable: true}),
		Signer: signer, Records: sessions.Records{Store: store, Log: log},
		Team: Team{
			Metrics: metrics.New(metrics.Options{}), Health: metrics.NewHealth("r1", "test"), Mode: auth.ModeNone,
			Event: func(string, map[string]any) {}, Refused: func(string, error) {}, Limited: func(string, string) {},
		},
		CheckHeaders: func(jsonrpc.Envelope, []byte, http.Header) *jsonrpc.Error { return nil },
		Forget:       func(session.Key) {},
		Sweep:        func() {},
		Report: func(_ context.Context, where string, err error) *jsonrpc.Error {
			t.Errorf("%s: %v", where, err)
			return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
		},
	})
	_ = e.base.Done() // the channel is made here, so that bubbles of synctest may wait for it, too
	t.Cleanup(func() { e.stop(errDraining) })
	return &site{Endpoint: e, by: caller{who: who, limits: porter.Limits(who), done: func() {}}}
}

// legacyVersion is the newest protocol with a handshake.
const legacyVersion = "2025-11-25"

// serve is the server of a site.
func (o setup) serve(r request.Request) (request.Work, bool) {
	said := func(a request.Answer) request.Work { return func(context.Context) request.Answer { return a } }
	switch {
	case r.Method == methodInitialize && strings.Contains(string(r.Message), `"protocolVersion":"`):
		return said(request.Answer{Result: json.RawMessage(`{"protocolVersion":"` + legacyVersion + `"}`), Client: &sessions.ClientRecord{Protocol: legacyVersion}}), false
	case r.Method == methodInitialize:
		return said(request.Answer{Err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no version"}}), false
	case r.Method == methodCall && o.call != nil:
		return func(ctx context.Context) request.Answer { return o.call(ctx, r) }, o.changes
	}
	return said(request.Answer{Result: json.RawMessage(`{}`)}), o.changes && r.Method == methodCall
}

// refuse says as the result of a call why it never begins.
func refuse(_ jsonrpc.Envelope, _ bool, err error) request.Answer {
	body, _ := json.Marshal(map[string]any{"isError": true, "content": err.Error()})
	return request.Answer{Result: body}
}

const (
	initializeLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacyVersion + `"}}`
	pingLine       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	callLine       = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool"}}`
)

// posted is a POST as the endpoint gets it from net/http; head are names and values of its header.
func posted(ctx context.Context, body string, head ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, pathMCP, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	return r
}

// hello begins a legacy session and returns its id.
func (x *site) hello(t testing.TB) string {
	t.Helper()
	w := httptest.NewRecorder()
	x.post(w, posted(t.Context(), initializeLine), x.by, "")
	id := w.Header().Get(headerSession)
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

// listen serves the endpoint on a port until the test ends, and returns its URL.
func (x *site) listen(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(x.on(listen.Listener{Unix: true})) // any Host
	t.Cleanup(s.Close)
	return s.URL
}

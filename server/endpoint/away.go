package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/nodes"
	"codehand/server/relay"
	"codehand/tools/tool"
)

// A Cluster is what the endpoint needs of the other nodes that share the work. Each principal has one node, where its
// workspace is and everything of it is served: a request that reaches another one is sent there whole.
type Cluster struct {
	Nodes  *nodes.Nodes
	Caller *relay.Caller
}

// awayTries is how often it is looked up again who serves a principal: a place changes when an operator moves it.
const awayTries = 3

// away serves a request whose principal another node serves. It returns false if this node does; then nothing was
// written.
func (e *Endpoint) away(w http.ResponseWriter, r *http.Request, who auth.Principal, ip string) bool {
	all := e.o.Cluster.Nodes
	var body []byte
	read := false
	for range awayTries {
		at, err := all.Owner(r.Context(), who.ID)
		if err != nil {
			deny(w, r, e.unplaced(err))
			return true
		}
		if at.Node == all.Name() {
			if read {
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return false
		}
		if r.Method == http.MethodPost && !read {
			var bad *auth.Error
			if body, bad = e.body(w, r, caller{}); bad != nil {
				deny(w, r, bad)
				return true
			}
			read = true
		}
		pass, err := json.Marshal(who.Pass())
		if err != nil {
			deny(w, r, err)
			return true
		}
		err = e.send(w, r, who, body, relay.Target{
			Node: at.Node, Principal: who.ID, Epoch: at.Epoch, Pass: pass, IP: ip,
		})
		if !errors.Is(err, relay.ErrMoved) {
			if err != nil {
				e.unanswered(w, r, body, err)
			}
			return true
		}
		if err := all.Again(r.Context(), who.ID); err != nil {
			deny(w, r, e.unplaced(err))
			return true
		}
	}
	deny(w, r, nodeDown("The machine with your workspace does not take requests now. Nothing was done."))
	return true
}

// send sends a request to another node, and writes its answer. It ends when the client leaves, its token is revoked or
// this process ends.
func (e *Endpoint) send(w http.ResponseWriter, r *http.Request, who auth.Principal, body []byte,
	to relay.Target) error {
	ctx, cancel := context.WithCancelCause(e.base)
	defer cancel(nil)
	stop := context.AfterFunc(r.Context(), func() { cancel(jsonrpc.ErrClosed) })
	defer stop()
	entry := &active{who: who, cancel: cancel}
	if r.Method == http.MethodGet || isListen(body) {
		entry.kind = kindAway
	}
	if err := e.begin(entry); err != nil {
		return err
	}
	defer e.work.end(entry)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // each write has its own
	return e.o.Cluster.Caller.Do(ctx, w, r, to, body)
}

// kindAway is the kind of a stream that another node serves.
const kindAway = "away"

// isListen says whether a message opens a stream.
func isListen(body []byte) bool {
	if !bytes.Contains(body, []byte(methodListen)) {
		return false
	}
	env, fault := jsonrpc.Scan(body)
	return fault == nil && env.Method == methodListen
}

// unplaced is the refusal of a principal whom no node can serve now.
func (e *Endpoint) unplaced(err error) error {
	if full, ok := errors.AsType[*nodes.FullError](err); ok {
		e.o.Log.Warn("a principal was refused: no node has room", "nodes", full.Nodes)
		return &auth.Error{Status: http.StatusServiceUnavailable, Code: "no_room", RetryAfter: time.Minute,
			Message: full.Error() + ". The operator can start one more, or raise cluster.capacity."}
	}
	e.o.Log.Warn("it is not known which node serves a principal", "err", err)
	return storeDown()
}

func nodeDown(text string) *auth.Error {
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "node_down", RetryAfter: 10 * time.Second,
		Message: text}
}

// The texts for a node that does not answer: the request did not reach it, or it may have.
const (
	nodeAway = "The machine with your workspace does not answer. Nothing was done. Try again in a minute."
	nodeLost = "The machine with your workspace stopped answering during this call, which may have been carried out. " +
		"Wait until it is back, look at what is there (read the file, list the jobs), and repeat only what is missing."
)

// unanswered answers a request whose node was lost before the end of its answer. It is not sent again: it may have run.
func (e *Endpoint) unanswered(w http.ResponseWriter, r *http.Request, body []byte, err error) {
	lost, ok := errors.AsType[*relay.LostError](err)
	if !ok {
		deny(w, r, err)
		return
	}
	e.o.Log.Warn("another node does not answer", "err", err)
	text := nodeAway
	if lost.Sent {
		text = nodeLost
	}
	stream := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	env, fault := jsonrpc.Scan(body)
	var line []byte
	switch {
	case fault != nil || env.ID == nil || env.Method == "":
	case env.Method == methodCall:
		modern := cmp.Or(env.Modern(), r.Header.Get(headerVersion) >= jsonrpc.FirstModern)
		line = e.o.Refuse(env, modern, tool.Refuse(tool.NodeDown, "%s", text)).Line(env.ID)
	case lost.Status != 0:
		line = jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: text,
			Data: map[string]string{"code": "node_down"}})
	}
	switch {
	case lost.Status == 0 && line != nil:
		(&exchange{w: w, r: r}).reply(http.StatusOK, line)
	case lost.Status == 0:
		deny(w, r, nodeDown(text))
	case stream && line != nil:
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		_, _ = w.Write([]byte("event: message\ndata: " + string(bytes.TrimSuffix(line, []byte("\n"))) + "\n\n"))
	case !stream:
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// errMoved is the cause of a cancel when another node serves a principal from now on.
var errMoved = errors.New("another machine serves this principal now")

// Dismiss ends the requests and streams of a principal whom another node serves from now on, and forgets its sessions:
// that node goes on with them.
func (e *Endpoint) Dismiss(principal string) {
	e.work.cancelIf(func(x *active) bool { return x.who.ID == principal && x.kind != kindAway }, errMoved)
	e.sessions.dismiss(principal)
	e.o.ForgetAll(principal)
}

// ServeFrom serves a request that another node sent, for a principal whose workspace this one has.
func (e *Endpoint) ServeFrom(w http.ResponseWriter, r *http.Request, pass json.RawMessage, ip string) {
	route, handle, ok := e.route(r.URL.Path)
	var x auth.Pass
	if err := json.Unmarshal(pass, &x); err != nil || !ok {
		deny(w, r, &auth.Error{Status: http.StatusBadRequest, Code: "node_version",
			Message: "this node does not understand the one that was asked: their versions differ"})
		return
	}
	if e.work.closing() {
		deny(w, r, draining())
		return
	}
	who, err := e.o.Porter.Know(x)
	if err != nil {
		e.o.Team.Refused(ip, err)
		deny(w, r, err)
		return
	}
	e.serve(w, r, who, ip, route, handle)
}

package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
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

const (
	// awayTries is how often it is looked up again who serves a principal: a place changes when an operator moves it,
	// or its node dies.
	awayTries = 3

	// refusedTime is how long a node is asked again that does not get a request, or says that it does not serve a
	// principal whose place names it: it may be about to begin, or to claim that place.
	refusedTime = 8 * time.Second
	refusedWait = 250 * time.Millisecond
)

// A trip is a request on its way to the node that serves its principal.
type trip struct {
	e   *Endpoint
	w   http.ResponseWriter
	r   *http.Request
	who auth.Principal
	ip  string

	body []byte
	read bool
	call string   // names the request where it may be sent again; "": nothing was sent
	sent *resumed // what nodes have written; nil: none was asked
}

// away serves a request whose principal another node serves. It returns false if this node does.
func (t *trip) away() bool {
	all := t.e.o.Cluster.Nodes
	began, told := time.Now(), false
	for tries := 0; tries < awayTries; {
		at, err := all.Owner(t.r.Context(), t.who.ID)
		if err != nil {
			t.deny(t.e.unplaced(err))
			return true
		}
		if at.Node == all.Name() {
			if t.read {
				t.r.Body, t.r.ContentLength = io.NopCloser(bytes.NewReader(t.body)), int64(len(t.body))
			}
			return false
		}
		if t.r.Method == http.MethodPost && !t.read {
			var bad *auth.Error
			if t.body, bad = t.e.body(t.w, t.r, caller{}); bad != nil {
				t.deny(bad)
				return true
			}
			t.read = true
		}
		err = t.send(at)
		lost, isLost := errors.AsType[*relay.LostError](err)
		switch {
		case err == nil:
			t.arrived()
			return true
		case isLost:
			if lost.Sent || !told {
				told = true
				t.e.o.Log.Warn("another node does not answer", "node", at.Node, "err", err)
			}
			if !t.sent.next() {
				t.unanswered(lost)
				return true
			}
			if _, err := all.Successor(t.r.Context(), at, lost.Sent); err != nil {
				t.unanswered(lost)
				return true
			}
			if lost.Sent || time.Since(began) > refusedTime {
				tries++
			}
		case !errors.Is(err, relay.ErrMoved):
			t.deny(err)
			return true
		default:
			if err := all.Again(t.r.Context(), t.who.ID); err != nil {
				t.deny(t.e.unplaced(err))
				return true
			}
			if !all.Shared() || time.Since(began) > refusedTime {
				tries++
				continue
			}
			if now, err := all.Owner(t.r.Context(), t.who.ID); err == nil && now.Epoch == at.Epoch {
				select {
				case <-time.After(refusedWait):
				case <-t.r.Context().Done():
					return true
				}
			}
		}
	}
	t.deny(nodeDown("The machine with your workspace does not take requests now. Nothing was done."))
	return true
}

// send sends the request to another node, and writes its answer. It ends when the client leaves, its token is revoked
// or this process ends.
func (t *trip) send(at nodes.Owner) error {
	pass, err := json.Marshal(t.who.Pass())
	if err != nil {
		return err
	}
	if t.sent == nil {
		t.sent = &resumed{ResponseWriter: t.w}
		if t.e.o.Cluster.Nodes.Shared() && t.r.Method == http.MethodPost {
			t.call = rand.Text()
		}
	}
	ctx, cancel := context.WithCancelCause(t.e.base)
	defer cancel(nil)
	stop := context.AfterFunc(t.r.Context(), func() { cancel(jsonrpc.ErrClosed) })
	defer stop()
	entry := &active{who: t.who, away: true, cancel: cancel}
	if t.r.Method == http.MethodGet || isListen(t.body) {
		entry.kind = kindAway
	}
	if err := t.e.begin(entry); err != nil {
		return err
	}
	defer t.e.work.end(entry)
	t.sent.whole = entry.kind == kindAway
	_ = http.NewResponseController(t.w).SetWriteDeadline(time.Time{}) // each write has its own
	return t.e.o.Cluster.Caller.Do(ctx, t.sent, t.r, relay.Target{
		Node: at.Node, Principal: t.who.ID, Epoch: at.Epoch, Pass: pass, IP: t.ip, Call: t.call,
	}, t.body)
}

// answer is where the answer is written that this node makes itself.
func (t *trip) answer() http.ResponseWriter {
	if t.sent == nil {
		return t.w
	}
	return t.sent
}

// deny answers a request that is not served.
func (t *trip) deny(err error) {
	deny(t.answer(), t.r, err)
	t.arrived()
}

// arrived ends an answer that more than one node may have written.
func (t *trip) arrived() {
	if t.sent != nil {
		t.sent.end(t.body)
	}
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

// unanswered answers a request whose node was lost before the end of its answer, and which no other one serves.
func (t *trip) unanswered(lost *relay.LostError) {
	w, begun := t.sent.ResponseWriter, t.sent.status != 0
	text := nodeAway
	if lost.Sent || begun {
		text = nodeLost
	}
	env, fault := jsonrpc.Scan(t.body)
	var line []byte
	switch {
	case fault != nil || env.ID == nil || env.Method == "":
	case env.Method == methodCall:
		modern := cmp.Or(env.Modern(), t.r.Header.Get(headerVersion) >= jsonrpc.FirstModern)
		line = t.e.o.Refuse(env, modern, tool.Refuse(tool.NodeDown, "%s", text)).Line(env.ID)
	case begun:
		line = jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: text,
			Data: map[string]string{"code": "node_down"}})
	}
	switch {
	case !begun && line != nil:
		(&exchange{w: w, r: t.r}).reply(http.StatusOK, line)
	case !begun:
		deny(w, t.r, nodeDown(text))
	case t.sent.events && line != nil:
		t.sent.event(line)
	case !t.sent.events:
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// errMoved is the cause of a cancel when another node serves a principal from now on.
var errMoved = errors.New("another machine serves this principal now")

// Dismiss ends the requests and streams of a principal whom another node serves from now on, and forgets its sessions:
// that node goes on with them.
func (e *Endpoint) Dismiss(principal string) {
	e.work.cancelIf(func(x *active) bool { return x.who.ID == principal && !x.away }, errMoved)
	e.sessions.dismiss(principal)
	e.o.ForgetAll(principal)
}

// Busy says whether a call or another request of a principal is being served here. A stream is none.
func (e *Endpoint) Busy(principal string) bool {
	return slices.ContainsFunc(e.work.list(), func(x *active) bool {
		return x.who.ID == principal && x.kind == "" && !x.away
	})
}

// ServeFrom serves a request that another node sent, for a principal whom this one serves. It returns false if it did
// nothing, because another node serves that principal soon.
func (e *Endpoint) ServeFrom(w http.ResponseWriter, r *http.Request, to relay.Target) bool {
	if e.work.closing() && e.o.Cluster.Nodes.Shared() {
		return false
	}
	if err := e.serveFrom(w, r, to); err != nil {
		deny(w, r, err)
	}
	return true
}

func (e *Endpoint) serveFrom(w http.ResponseWriter, r *http.Request, to relay.Target) error {
	route, handle, ok := e.route(r.URL.Path)
	var x auth.Pass
	if err := json.Unmarshal(to.Pass, &x); err != nil || !ok {
		return &auth.Error{Status: http.StatusBadRequest, Code: "node_version",
			Message: "this node does not understand the one that was asked: their versions differ"}
	}
	if e.work.closing() {
		return draining()
	}
	who, err := e.o.Porter.Know(x)
	if err != nil {
		e.o.Team.Refused(to.IP, err)
		return err
	}
	e.serve(w, r, who, to.IP, route, handle, to.Call)
	return nil
}

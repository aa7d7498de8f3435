// Package notices tells clients what answers no request of theirs: that a job ended, that a resource changed, that
// there are other prompts than a client was shown. It keeps what each client wants to be told.
package notices

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/hub"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/prompts"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

const (
	// maxSubscribedURI is how many bytes the address of one may have.
	maxSubscribedURI = 4 << 10
	// updateTime bounds how long subscribed resources are looked at: an answer waits for it.
	updateTime = 2 * time.Second
	// storeTime bounds one operation of the Store with its retries.
	storeTime = 2 * time.Second
)

// wishes are what a legacy client wants to be told, by its connection. They are in the Store, because such a client
// does not say it again after a restart.
type wishes struct {
	Level mcp.LoggingLevel `json:"level,omitempty"` // the least of log messages; "": it has not said
	Subs  []subscription   `json:"subs,omitempty"`
}

// A subscription is a resource of a session to whose updates a connection subscribed.
type subscription struct {
	Session string `json:"session"`
	URI     string `json:"uri"`
	Seen    string `json:"seen,omitempty"` // its sum when the client was last told; "": there was no such resource
}

// A Notifier tells clients what answers no request of theirs. Its fields do not change once a request is served. It is
// safe for concurrent use.
type Notifier struct {
	Hub       *hub.Hub
	Sessions  *sessions.Table
	Resources *resources.Library
	Prompts   *prompts.Library
	Replies   replies.Replies
	Memory    func(session.Key) session.Memory // the part of the Store that a session or a connection has
	Ended     <-chan struct{}                  // closed when the server ends: then no client is told anything
	SkillTime time.Duration                    // how long skills may be looked for before an answer
}

// Parts are what a Notifier is made of.
type Parts struct {
	Sessions *sessions.Table
	Pipe     *pipeline.Pipeline                  // which calls of prompts and resources pass
	Find     func(name string) (tool.Tool, bool) // finds a tool of ours
	CoAuthor string                              // of commits that the prompt commit asks for
	Replies  replies.Replies
	Memory   func(session.Key) session.Memory // the part of the Store that a session or a connection has
	Ended    <-chan struct{}                  // closed when the server ends
}

// skillTime bounds the search for skills when a client begins, and after a call that may have changed some.
const skillTime = 2 * time.Second

// New makes a Notifier, with what lists prompts and resources.
func New(p Parts) *Notifier {
	library := &resources.Library{Pipe: p.Pipe, Find: p.Find}
	return &Notifier{
		Hub: new(hub.Hub), Sessions: p.Sessions, Resources: library,
		Prompts: &prompts.Library{Resources: library, CoAuthor: p.CoAuthor},
		Replies: p.Replies, Memory: p.Memory, Ended: p.Ended, SkillTime: skillTime,
	}
}

// wishes is where those of a connection are kept.
func (n *Notifier) wishes(connection session.Key) session.Cell[wishes] {
	return session.NewCell[wishes](n.Memory(connection), sessions.NoticesCell)
}

// changeWishes changes what the client's connection wants to be told.
func (n *Notifier) changeWishes(t *request.Turn, edit func(w wishes) (wishes, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	_, err := n.wishes(t.Req.Shelf).Change(ctx, edit)
	n.Hub.AskSubscriptions(t.Req.Shelf)
	return err
}

// KeepLevel keeps the level of logging/setLevel. If it cannot, that becomes the failure of the turn.
func (n *Notifier) KeepLevel(t *request.Turn, level mcp.LoggingLevel) {
	err := n.changeWishes(t, func(w wishes) (wishes, error) {
		w.Level = level
		return w, nil
	})
	if err != nil {
		t.Failure = n.Replies.Internal(context.Background(), "log level", err)
	}
}

// errSubscriptions refuses a subscription.
var errSubscriptions = fmt.Errorf("a connection may subscribe to %d resources, of at most %d bytes each",
	hub.MaxSubscriptions, maxSubscribedURI)

// Subscribe begins to tell the client's connection of updates of a resource of the session. What goes wrong becomes the
// failure of the turn.
func (n *Notifier) Subscribe(t *request.Turn, uri string) {
	ctx, cancel := context.WithTimeout(context.Background(), updateTime)
	defer cancel()
	sum, _ := n.sum(ctx, t.View(), uri) // what cannot be read now is told of when it can
	err := n.changeWishes(t, func(w wishes) (wishes, error) {
		if slices.ContainsFunc(w.Subs, isSubscription(t, uri)) {
			return w, nil
		}
		if len(w.Subs) >= hub.MaxSubscriptions || len(uri) > maxSubscribedURI {
			return w, errSubscriptions
		}
		w.Subs = append(w.Subs, subscription{Session: t.Req.Session.Session, URI: uri, Seen: sum})
		return w, nil
	})
	switch {
	case errors.Is(err, errSubscriptions):
		t.Failure = &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: errSubscriptions.Error()}
	case err != nil:
		t.Failure = n.Replies.Internal(ctx, "subscription", err)
	}
}

// Unsubscribe ends what Subscribe began. What goes wrong becomes the failure of the turn.
func (n *Notifier) Unsubscribe(t *request.Turn, uri string) {
	err := n.changeWishes(t, func(w wishes) (wishes, error) {
		w.Subs = slices.DeleteFunc(w.Subs, isSubscription(t, uri))
		return w, nil
	})
	if err != nil {
		t.Failure = n.Replies.Internal(context.Background(), "subscription", err)
	}
}

func isSubscription(t *request.Turn, uri string) func(subscription) bool {
	return func(s subscription) bool { return s.URI == uri && s.Session == t.Req.Session.Session }
}

// ListenTo notes what a resource is now, to which a subscriptions/listen subscribes. The error says why it may not, or
// that there is no session.
func (n *Notifier) ListenTo(t *request.Turn, l *hub.Listener, uri string) error {
	if len(uri) > maxSubscribedURI {
		return errSubscriptions
	}
	state, release, err := n.Sessions.Acquire(t.Req.Session, t.Req.Tenant)
	if err != nil {
		return err
	}
	defer release()
	t.Req.Narrow(state, n.Replies.Log)
	ctx, cancel := context.WithTimeout(context.Background(), updateTime)
	defer cancel()
	sum, _ := n.sum(ctx, resources.View{State: state, Tenant: t.Req.Tenant}, uri)
	if !l.Watch(uri, sum) {
		return errSubscriptions
	}
	return nil
}

// sum is that of what a resource holds; "": there is none. ok is false if that cannot be said now.
func (n *Notifier) sum(ctx context.Context, v resources.View, uri string) (sum string, ok bool) {
	contents, err := n.Resources.Read(ctx, v, uri)
	switch {
	case errors.Is(err, resources.ErrNone), errors.Is(err, resources.ErrWindow),
		errors.Is(err, resources.ErrTooLarge):
		return "", true
	case err != nil:
		return "", false
	}
	raw, err := jsonrpc.Marshal(contents)
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:8]), err == nil
}

// TellUpdates tells the clients that subscribed to resources of a session which of them have changed since they were
// told last. It looks only at those whose address begins with prefix.
func (n *Notifier) TellUpdates(ctx context.Context, key session.Key, v resources.View, prefix string) {
	connections, subscribed := n.Hub.Listening(key)
	if len(connections) == 0 && !subscribed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, updateTime)
	defer cancel()
	sums := map[string]string{}
	moved := func(uri, seen string) (now string, yes bool) {
		if !strings.HasPrefix(uri, prefix) {
			return "", false
		}
		now, known := sums[uri]
		if !known {
			if now, known = n.sum(ctx, v, uri); !known {
				return "", false
			}
			sums[uri] = now
		}
		return now, now != seen
	}
	for _, connection := range connections {
		n.tellConnection(ctx, connection, key, moved)
	}
	n.Hub.TellMoved(key, moved)
}

// tellConnection tells a legacy connection of what moved. Of several that look at once, one tells it.
func (n *Notifier) tellConnection(ctx context.Context, connection, key session.Key,
	moved func(uri, seen string) (string, bool)) {
	none, remember := n.Hub.NoSubscriptions(connection)
	if none {
		return
	}
	cell := n.wishes(connection)
	w, err := cell.Load(ctx)
	if err == nil && len(w.Subs) == 0 {
		remember()
	}
	if err != nil || !slices.ContainsFunc(w.Subs, func(x subscription) bool { return x.Session == key.Session }) {
		return // it is told after the next call
	}
	var uris []string
	_, err = cell.Change(ctx, func(w wishes) (wishes, error) {
		uris = nil
		for i, x := range w.Subs {
			if x.Session != key.Session {
				continue
			}
			if now, yes := moved(x.URI, x.Seen); yes {
				w.Subs[i].Seen = now
				uris = append(uris, x.URI)
			}
		}
		return w, nil
	})
	if err != nil {
		return
	}
	for _, uri := range uris {
		n.Hub.TellConnection(connection, hub.Updated(uri))
	}
}

// JobOver tells clients that listen of the end of a job, without waiting for them. A job that ends with the server, or
// with its session, is told of when the session goes on.
func (n *Notifier) JobOver(key session.Key, at *tenants.Tenant, i shell.Info) {
	if i.State == shell.Lost {
		return
	}
	go func() { // a client that does not read holds up no command
		select {
		case <-n.Ended:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), updateTime)
		defer cancel()
		n.logNotice(ctx, key, running.EndLine(i))
		state, release, err := n.Sessions.Acquire(key, at)
		if err != nil {
			return // the server ends
		}
		defer release()
		n.TellUpdates(ctx, key, resources.View{State: state, Tenant: at}, resources.JobsURI)
	}()
}

// logNotice sends a log message to the clients of a session that listen and want messages of its level.
func (n *Notifier) logNotice(ctx context.Context, key session.Key, text string) {
	n.Hub.Log(key, n.Replies.Implementation.Name, text, func(connection session.Key) bool {
		wanted, err := n.wishes(connection).Load(ctx)
		return err != nil || wanted.Level == "" || hub.Level.ShouldSendTo(wanted.Level)
	})
}

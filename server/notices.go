package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/hub"
	"codehand/server/jsonrpc"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/shell"
)

const (
	// maxSubscribedURI is how many bytes the address of one may have.
	maxSubscribedURI = 4 << 10
	// updateTime bounds how long subscribed resources are looked at: an answer waits for it.
	updateTime = 2 * time.Second
)

// notices are what a legacy client wants to be told, by its connection. They are in the Store, because such a client
// does not say it again after a restart.
type notices struct {
	Level mcp.LoggingLevel `json:"level,omitempty"` // the least of log messages; "": it has not said
	Subs  []subscription   `json:"subs,omitempty"`
}

// A subscription is a resource of a session to whose updates a connection subscribed.
type subscription struct {
	Session string `json:"session"`
	URI     string `json:"uri"`
	Seen    string `json:"seen,omitempty"` // its sum when the client was last told; "": there was no such resource
}

// A subscriber is a request that says what its client wants to be told.
type subscriber struct{ *turn }

// A notifier tells clients what answers no request of theirs: that a job ended, that a resource changed.
type notifier struct{ *Server }

// notices is where those of a connection are kept.
func (e *engines) notices(connection session.Key) session.Cell[notices] {
	return session.NewCell[notices](e.memory(connection), sessions.NoticesCell)
}

// changeNotices changes what the client's connection wants to be told.
func (t subscriber) changeNotices(edit func(n notices) (notices, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	_, err := t.s.engines.notices(t.Req.Shelf).Change(ctx, edit)
	t.s.hub.AskSubscriptions(t.Req.Shelf)
	return err
}

// keepLevel keeps the level of logging/setLevel.
func (t subscriber) keepLevel(level mcp.LoggingLevel) {
	err := t.changeNotices(func(n notices) (notices, error) {
		n.Level = level
		return n, nil
	})
	if err != nil {
		t.Failure = t.s.replies.Internal(context.Background(), "log level", err)
	}
}

// errSubscriptions refuses a subscription.
var errSubscriptions = fmt.Errorf("a connection may subscribe to %d resources, of at most %d bytes each",
	hub.MaxSubscriptions, maxSubscribedURI)

// subscribe begins to tell the client's connection of updates of a resource of the session.
func (t subscriber) subscribe(uri string) error {
	ctx, cancel := context.WithTimeout(context.Background(), updateTime)
	defer cancel()
	sum, _ := notifier{t.s}.sum(ctx, t.View(), uri) // what cannot be read now is told of when it can
	err := t.changeNotices(func(n notices) (notices, error) {
		if slices.ContainsFunc(n.Subs, t.isSubscription(uri)) {
			return n, nil
		}
		if len(n.Subs) >= hub.MaxSubscriptions || len(uri) > maxSubscribedURI {
			return n, errSubscriptions
		}
		n.Subs = append(n.Subs, subscription{Session: t.Req.Session.Session, URI: uri, Seen: sum})
		return n, nil
	})
	switch {
	case errors.Is(err, errSubscriptions):
		t.Failure = &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: errSubscriptions.Error()}
	case err != nil:
		t.Failure = t.s.replies.Internal(ctx, "subscription", err)
	}
	return nil
}

func (t subscriber) unsubscribe(uri string) {
	err := t.changeNotices(func(n notices) (notices, error) {
		n.Subs = slices.DeleteFunc(n.Subs, t.isSubscription(uri))
		return n, nil
	})
	if err != nil {
		t.Failure = t.s.replies.Internal(context.Background(), "subscription", err)
	}
}

func (t subscriber) isSubscription(uri string) func(subscription) bool {
	return func(s subscription) bool { return s.URI == uri && s.Session == t.Req.Session.Session }
}

// listenTo notes what a resource is now, to which a subscriptions/listen subscribes.
func (t subscriber) listenTo(l *hub.Listener, uri string) error {
	if len(uri) > maxSubscribedURI {
		return errSubscriptions
	}
	state, release, err := t.s.sessions.Acquire(t.Req.Session, t.Req.Tenant)
	if err != nil {
		return err
	}
	defer release()
	t.Req.Narrow(state, t.s.replies.Log)
	ctx, cancel := context.WithTimeout(context.Background(), updateTime)
	defer cancel()
	sum, _ := notifier{t.s}.sum(ctx, resources.View{State: state, Tenant: t.Req.Tenant}, uri)
	if !l.Watch(uri, sum) {
		return errSubscriptions
	}
	return nil
}

// logLevel is the level that a modern request wants log messages of; "": none.
func logLevel(message []byte) mcp.LoggingLevel {
	var m struct {
		Params struct {
			Meta struct {
				Level mcp.LoggingLevel `json:"io.modelcontextprotocol/logLevel"`
			} `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &m) // mcp-go answers what has another form
	return m.Params.Meta.Level
}

// sum is that of what a resource holds; "": there is none. ok is false if that cannot be said now.
func (s notifier) sum(ctx context.Context, v resources.View, uri string) (sum string, ok bool) {
	contents, err := s.gate.resources.Read(ctx, v, uri)
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

// tellUpdates tells whoever subscribed to resources of a session which of them have changed since they were told last.
// Only those are looked at whose address begins with prefix.
func (s notifier) tellUpdates(ctx context.Context, key session.Key, v resources.View, prefix string) {
	connections, subscribed := s.hub.Listening(key)
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
			if now, known = s.sum(ctx, v, uri); !known {
				return "", false
			}
			sums[uri] = now
		}
		return now, now != seen
	}
	for _, connection := range connections {
		s.tellConnection(ctx, connection, key, moved)
	}
	s.hub.TellMoved(key, moved)
}

// tellConnection tells a legacy connection of what moved. Of several that look at once, one tells it.
func (s notifier) tellConnection(ctx context.Context, connection, key session.Key,
	moved func(uri, seen string) (string, bool)) {
	none, remember := s.hub.NoSubscriptions(connection)
	if none {
		return
	}
	cell := s.engines.notices(connection)
	n, err := cell.Load(ctx)
	if err == nil && len(n.Subs) == 0 {
		remember()
	}
	if err != nil || !slices.ContainsFunc(n.Subs, func(x subscription) bool { return x.Session == key.Session }) {
		return // it is told after the next call
	}
	var uris []string
	_, err = cell.Change(ctx, func(n notices) (notices, error) {
		uris = nil
		for i, x := range n.Subs {
			if x.Session != key.Session {
				continue
			}
			if now, yes := moved(x.URI, x.Seen); yes {
				n.Subs[i].Seen = now
				uris = append(uris, x.URI)
			}
		}
		return n, nil
	})
	if err != nil {
		return
	}
	for _, uri := range uris {
		s.hub.TellConnection(connection, hub.Updated(uri))
	}
}

// jobOver tells clients that listen of the end of a job. A job that ends with the server, or with its session, is told
// of when the session goes on.
func (s notifier) jobOver(key session.Key, at *tenants.Tenant, i shell.Info) {
	if i.State == shell.Lost {
		return
	}
	go func() { // a client that does not read holds up no command
		select {
		case <-s.life.ended:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), updateTime)
		defer cancel()
		s.logNotice(ctx, key, running.EndLine(i))
		state, release, err := s.sessions.Acquire(key, at)
		if err != nil {
			return // the server ends
		}
		defer release()
		s.tellUpdates(ctx, key, resources.View{State: state, Tenant: at}, resources.JobsURI)
	}()
}

// logNotice sends a log message to the clients of a session that listen and want messages of its level.
func (s notifier) logNotice(ctx context.Context, key session.Key, text string) {
	s.hub.Log(key, s.replies.Implementation.Name, text, func(connection session.Key) bool {
		wanted, err := s.engines.notices(connection).Load(ctx)
		return err != nil || wanted.Level == "" || hub.Level.ShouldSendTo(wanted.Level)
	})
}

package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// writeTime is how long a client may take for what is written to it at once.
const writeTime = 30 * time.Second

// ErrMoved says that the node does not serve the principal, or not yet: nothing was done, and whoever serves it is to
// be looked up again.
var ErrMoved = errMoved

// A LostError says that the node that serves a principal did not answer to the end.
type LostError struct {
	Sent   bool // the request may have reached it, and may have been carried out
	Status int  // of the answer that had begun; 0: nothing was written to the client
	Err    error
}

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// A Caller sends requests to other nodes. It is safe for concurrent use.
type Caller struct {
	wire   Wire
	prefix string
	base   string // of the subjects where answers come
	count  atomic.Uint64
	links  *links
	stop   func()
}

// NewCaller makes a Caller. prefix begins all subjects.
func NewCaller(w Wire, prefix string) (*Caller, error) {
	c := &Caller{wire: w, prefix: prefix, base: prefix + ".back." + strings.ToLower(rand.Text()) + "."}
	stop, err := w.Listen(c.base+"*", c.got)
	if err != nil {
		return nil, err
	}
	c.links, c.stop = newLinks(), stop
	return c, nil
}

// Close gives up all requests. No Do may begin any more.
func (c *Caller) Close() {
	c.links.close()
	c.stop()
}

func (c *Caller) got(m Message) {
	l := c.links.find(m.Subject)
	switch f, err := decode(m.Data); {
	case m.Nobody && l != nil:
		l.nobody()
	case err != nil || m.Nobody:
	case l != nil:
		l.take(f)
	case f.kind != frameGone && f.kind != frameAnswer && f.kind != frameMoved: // given up here
		_ = c.wire.Send(m.Reply, m.Subject, frame{kind: frameGone}.encode()) // else it is lost there after a while
	}
}

// errNobody says that a request reached no node: none did anything.
var errNobody = errors.New("relay: no node of that name is there")

// A Target is where a request goes, and whose it is.
type Target struct {
	Node      string
	Principal string
	Epoch     uint64          // of its place
	Pass      json.RawMessage // by which the other node knows who sent the request
	IP        string          // of the client; "": unknown
	// Call names the request, the same each time that it is sent; "": it is sent once.
	Call string
}

// An opening is the head of the frame that opens an exchange.
type opening struct {
	Target
	Method string
	URI    string // path and query
	Host   string
	Remote string // address of the client's connection
	TLS    bool
	Header http.Header
	Length int // of the body
}

// A beginning is the head of the first frame of an answer.
type beginning struct {
	Status int
	Header http.Header
}

// Do sends a request with its body, and writes the answer to w. It returns when the answer is written or ctx has ended:
// then the other node knows that the client left. ErrMoved: nothing was done and nothing written. *LostError.
func (c *Caller) Do(ctx context.Context, w http.ResponseWriter, r *http.Request, to Target, body []byte) error {
	head, err := json.Marshal(opening{
		Target: to, Method: r.Method, URI: r.URL.RequestURI(), Host: r.Host, Remote: r.RemoteAddr, TLS: r.TLS != nil,
		Header: r.Header, Length: len(body),
	})
	if err != nil {
		return err
	}
	reply := c.base + strconv.FormatUint(c.count.Add(1), 36)
	l := newLink(c.wire, requests(c.prefix, to.Node), reply)
	c.links.add(reply, l)
	defer c.links.remove(reply)
	first := body[:min(len(body), maxPart)]
	if err := l.sendPart(nil, frameOpen, head, first); err != nil {
		return &LostError{Err: err}
	}
	if len(first) < len(body) {
		go func() {
			for rest := body[len(first):]; len(rest) > 0; {
				part := rest[:min(len(rest), maxPart)]
				if l.sendPart(nil, framePart, nil, part) != nil {
					return // it is over, and Do returns
				}
				rest = rest[len(part):]
			}
		}()
	}
	err = c.receive(ctx, w, l)
	l.end(errEnded) // for the goroutine above
	return err
}

// receive writes the frames of an answer.
func (c *Caller) receive(ctx context.Context, w http.ResponseWriter, l *link) error {
	control := http.NewResponseController(w)
	status := 0
	for {
		f, err := l.next(ctx.Done())
		switch {
		case ctx.Err() != nil:
			_ = l.send(frameGone, nil, nil) // else it is lost there after a while
			return nil                      //nolint:nilerr // nobody waits for it any more
		case errors.Is(err, errMoved) && status == 0:
			return ErrMoved
		case err != nil:
			return &LostError{Sent: !errors.Is(err, errNobody), Status: status, Err: err}
		}
		if len(f.head) > 0 && status == 0 {
			var b beginning
			if err := json.Unmarshal(f.head, &b); err != nil || b.Status < 100 || b.Status > 999 {
				return &LostError{Sent: true, Err: errFrame}
			}
			for name, values := range b.Header {
				w.Header()[name] = values
			}
			_ = control.SetWriteDeadline(time.Now().Add(writeTime))
			status = b.Status
			w.WriteHeader(status)
		}
		read := reads(w, control, f)
		if f.kind == frameAnswer {
			return nil // a client that is gone needs no answer
		}
		if !read {
			_ = l.send(frameGone, nil, nil) // else it is lost there after a while
			return nil
		}
	}
}

// reads writes a part of an answer, and says whether the client read it.
func reads(w http.ResponseWriter, control *http.ResponseController, f frame) bool {
	_ = control.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := w.Write(f.body)
	if err != nil || f.kind == frameAnswer { // net/http flushes the end, until the same deadline
		return err == nil
	}
	err = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // in HTTP/2 one that has passed ends the stream
	return err == nil
}

// requests is the subject at which a node takes requests.
func requests(prefix, node string) string { return prefix + ".node." + node + ".request" }

package relay

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// HostOptions of a Host.
type HostOptions struct {
	Wire   Wire
	Prefix string // of all subjects
	Node   string // the name of this one
	// Here says whether this node serves a principal, since the epoch that the caller knows. After an error nothing is
	// done, and the caller looks again.
	Here func(ctx context.Context, principal string, epoch uint64) (bool, error)
	// Serve serves a request. Its context ends when the client leaves. The pass of the target is for Serve to judge. It
	// returns false if it did nothing, because another node serves the principal soon: the caller looks again.
	Serve func(w http.ResponseWriter, r *http.Request, to Target) bool
	// Sight is how this node is, for who asks (Look); its time is set here.
	Sight func() Sight
	Log   *slog.Logger
}

// A Host takes requests that other nodes send. It is safe for concurrent use.
type Host struct {
	o       HostOptions
	links   *links
	unhear  func()
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool // no more requests are taken
}

// NewHost begins to take requests.
func NewHost(o HostOptions) (*Host, error) {
	h := &Host{o: o, links: newLinks()}
	var err error
	if h.unhear, err = o.Wire.Listen(requests(o.Prefix, o.Node), h.got); err != nil {
		h.links.close()
		return nil, err
	}
	return h, nil
}

// Close takes no more requests, ends those that run, and waits for them.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.unhear()
	h.links.close()
	h.serving.Wait()
}

func (h *Host) got(m Message) {
	f, err := decode(m.Data)
	if err != nil || m.Reply == "" {
		return
	}
	if f.kind == frameLook {
		h.seen(m)
		return
	}
	if l := h.links.find(m.Reply); l != nil {
		l.take(f)
		return
	}
	if f.kind != frameOpen || f.number != 1 {
		if f.kind != frameGone && f.kind != frameAck {
			// else it is lost there after a while
			_ = h.o.Wire.Send(m.Reply, m.Subject, frame{kind: frameGone}.encode())
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = h.o.Wire.Send(m.Reply, m.Subject, frame{kind: frameMoved}.encode()) // likewise
		return
	}
	l := newLink(h.o.Wire, m.Reply, m.Subject)
	h.links.add(m.Reply, l)
	l.take(f)
	h.serving.Go(func() {
		defer h.links.remove(m.Reply)
		h.serve(l)
	})
}

// serve serves one request.
func (h *Host) serve(l *link) {
	defer l.end(errEnded)
	f, err := l.next(nil)
	if err != nil {
		return
	}
	var o opening
	at, bad := (*url.URL)(nil), json.Unmarshal(f.head, &o)
	if bad == nil {
		at, bad = url.ParseRequestURI(o.URI)
	}
	if bad != nil || o.Length < 0 {
		_ = l.send(frameGone, nil, nil) // a node that speaks another way
		return
	}
	if here, err := h.o.Here(l.ctx, o.Principal, o.Epoch); err != nil || !here {
		_ = l.send(frameMoved, nil, nil)
		return
	}
	r := (&http.Request{
		Method: o.Method, URL: at, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: o.Header, Host: o.Host,
		RemoteAddr: o.Remote, RequestURI: o.URI, ContentLength: int64(o.Length), Body: http.NoBody,
	}).WithContext(l.ctx)
	if o.Length > 0 {
		r.Body = &body{l: l, rest: f.body, left: o.Length}
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if o.TLS {
		r.TLS = &tls.ConnectionState{}
	}
	w := &writer{l: l, header: http.Header{}, until: newDeadline()}
	defer w.until.set(time.Time{})
	defer func() {
		if p := recover(); p != nil {
			_ = l.send(frameGone, nil, nil)
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				h.o.Log.Error("a request that another node sent failed", "panic", p, "stack", string(debug.Stack()))
			}
		}
	}()
	if !h.o.Serve(w, r, o.Target) {
		_ = l.send(frameMoved, nil, nil) // else it is lost there after a while
		return
	}
	w.finish()
}

// A body is that of a request, as its parts come.
type body struct {
	l    *link
	rest []byte // of the last part
	left int    // bytes that were not read
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && b.left > 0 {
		f, err := b.l.next(nil)
		if err != nil || f.kind != framePart {
			return 0, io.ErrUnexpectedEOF
		}
		b.rest = f.body
	}
	n := copy(p, b.rest[:min(len(b.rest), b.left)])
	b.rest, b.left = b.rest[n:], b.left-n
	if b.left == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }

// A writer is the ResponseWriter of a request from another node. Like that of net/http it is for one goroutine at a
// time; only deadlines may be set by others.
type writer struct {
	l      *link
	header http.Header
	until  *deadline

	status  int    // 0: not written yet
	head    []byte // of the answer, until the first frame leaves
	buf     []byte
	written int
	length  int // that Content-Length says; -1: nothing
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status, w.length = status, -1
	if n := w.header.Get("Content-Length"); n != "" {
		if length, err := strconv.Atoi(n); err == nil {
			w.length = length
		}
	}
	w.head, _ = json.Marshal(beginning{status, w.header}) // strings cannot fail
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n := len(p)
	for len(w.buf)+len(p) > maxPart {
		part := p[:maxPart-len(w.buf)]
		if len(w.buf) > 0 {
			part = append(w.buf, part...)
		}
		if err := w.ship(framePart, part); err != nil {
			return 0, err
		}
		p = p[maxPart-len(w.buf):]
		w.buf = w.buf[:0]
	}
	w.buf = append(w.buf, p...)
	w.written += n
	return n, nil
}

// ship sends a part of the answer, with its head if that is still here.
func (w *writer) ship(kind byte, part []byte) error {
	if kind == framePart && w.head != nil {
		kind = frameHead
	}
	head := w.head
	w.head = nil
	return w.l.sendPart(w.until.passed(), kind, head, part)
}

// FlushError sends what was written. An answer that is whole waits for its end, which is near.
func (w *writer) FlushError() error {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.written == w.length && w.l.err() == nil:
		return nil
	case len(w.buf) == 0 && w.head == nil:
		return w.l.err()
	}
	err := w.ship(framePart, w.buf)
	w.buf = w.buf[:0]
	return err
}

// SetWriteDeadline says until when Write and FlushError wait for a client that does not read.
func (w *writer) SetWriteDeadline(at time.Time) error {
	w.until.set(at)
	return nil
}

// SetReadDeadline does nothing: the whole body is on its way.
func (w *writer) SetReadDeadline(time.Time) error { return nil }

// finish ends the answer.
func (w *writer) finish() {
	w.WriteHeader(http.StatusOK)
	_ = w.SetWriteDeadline(time.Now().Add(writeTime))
	if err := w.ship(frameAnswer, w.buf); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = w.l.send(frameGone, nil, nil)
	}
}

// A deadline can be moved while others wait for it. It is safe for concurrent use.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	sets  int           // how often it was set
	done  chan struct{} // closed when it has passed
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// set sets it; the zero Time: there is none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sets++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	select {
	case <-d.done:
		d.done = make(chan struct{})
	default:
	}
	if at.IsZero() {
		return
	}
	wait := time.Until(at)
	if wait <= 0 {
		close(d.done)
		return
	}
	sets := d.sets
	d.timer = time.AfterFunc(wait, func() { d.pass(sets) })
}

// pass closes done, unless the deadline was set again meanwhile.
func (d *deadline) pass(sets int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sets == sets {
		close(d.done)
	}
}

package bridge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// firstWait is how long the bridge waits before it tries again; each further wait is twice as long, up to
	// longestWait.
	firstWait   = 250 * time.Millisecond
	longestWait = 16 * time.Second
	// retryFor is how long it tries in all: a restart behind a proxy takes less, and a client gives up soon after.
	retryFor = 60 * time.Second
	// reachFor is how long it tries again to connect to an endpoint that never answered: a wrong URL, or an endpoint
	// that is down, should show at once.
	reachFor = 1500 * time.Millisecond
	// dialFor is how long one attempt to connect, or to agree on TLS, may take.
	dialFor = 10 * time.Second
	// unheardFor is how long an endpoint may be silent at first until the operator is told.
	unheardFor = 1500 * time.Millisecond
	// silence is how long a stream may bring nothing at all before its connection counts as broken. An endpoint that
	// sends comments sends one every 10 s.
	silence = 60 * time.Second
)

// A backoff says how long to wait before the next attempt.
type backoff struct {
	since time.Time // when the first attempt failed; zero: none did
	wait  time.Duration
}

// next returns the wait after a failure. after is what the endpoint asked for, 0 if nothing. ok is false when all of it
// would take longer than total; total 0: no end.
func (b *backoff) next(after, total time.Duration) (_ time.Duration, ok bool) {
	now := time.Now()
	if b.since.IsZero() {
		b.since = now
	}
	b.wait = max(firstWait, min(2*b.wait, longestWait))
	if total == 0 {
		return max(b.wait, min(after, retryFor)), true
	}
	left := total - now.Sub(b.since)
	if left <= 0 || after > left {
		return 0, false
	}
	return min(max(b.wait, after), left), true
}

// pause waits for d. It is false if ctx ended first, or gone was closed.
func pause(ctx context.Context, d time.Duration, gone <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
	case <-ctx.Done():
	}
	return false
}

// permanent says that trying again cannot help.
func permanent(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	if s, ok := errors.AsType[*statusError](err); ok {
		return !s.passing()
	}
	if errors.Is(err, http.ErrSchemeMismatch) { // no TLS there
		return true
	}
	return errors.Is(err, errTooLong) || errors.Is(err, errRedirect) || errors.Is(err, errClearToken) ||
		errors.Is(err, errNoAnswer)
}

// retryAfter reads a Retry-After header, in seconds or as a date; 0: none.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(n, 0), 1<<20)) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}

// A watch ends an attempt on which nothing was heard for a while. A nil one never does.
type watch struct {
	t       *time.Timer
	stopped atomic.Bool
}

// errSilent is why a watch ends an attempt.
var errSilent = errors.New("nothing was heard for " + silence.String())

// newWatch calls end after silence. Only an endpoint that is known to send comments can be too quiet.
func newWatch(beats func() bool, end func(error)) *watch {
	w := &watch{}
	made := make(chan struct{})
	w.t = time.AfterFunc(silence, func() {
		<-made
		switch {
		case w.stopped.Load():
		case beats():
			end(errSilent)
		default:
			w.t.Reset(silence)
		}
	})
	close(made)
	return w
}

func (w *watch) stop() {
	if w != nil {
		w.stopped.Store(true)
		w.t.Stop()
	}
}

// heard returns r, each byte of which keeps the watch from ending the attempt.
func (w *watch) heard(r io.Reader) io.Reader {
	if w == nil {
		return r
	}
	w.t.Reset(silence)
	return &watchedReader{r: r, t: w.t}
}

type watchedReader struct {
	r io.Reader
	t *time.Timer
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.t.Reset(silence)
	}
	return n, err
}

package oauth

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/tools/web/guard"
)

// Limits of client id metadata documents.
const (
	maxDocument  = 64 << 10 // bytes
	documentTime = 5 * time.Second
	documentLife = 10 * time.Minute // unless the answer says another one
	shortestLife = time.Minute
	longestLife  = 24 * time.Hour
	failureLife  = 30 * time.Second
	maxDocuments = 256
	maxFetches   = 8 // at once
	maxClientID  = 512
)

// documents are clients whose id is the URL of a document about them. What is fetched is kept for a while, in memory
// only. It is safe for concurrent use.
type documents struct {
	now  func() time.Time
	via  http.RoundTripper
	slot chan struct{}

	mu  sync.Mutex
	by  map[string]*list.Element
	all list.List // of *document, the last used in front
}

// A document is what was fetched, or why nothing was.
type document struct {
	id    string
	ready chan struct{} // closed when the rest is there
	until time.Time     // when it is fetched again
	what  *client
	err   error
}

func newDocuments(o Options) *documents {
	d := &documents{now: o.Now, via: o.Fetch, slot: make(chan struct{}, maxFetches), by: map[string]*list.Element{}}
	if d.via == nil {
		dialer := &net.Dialer{Timeout: documentTime, Control: guard.New(guard.Options{}).Control}
		d.via = &http.Transport{ // without a proxy: the guard must see the address
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: documentTime, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 32 << 10,
		}
	}
	return d
}

// checkDocumentURL refuses what cannot be the id of such a client.
func checkDocumentURL(id string) error {
	if len(id) > maxClientID {
		return errors.New("the client's id is too long")
	}
	u, err := guard.URL(id)
	switch {
	case err != nil:
		return fmt.Errorf("the client's id: %w", err)
	case u.Scheme != "https" || u.Path == "" || u.Path == "/":
		return errors.New("the client's id must be an https URL with a path")
	case strings.ContainsAny(id, "?#") || u.String() != id:
		return errors.New("the client's id must be a plain URL, without query and fragment")
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == "." || part == ".." {
			return errors.New("the client's id must not have . or .. in its path")
		}
	}
	if err := guard.New(guard.Options{}).Host(u.Hostname()); err != nil {
		return fmt.Errorf("the client's id: %w", err)
	}
	return nil
}

// get returns the client of a document. limit is asked before a document is fetched: how long to wait, if at all.
func (d *documents) get(ctx context.Context, id string, limit func() time.Duration) (*client, error) {
	if err := checkDocumentURL(id); err != nil {
		return nil, err
	}
	d.mu.Lock()
	e := d.by[id]
	if e != nil && d.fresh(e.Value.(*document)) {
		d.all.MoveToFront(e)
		doc := e.Value.(*document)
		d.mu.Unlock()
		select {
		case <-doc.ready:
			return doc.what, doc.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if wait := limit(); wait > 0 {
		d.mu.Unlock()
		return nil, errors.New("too many sign-ins of new clients from this address. Try again in a minute")
	}
	doc := &document{id: id, ready: make(chan struct{})}
	if e != nil {
		d.all.Remove(e)
	}
	d.by[id] = d.all.PushFront(doc)
	for d.all.Len() > maxDocuments {
		back := d.all.Back()
		delete(d.by, d.all.Remove(back).(*document).id)
	}
	d.mu.Unlock()
	d.fill(context.WithoutCancel(ctx), doc) // others wait for it, too
	return doc.what, doc.err
}

// fresh says whether a document is being fetched, or need not be fetched again. The caller has mu.
func (d *documents) fresh(doc *document) bool {
	select {
	case <-doc.ready:
		return d.now().Before(doc.until)
	default:
		return true
	}
}

func (d *documents) fill(ctx context.Context, doc *document) {
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	defer close(doc.ready)
	life := failureLife
	select {
	case d.slot <- struct{}{}:
		doc.what, life, doc.err = d.fetch(ctx, doc.id)
		<-d.slot
	case <-ctx.Done():
		doc.err = errors.New("too many documents are fetched at once. Try again in a minute")
	}
	if doc.err != nil {
		life = failureLife
	}
	doc.until = d.now().Add(life)
}

// fetch gets and checks one document. It follows no redirect: where the document is, is who the client is.
func (d *documents) fetch(ctx context.Context, id string) (*client, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, 0, errors.New("the client's id is no URL")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "codehand")
	answer, err := d.via.RoundTrip(r)
	if err != nil {
		if errors.Is(err, guard.ErrBlocked) {
			return nil, 0, errors.New("the client's id leads to an address that is not public")
		}
		return nil, 0, errors.New("the document at the client's id cannot be fetched")
	}
	defer func() { _ = answer.Body.Close() }()
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	isJSON := err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
	if answer.StatusCode != http.StatusOK || !isJSON {
		return nil, 0, errors.New("there is no JSON document at the client's id")
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	if err != nil || len(body) > maxDocument {
		return nil, 0, errors.New("the document at the client's id cannot be read or is too large")
	}
	var m metadata
	if ReadObject(body, &m) != nil {
		return nil, 0, errors.New("the document at the client's id is not the JSON of a client")
	}
	if m.ClientID != id {
		return nil, 0, errors.New("the document at the client's id is about another client")
	}
	if p := m.check(); p != nil {
		return nil, 0, errors.New("the document at the client's id: " + p.text)
	}
	return &client{ID: id, Name: line(m.Name, maxName), Redirects: m.Redirects, Kind: Document, Host: r.URL.Host},
		lifeOf(answer.Header.Get("Cache-Control")), nil
}

// lifeOf reads how long an answer may be kept.
func lifeOf(control string) time.Duration {
	for part := range strings.SplitSeq(strings.ToLower(control), ",") {
		part = strings.TrimSpace(part)
		if part == "no-store" || part == "no-cache" {
			return shortestLife
		}
		if text, ok := strings.CutPrefix(part, "max-age="); ok {
			if n, err := strconv.ParseUint(text, 10, 31); err == nil {
				return min(max(time.Duration(n)*time.Second, shortestLife), longestLife)
			}
		}
	}
	return documentLife
}

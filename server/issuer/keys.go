package issuer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Errors of a fetch of keys that was not made or did not succeed.
var (
	errTooSoon     = errors.New("the keys were fetched a moment ago")
	errUnreachable = errors.New("the keys cannot be fetched")
)

// keys are an issuer's keys. oidc.RemoteKeySet fetches them again for each token that it has no key for, so that
// a stranger could make the server flood the issuer. This one fetches at most once in retryEvery, and remembers which
// keys are not there. It is safe for concurrent use.
type keys struct {
	remote *oidc.RemoteKeySet
	over   *http.Client
	now    func() time.Time

	mu      sync.Mutex // covers what follows
	tried   time.Time  // the last fetch; zero: none
	begun   int        // fetches so far
	failed  error      // of the last fetch; nil: it succeeded, or there was none
	ids     map[string]bool
	missing map[string]time.Time // key ids that the issuer did not have, and when
}

func newKeys(uri string, client *http.Client, now func() time.Time) *keys {
	k := &keys{over: client, now: now, missing: map[string]time.Time{}}
	ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: k})
	k.remote = oidc.NewRemoteKeySet(ctx, uri)
	return k
}

// An attempt is one use of the keys. go-oidc keeps of an error only its text.
type attempt struct {
	keys    *keys
	err     error // of VerifySignature
	fetched bool  // a fetch began after the token had come: go-oidc may also answer from one that was under way
}

// VerifySignature implements oidc.KeySet.
func (a *attempt) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	before := a.keys.fetches()
	payload, a.err = a.keys.remote.VerifySignature(ctx, token)
	a.fetched = a.keys.fetches() > before
	return payload, a.err
}

// RoundTrip implements http.RoundTripper for the remote key set: it makes each fetch, or refuses it.
func (k *keys) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	now, failed := k.now(), k.failed
	soon := !k.tried.IsZero() && now.Sub(k.tried) < retryEvery && !now.Before(k.tried)
	if !soon {
		k.tried = now
		k.begun++
	}
	k.mu.Unlock()
	switch {
	case soon && failed != nil:
		return nil, errUnreachable
	case soon:
		return nil, errTooSoon
	}
	body, ids, err := k.fetch(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err != nil {
		return nil, errUnreachable
	}
	k.ids = ids
	for id := range k.missing {
		if ids[id] {
			delete(k.missing, id)
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// fetch returns the key set and the ids in it.
func (k *keys) fetch(r *http.Request) (body []byte, ids map[string]bool, err error) {
	resp, err := k.over.Do(r.Clone(r.Context()))
	if err != nil {
		return nil, nil, short(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, errors.New("keys: " + resp.Status)
	}
	if body, err = io.ReadAll(resp.Body); err != nil {
		return nil, nil, short(err)
	}
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if json.Unmarshal(body, &set) != nil || len(set.Keys) == 0 {
		return nil, nil, errors.New("keys: the document is not a set of keys")
	}
	ids = map[string]bool{}
	for _, key := range set.Keys {
		ids[key.ID] = true
	}
	return body, ids, nil
}

// unreadable says whether err means that go-oidc could not read the keys that were fetched, and notes that. It puts
// these words before each error that is not about the token.
func (k *keys) unreadable(err error) bool {
	if err == nil || errors.Is(err, errTooSoon) || errors.Is(err, errUnreachable) ||
		!strings.HasPrefix(err.Error(), "fetching keys") {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed, k.ids = short(err), nil
	return true
}

// fetches is how often the issuer was asked for its keys so far.
func (k *keys) fetches() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun
}

// status says why the keys could not be fetched the last time; nil: they could.
func (k *keys) status() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed
}

// has says whether the keys that were fetched last have one of this id.
func (k *keys) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ids[id]
}

// isMissing says whether the issuer did not have a key a short while ago.
func (k *keys) isMissing(id string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.missing[id]
	if ok && now.Sub(at) >= missingFor {
		delete(k.missing, id)
		return false
	}
	return ok
}

// noteMissing remembers that the issuer has no key of this id, if the keys that were fetched for it say so. A token may
// carry no id: then any key may be its own.
func (k *keys) noteMissing(id string, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == "" || k.ids == nil || k.ids[id] {
		return
	}
	if len(k.missing) >= maxMissing {
		for old := range k.missing { // any: each is worth one fetch in 10 s at most
			delete(k.missing, old)
			break
		}
	}
	k.missing[id] = now
}

package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/auth"
	"codehand/server/state"
)

// formatOfValues is the format of all values that this room keeps in the Store.
const formatOfValues = 1

// maxAccess is how many access tokens of one grant are good at once: the oldest ends for one more.
const maxAccess = 8

// The grants keep what people approved: in the Store, and what is in use also in memory. It is safe for concurrent use.
type grants struct {
	*shared
	seed  maphash.Seed
	locks [turns]sync.Mutex // changes of grants with one hash take turns

	mu    sync.RWMutex
	live  map[string]*held // by id of the grant
	ended int              // grants that were forgotten so far
}

// A record is everything about one grant, in one value of the Store: so each change is one compare-and-swap, and what
// a killed process leaves is whole.
type record struct {
	V        int         `json:"v"`
	ID       string      `json:"id"`
	Who      string      `json:"who"`
	Scopes   auth.Scopes `json:"scopes"`
	Roots    []string    `json:"roots,omitempty"`
	Mode     string      `json:"mode,omitempty"`
	MaxMode  string      `json:"max_mode,omitempty"`
	Client   ClientInfo  `json:"client"`
	Resource string      `json:"resource"`
	Created  time.Time   `json:"created"`
	Expires  time.Time   `json:"expires"`

	Code    code     `json:"code"`
	Refresh rotation `json:"refresh"`
	Access  []access `json:"access,omitempty"`  // the newest last
	Revoked []string `json:"revoked,omitempty"` // marks of access tokens that were revoked, the newest last
}

// A code is the authorization code of a grant.
type code struct {
	Hash      digest    `json:"hash"`
	Redirect  string    `json:"redirect,omitempty"`  // to which it was sent; "": it was used
	Challenge string    `json:"challenge,omitempty"` // of PKCE, S256; likewise
	Expires   time.Time `json:"expires"`
	Used      bool      `json:"used,omitempty"`
}

// A rotation is the refresh tokens of a grant. Without refresh tokens all of it is zero.
type rotation struct {
	Family   digest    `json:"family,omitzero"`
	Current  digest    `json:"current,omitzero"`
	Previous digest    `json:"previous,omitzero"`
	Rotated  time.Time `json:"rotated,omitzero"` // when Previous was used first
	Repeats  int       `json:"repeats,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // of Current, unless the grant ends before
}

// An access is an access token.
type access struct {
	Hash    digest      `json:"hash"`
	Expires time.Time   `json:"expires"`
	Scopes  auth.Scopes `json:"scopes"`
}

// over says whether a grant has ended: its time is up, its code was never used, or it was not refreshed in time and its
// last access token has ended.
func (g *record) over(now time.Time) bool {
	if !now.Before(g.Expires) {
		return true
	}
	if !g.Code.Used {
		return !now.Before(g.Code.Expires)
	}
	return !now.Before(g.Refresh.Expires) && !slices.ContainsFunc(g.Access, func(a access) bool {
		return now.Before(a.Expires)
	})
}

// held is a record as the server has it in memory. It is never changed, apart from used.
type held struct {
	record
	found    []auth.Found  // of each access token
	audience bool          // the resource is still one of ours
	used     *atomic.Int64 // when it was used last: Unix seconds; shared by all versions of a grant
	saved    *atomic.Int64 // what of it the Store has
}

// via begins Principal.Via.
const via = "oauth:"

// hold makes what Find needs of a record. before is what there was of it, or nil.
func (s *grants) hold(g record, before *held) *held {
	h := &held{record: g, audience: s.isOurs(g.Resource)}
	if before != nil {
		h.used, h.saved = before.used, before.saved
	} else {
		h.used, h.saved = new(atomic.Int64), new(atomic.Int64)
	}
	text := func(t string) *string {
		if t == "" {
			return nil
		}
		return &t
	}
	for _, a := range g.Access {
		h.found = append(h.found, auth.Found{ID: g.Who, Via: via + g.ID, Token: a.Hash.mark(), Values: auth.Values{
			Roots: g.Roots, Mode: text(g.Mode), MaxMode: text(g.MaxMode),
			Scopes: append([]string{}, strings.Fields(a.Scopes.String())...),
		}})
	}
	return h
}

func grantKey(id string) string { return state.Key(state.Grant, id) }

// grantOf returns a grant from memory or the Store; nil: there is none, or it has ended.
func (s *grants) grantOf(ctx context.Context, id string) (*held, error) {
	s.mu.RLock()
	h, gen := s.live[id], s.ended
	s.mu.RUnlock()
	if h == nil {
		raw, _, err := s.o.Store.Get(ctx, grantKey(id))
		if err != nil || raw == nil {
			return nil, err
		}
		g, err := decodeGrant(raw)
		if err != nil {
			return nil, err
		}
		h = s.hold(g, nil)
		if at, ok := s.storedUse(ctx, id); ok {
			h.used.Store(at)
			h.saved.Store(at)
		}
		s.mu.Lock()
		switch now := s.live[id]; {
		case now != nil:
			h = now
		case gen == s.ended: // else it may have been ended since it was read
			s.keep(h)
		}
		s.mu.Unlock()
	}
	if h.over(s.o.Now()) {
		return nil, nil
	}
	return h, nil
}

// quickly is grantOf for a call. Mostly the grant is in memory, and nothing can take long.
func (s *grants) quickly(id string) (*held, error) {
	s.mu.RLock()
	h := s.live[id]
	s.mu.RUnlock()
	if h != nil && !h.over(s.o.Now()) {
		return h, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	return s.grantOf(ctx, id)
}

func decodeGrant(raw []byte) (g record, err error) {
	if err := json.Unmarshal(raw, &g); err != nil {
		return record{}, fmt.Errorf("a grant in the store: %w", err)
	}
	if g.V > formatOfValues {
		return record{}, state.ErrNewer
	}
	return g, nil
}

// keep remembers a grant. The caller has mu. What exceeds maxLive is read from the Store again when it is needed.
func (s *grants) keep(h *held) {
	if len(s.live) >= maxLive && s.live[h.ID] == nil {
		for id := range s.live {
			delete(s.live, id)
			break
		}
	}
	s.live[h.ID] = h
}

// errEnd is what an edit returns, wrapped in an *ending, to end the grant instead of changing it.
type ending struct {
	reason string // for the audit
	err    error  // for the caller of change
}

func (e *ending) Error() string { return e.err.Error() }
func (e *ending) Unwrap() error { return e.err }

// errUnknown says that there is no such grant.
var errUnknown = errors.New("unknown grant")

// change replaces a grant by what edit makes of it. Changes of one grant take turns; edit may run more than once. An
// error of edit is returned and changes nothing, unless it is an *ending: then the grant is gone, and its err is
// returned.
func (s *grants) change(ctx context.Context, id string, edit func(*record) error) error {
	turn := s.turn(id)
	turn.Lock()
	defer turn.Unlock()
	for range 10 { // the turn is ours, so only another process could come between
		raw, rev, err := s.o.Store.Get(ctx, grantKey(id))
		if err != nil {
			return err
		}
		if raw == nil {
			return errUnknown
		}
		g, err := decodeGrant(raw)
		if err != nil {
			return err
		}
		if g.over(s.o.Now()) {
			return errUnknown // the next sweep deletes it
		}
		if err := edit(&g); err != nil {
			if e, ok := errors.AsType[*ending](err); ok {
				return s.end(ctx, g, e)
			}
			return err
		}
		ok, err := s.o.Store.Swap(ctx, grantKey(id), encode(g), rev)
		if err != nil {
			s.forget(id) // it may have been written
			return err
		}
		if ok {
			s.mu.Lock()
			s.keep(s.hold(g, s.live[id]))
			s.mu.Unlock()
			return nil
		}
	}
	return errors.New("the grant changes all the time")
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of plain fields
	}
	return raw
}

// end deletes a grant and tells everybody. The caller has its turn.
func (s *grants) end(ctx context.Context, g record, e *ending) error {
	if err := s.o.Store.Delete(ctx, grantKey(g.ID)); err != nil {
		s.forget(g.ID)
		return err
	}
	_ = s.o.Store.Delete(ctx, useKey(g.ID)) // it goes by itself, later
	s.forget(g.ID)
	s.event("logout", g, map[string]any{"reason": e.reason})
	s.o.Revoked()
	return e.err
}

// forget drops a grant from memory, also for those who are just reading it from the Store.
func (s *grants) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, id)
	s.ended++
}

// Grants returns what is in force, the newest first.
func (s *grants) Grants(ctx context.Context) ([]Grant, error) {
	keys, err := s.o.Store.Keys(ctx, state.Grant)
	if err != nil {
		return nil, err
	}
	var all []Grant
	for _, key := range keys {
		h, err := s.grantOf(ctx, strings.TrimPrefix(key, state.Grant+"."))
		if err != nil {
			return nil, err
		}
		if h == nil || !h.Code.Used {
			continue
		}
		g := Grant{ID: h.ID, Client: h.Client, Resource: h.Resource, Created: h.Created, Expires: h.Expires,
			Decision: Decision{Principal: h.Who, Scopes: h.Scopes, Roots: slices.Clone(h.Roots), Mode: h.Mode,
				MaxMode: h.MaxMode, Life: h.Expires.Sub(h.Created)}}
		if at := h.used.Load(); at > 0 {
			g.LastUse = time.Unix(at, 0).UTC()
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b Grant) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// RevokeGrant ends a grant and all its tokens at once, or returns ErrNoGrant.
func (s *grants) RevokeGrant(ctx context.Context, id string) error {
	if len(id) != grantBytes || strings.Trim(id, idLetters) != "" {
		return ErrNoGrant
	}
	err := s.change(ctx, id, func(*record) error { return &ending{reason: "revoked by the operator"} })
	if errors.Is(err, errUnknown) {
		return ErrNoGrant
	}
	return err
}

// Find implements auth.Source.
func (s *grants) Find(text string, now time.Time) (auth.Found, bool, error) {
	if strings.HasPrefix(text, refreshPrefix) || strings.HasPrefix(text, codePrefix) {
		return auth.Found{}, true, auth.NotAccepted("not an access token")
	}
	if !strings.HasPrefix(text, accessPrefix) {
		return auth.Found{}, false, nil
	}
	id, _, ok := cut(text, accessPrefix, secretSize)
	if !ok {
		return auth.Found{}, true, auth.NotAccepted("not the form of an access token")
	}
	h, err := s.quickly(id)
	if err != nil {
		return auth.Found{}, true, &auth.Error{Status: 503, Code: "store_unavailable", RetryAfter: time.Second,
			Message: "The server cannot look up tokens now. Try again later.", Reason: err.Error()}
	}
	sum := digestOf(text)
	if h == nil {
		return auth.Found{}, true, auth.NotAccepted("unknown access token")
	}
	at := -1
	for i := range h.Access {
		if h.Access[i].Hash.is(sum) {
			at = i
		}
	}
	switch {
	case at < 0:
		return auth.Found{}, true, auth.NotAccepted("unknown access token of grant " + id)
	case !now.Before(h.Access[at].Expires):
		return auth.Found{}, true, auth.NotAccepted("access token of grant " + id + " expired")
	case !h.audience:
		return auth.Found{}, true, auth.NotAccepted("access token of grant " + id + " is for another address")
	}
	if sec := now.Unix(); sec > h.used.Load() {
		h.used.Store(sec)
	}
	return h.found[at], true, nil
}

// Valid implements auth.Source. What was opened with an access token goes on when the time of that token is up, for as
// long as the grant holds; it ends when the token is revoked.
func (s *grants) Valid(who auth.Principal) (valid, mine bool) {
	id, mine := strings.CutPrefix(who.Via, via)
	if !mine {
		return false, false
	}
	h, err := s.quickly(id)
	return err == nil && h != nil && h.audience && h.Who == who.ID && !slices.Contains(h.Revoked, who.Token()), true
}

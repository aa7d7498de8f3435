package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/state"
)

// Limits of registered clients. One without any sign-in goes first.
const (
	maxUnused  = 1000
	maxUsed    = 1000
	unusedLife = 7 * 24 * time.Hour
	usedLife   = 400 * 24 * time.Hour // since its last sign-in: some clients register once and for all
	tooYoung   = 10 * time.Minute     // that long an unused one is safe from newer ones
	maxForm    = 16 << 10             // bytes of a body
	maxName    = 80                   // runes
)

// A client is what a client says of itself, checked.
type client struct {
	V         int       `json:"v"`
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	Redirects []string  `json:"redirects"`
	Created   time.Time `json:"created,omitzero"`
	Used      time.Time `json:"used,omitzero"` // when a person last signed in with it; zero: never
	Kind      Kind      `json:"kind"`
	Host      string    `json:"-"`
}

// info is what a page says of a client whose answer goes to redirect.
func (c *client) info(redirect string) ClientInfo {
	i := ClientInfo{ID: c.ID, Name: c.Name, Host: c.Host, Kind: c.Kind}
	i.RedirectHost, i.Loopback = whereTo(redirect)
	return i
}

func (c *client) over(now time.Time) bool {
	if c.Used.IsZero() {
		return now.Sub(c.Created) >= unusedLife
	}
	return now.Sub(c.Used) >= usedLife
}

// A metadata is what a client says of itself, in a registration or in its metadata document.
type metadata struct {
	ClientID  string   `json:"client_id"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Method    string   `json:"token_endpoint_auth_method"`
	Secret    string   `json:"client_secret"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
}

// check refuses what cannot sign in here.
func (m metadata) check() *problem {
	if len(m.Redirects) == 0 || len(m.Redirects) > maxRedirects {
		return wrong("invalid_redirect_uri", "a client needs 1 to 16 redirect URIs")
	}
	for _, r := range m.Redirects {
		if err := checkRedirect(r); err != nil {
			return wrong("invalid_redirect_uri", err.Error())
		}
	}
	if len(m.Responses) > 0 && !slices.Contains(m.Responses, "code") {
		return wrong("invalid_client_metadata", "the only response type here is code")
	}
	if len(m.Grants) > 0 && !slices.Contains(m.Grants, "authorization_code") {
		return wrong("invalid_client_metadata", "clients begin with the grant type authorization_code here")
	}
	if m.Secret != "" {
		return wrong("invalid_client_metadata", "clients have no secret here")
	}
	return nil
}

// A registry is the clients that registered. They are in the Store, and all in memory: there are at most maxUnused and
// maxUsed. It is safe for concurrent use.
type registry struct {
	*shared
	docs *documents

	mu     sync.Mutex
	all    map[string]*client // values are replaced, never changed
	unused int
	queue  []string // ids of the unused ones, the oldest first; and of some that are used or gone by now
}

// add takes a client in. The caller has the lock.
func (s *registry) add(c *client) {
	s.all[c.ID] = c
	if c.Used.IsZero() {
		s.unused++
		s.queue = append(s.queue, c.ID)
	}
}

// drop takes a client out. The caller has the lock.
func (s *registry) drop(id string) {
	if c := s.all[id]; c != nil && c.Used.IsZero() {
		s.unused--
	}
	delete(s.all, id)
}

// oldest returns the oldest unused client; nil: there is none. The caller has the lock.
func (s *registry) oldest() *client {
	for len(s.queue) > 0 {
		if c := s.all[s.queue[0]]; c != nil && c.Used.IsZero() {
			return c
		}
		s.queue = s.queue[1:]
	}
	return nil
}

func clientKey(id string) string { return state.Key(state.Client, id) }

func (s *registry) loadClients(ctx context.Context) error {
	keys, err := s.o.Store.Keys(ctx, state.Client)
	if err != nil {
		return err
	}
	var found []*client
	for _, key := range keys {
		raw, _, err := s.o.Store.Get(ctx, key)
		if err != nil {
			return err
		}
		c := new(client)
		if raw == nil || json.Unmarshal(raw, c) != nil || c.V > formatOfValues {
			continue // a newer version's: it is unknown here
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b *client) int { return a.Created.Compare(b.Created) })
	for _, c := range found {
		s.add(c)
	}
	return nil
}

// register serves POST /oauth/register: RFC 7591. Whatever a client asks for, it gets no secret.
func (s *registry) register(w http.ResponseWriter, r *http.Request) {
	if wait := s.rates.take(paceRegister, s.clientIP(r)); wait > 0 { // of its own: tokens do not wait for it
		tooMany(wait).write(w)
		return
	}
	body, p := readBody(w, r, "application/json")
	if p != nil {
		p.write(w)
		return
	}
	var m metadata
	if err := ReadObject(body, &m); err != nil {
		wrong("invalid_client_metadata", "the body is not the JSON of a registration: "+err.Error()).write(w)
		return
	}
	if p := m.check(); p != nil {
		p.write(w)
		return
	}
	now := s.o.Now().UTC().Truncate(time.Second)
	c := &client{V: formatOfValues, ID: "client-" + newID(26), Name: line(m.Name, maxName), Redirects: m.Redirects,
		Created: now, Kind: Registered}
	if err := s.addClient(r.Context(), c); err != nil {
		temporary("the server cannot take more registrations now").write(w)
		return
	}
	answer := map[string]any{ // no field is null: there are clients that take the whole answer for broken
		"client_id": c.ID, "client_id_issued_at": now.Unix(), "redirect_uris": c.Redirects,
		"token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"},
	}
	if c.Name != "" {
		answer["client_name"] = c.Name
	}
	writeJSON(w, http.StatusCreated, answer)
}

var errManyClients = errors.New("too many clients registered")

// addClient keeps a new client, in the place of the oldest unused one if there are too many.
func (s *registry) addClient(ctx context.Context, c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unused >= maxUnused {
		oldest := s.oldest()
		if s.o.Now().Sub(oldest.Created) < tooYoung {
			return errManyClients
		}
		if err := s.dropClient(ctx, oldest.ID); err != nil {
			return err
		}
	}
	if err := s.o.Store.Set(ctx, clientKey(c.ID), encode(c)); err != nil {
		return err
	}
	s.add(c)
	return nil
}

// dropClient deletes a client. The caller has the lock of the registry.
func (s *registry) dropClient(ctx context.Context, id string) error {
	if err := s.o.Store.Delete(ctx, clientKey(id)); err != nil {
		return err
	}
	s.drop(id)
	return nil
}

// useClient notes that a person signed in with a registered client. If there are too many, the one that was not used
// for longest goes; its grants stay.
func (s *registry) useClient(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.all[id]
	if old == nil {
		return nil // of a metadata document, or it went meanwhile: the grant needs it no more
	}
	c := *old
	c.Used = s.o.Now().UTC().Truncate(time.Second)
	if err := s.o.Store.Set(ctx, clientKey(id), encode(&c)); err != nil {
		return err
	}
	s.drop(id)
	s.add(&c)
	used := 0
	last := &c
	for _, o := range s.all {
		if !o.Used.IsZero() {
			used++
			if o.Used.Before(last.Used) {
				last = o
			}
		}
	}
	if used > maxUsed {
		return s.dropClient(ctx, last.ID)
	}
	return nil
}

func (s *registry) sweepClients(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	for id, c := range s.all {
		if c.over(now) {
			if err := s.dropClient(ctx, id); err != nil {
				return // the next sweep does it
			}
		}
	}
}

// errClient says that a client id is unknown.
var errClient = errors.New("this client is not known here. Remove the connection in the client and add it again")

// clientOf returns the client of an id. The error is for the person who sees the page.
func (s *registry) clientOf(ctx context.Context, r *http.Request, id string) (*client, error) {
	if strings.HasPrefix(id, "https://") {
		return s.docs.get(ctx, id, func() time.Duration { return s.rates.take(paceFetch, s.clientIP(r)) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.all[id]; c != nil && !c.over(s.o.Now()) {
		return c, nil
	}
	return nil, errClient
}

package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

// A Grant is how tokens for a server over HTTP are had by OAuth.
type Grant struct {
	URL    string   // of the MCP server; a token is sent nowhere else
	ID     string   // of this client, as the authorization server knows it; "": it is registered at each sign-in
	Secret string   // of this client; "": it has none
	Scopes []string // that are asked for

	// Client gets tokens for the client itself, by its secret. Else a person signs in (SignIn), and Store keeps what
	// that gave: without it there is no token.
	Client bool
	Store  string // file, absolute
	// Lock keeps other processes from using what Store has, until unlock; nil: there are none.
	Lock func(ctx context.Context, path string) (unlock func(), err error)

	HTTP http.RoundTripper // to both servers; nil: http.DefaultTransport
}

const (
	// tokenTime is how long an authorization server may take for one answer.
	tokenTime = 30 * time.Second
	// lastPage is how long a browser may take to get its last page.
	lastPage  = time.Second
	maxTokens = 1 << 20 // bytes of an answer or of a Store
)

// signed is what the Store has: a token with the client that it was given to.
type signed struct {
	URL    string           `json:"url"`
	ID     string           `json:"client_id"`
	Secret string           `json:"client_secret,omitempty"`
	Method string           `json:"token_endpoint_auth_method,omitempty"`
	Token  *transport.Token `json:"token"`
}

// fileStore is a transport.TokenStore in a file that only its owner may read.
type fileStore struct {
	path string
	mu   sync.Mutex
	kept signed // what belongs to the token
}

func readSigned(path string) (signed, error) {
	var s signed
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer func() { _ = f.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(f, maxTokens))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// GetToken is transport.TokenStore.GetToken. A token for another address counts as none.
func (s *fileStore) GetToken(ctx context.Context) (*transport.Token, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	on, err := readSigned(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (on.URL != s.kept.URL || on.Token == nil) {
		return nil, transport.ErrNoToken
	}
	if err != nil {
		return nil, fmt.Errorf("its tokens cannot be read: %w", err)
	}
	return on.Token, nil
}

// SaveToken is transport.TokenStore.SaveToken.
func (s *fileStore) SaveToken(ctx context.Context, token *transport.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.kept
	on.Token = token
	raw, err := json.Marshal(on)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".token-*") // which only its owner may read
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that counts is there
	}
	return err
}

// Signed says whether somebody has signed in to the server of this address, with what is in the file.
func Signed(path, address string) bool {
	s, err := readSigned(path)
	return err == nil && s.URL == address && s.Token != nil
}

func (g Grant) client() *http.Client {
	return &http.Client{Transport: g.HTTP, Timeout: tokenTime, CheckRedirect: sameHost}
}

// handler is the library's, with what is known of this client.
func (g Grant) handler(store *fileStore, redirect string) *transport.OAuthHandler {
	h := transport.NewOAuthHandler(transport.OAuthConfig{
		ClientID: store.kept.ID, ClientSecret: store.kept.Secret, TokenEndpointAuthMethod: store.kept.Method,
		RedirectURI: redirect, Scopes: g.Scopes, TokenStore: store, PKCEEnabled: true, HTTPClient: g.client(),
	})
	h.SetBaseURL(g.URL)
	return h
}

// Transport adds a token to each request of the server. Where there is none, or it is refused, the requests fail with
// ErrUnauthorized.
func (g Grant) Transport() http.RoundTripper {
	below := cmp.Or(g.HTTP, http.DefaultTransport)
	if g.Client {
		return &clientSigner{grant: g, below: below}
	}
	return &signer{grant: g, below: below}
}

// signer adds the token of a person who has signed in.
type signer struct {
	grant Grant
	below http.RoundTripper

	mu      sync.Mutex
	id      string // of the client that handler is for
	store   *fileStore
	handler *transport.OAuthHandler
}

// RoundTrip is http.RoundTripper.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	header, err := s.header(r.Context())
	if errors.Is(err, transport.ErrOAuthAuthorizationRequired) {
		return nil, ErrUnauthorized
	}
	if err != nil {
		return nil, err
	}
	resp, err := withToken(s.below, r, header)
	if !errors.Is(err, ErrUnauthorized) {
		return resp, err
	}
	// It was taken back, or is older than its server said.
	fresh, ok := s.renew(r.Context(), header)
	if !ok || r.Body != nil && r.GetBody == nil {
		return nil, ErrUnauthorized
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return withToken(s.below, again, fresh)
}

// renew gets another token than the refused one; ok is false if there is none.
func (s *signer) renew(ctx context.Context, refused string) (header string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant.Lock != nil {
		unlock, err := s.grant.Lock(ctx, s.grant.Store)
		if err != nil {
			return "", false
		}
		defer unlock()
	}
	token, err := s.store.GetToken(ctx)
	if err != nil {
		return "", false
	}
	if now := "Bearer " + token.AccessToken; now != refused {
		return now, true // another request, or process, was first
	}
	if token.RefreshToken == "" {
		return "", false
	}
	s.grant.discover(ctx, s.handler)
	if token, err = s.handler.RefreshToken(ctx, token.RefreshToken); err != nil {
		return "", false
	}
	return "Bearer " + token.AccessToken, true
}

// withToken sends a request with its token, and only to the host of the server: the client follows no other redirect.
func withToken(below http.RoundTripper, r *http.Request, header string) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", header)
	resp, err := below.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close() // nothing in it counts
		return nil, ErrUnauthorized
	}
	return resp, err
}

// header is the token for a request, made new if it is too old, by one process at a time: a token that makes new ones
// may be used once.
func (s *signer) header(ctx context.Context) (string, error) {
	on, err := readSigned(s.grant.Store)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (on.URL != s.grant.URL || on.Token == nil) {
		return "", ErrUnauthorized
	}
	if err != nil {
		return "", fmt.Errorf("its tokens cannot be read: %w", err)
	}
	s.mu.Lock()
	if s.handler == nil || s.id != on.ID { // somebody has signed in again
		s.id = on.ID
		kept := on
		kept.Token = nil
		s.store = &fileStore{path: s.grant.Store, kept: kept}
		s.handler = s.grant.handler(s.store, "")
	}
	handler := s.handler
	s.mu.Unlock()
	if on.Token.IsExpired() && s.grant.Lock != nil {
		unlock, err := s.grant.Lock(ctx, s.grant.Store)
		if err != nil {
			return "", err
		}
		defer unlock()
	}
	if on.Token.IsExpired() { // what describes its authorization server is asked for, as at the sign-in
		s.grant.discover(ctx, handler)
	}
	return handler.GetAuthorizationHeader(ctx)
}

// clientSigner adds tokens that are the client's own.
type clientSigner struct {
	grant Grant
	below http.RoundTripper

	mu    sync.Mutex
	meta  *transport.AuthServerMetadata
	token *transport.Token
}

// RoundTrip is http.RoundTripper.
func (s *clientSigner) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := s.get(r.Context())
	if err != nil {
		return nil, fmt.Errorf("%w: its authorization server gives no token: %w", ErrUnauthorized, err)
	}
	resp, err := withToken(s.below, r, "Bearer "+token)
	if errors.Is(err, ErrUnauthorized) {
		s.mu.Lock()
		s.token = nil // the next request gets another
		s.mu.Unlock()
	}
	return resp, err
}

// early is how long before its end a token is replaced.
const early = 10 * time.Second

// get is a token, made when there is none that is good for a while.
func (s *clientSigner) get(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.token; t != nil && (t.ExpiresAt.IsZero() || time.Until(t.ExpiresAt) > early) {
		return t.AccessToken, nil
	}
	if s.meta == nil {
		h := s.grant.handler(&fileStore{}, "")
		s.grant.discover(ctx, h)
		meta, err := h.GetServerMetadata(ctx)
		if err != nil {
			return "", err
		}
		s.meta = meta
	}
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {s.grant.URL}}
	if len(s.grant.Scopes) > 0 {
		form.Set("scope", strings.Join(s.grant.Scopes, " "))
	}
	known := s.meta.TokenEndpointAuthMethodsSupported
	basic := len(known) == 0 || slices.Contains(known, "client_secret_basic") // RFC 8414: what says nothing means that
	if !basic {
		form.Set("client_id", s.grant.ID)
		form.Set("client_secret", s.grant.Secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.meta.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if basic {
		r.SetBasicAuth(url.QueryEscape(s.grant.ID), url.QueryEscape(s.grant.Secret))
	}
	resp, err := s.grant.client().Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxTokens))
	if err != nil {
		return "", err
	}
	var got struct {
		transport.Token
		Error string `json:"error"` // nothing else is shown: it may repeat what was sent
	}
	if json.Unmarshal(raw, &got) != nil || got.Error != "" || got.AccessToken == "" ||
		resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP %d %s", resp.StatusCode, got.Error)
	}
	if got.ExpiresAt = (time.Time{}); got.ExpiresIn > 0 {
		got.ExpiresAt = time.Now().Add(time.Duration(got.ExpiresIn) * time.Second)
	}
	s.token = &got.Token
	return got.AccessToken, nil
}

// discover asks the server without a token, since it may say where its authorization server is described.
func (g Grant) discover(ctx context.Context, h *transport.OAuthHandler) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return // the usual places are tried
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := g.client().Do(r)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }() // nothing in it counts
	if resp.StatusCode == http.StatusUnauthorized {
		h.HandleUnauthorizedResponse(resp)
	}
}

// SignIn lets a person sign in, and keeps the tokens in Store. show is told the address that the person opens; the
// browser comes back to an address of this machine's loopback. It ends with ctx.
func (g Grant) SignIn(ctx context.Context, show func(address string)) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	store := &fileStore{path: g.Store, kept: signed{URL: g.URL, ID: g.ID, Secret: g.Secret}}
	state, err := transport.GenerateState()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	back := make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: tokenTime, Handler: returned(state, back)}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) }) // until it is closed
	defer served.Wait()
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPage)
		defer cancel()
		if server.Shutdown(late) != nil { // the browser still gets its page
			_ = server.Close()
		}
	}()

	h := g.handler(store, "http://"+l.Addr().String()+"/callback")
	g.discover(ctx, h)
	if store.kept.ID == "" {
		if err := h.RegisterClient(ctx, "codehand"); err != nil {
			return fmt.Errorf("this program cannot be registered, so an oauth_client_id is needed: %w", err)
		}
		store.kept.ID, store.kept.Secret = h.GetClientID(), h.GetClientSecret()
		store.kept.Method = h.GetTokenEndpointAuthMethod()
	}
	verifier, err := transport.GenerateCodeVerifier()
	if err != nil {
		return err
	}
	address, err := h.GetAuthorizationURL(ctx, state, transport.GenerateCodeChallenge(verifier))
	if err != nil {
		return err
	}
	show(address)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case said := <-back:
		if refused := said.Get("error"); refused != "" {
			return fmt.Errorf("the authorization server refuses: %s", refused)
		}
		return h.ProcessAuthorizationResponse(ctx, said.Get("code"), state, verifier)
	}
}

// returned is the page to which a browser comes back. The first answer with the state of this sign-in counts; whoever
// sends another one changes nothing.
func returned(state string, back chan<- url.Values) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		said := r.URL.Query()
		if said.Get("state") != state {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "This is not the answer to the sign-in that waits here.\n")
			return
		}
		_, _ = io.WriteString(w, "You can close this page and go back to codehand.\n")
		select {
		case back <- said:
		default: // a second one
		}
	})
	return mux
}

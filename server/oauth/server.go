package oauth

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"codehand/server/auth"
	"codehand/server/state"
)

// Options of a Server.
type Options struct {
	Store state.Store
	// PublicURL is http.public_url, which decides the issuer. "": clients are on this machine, and the issuer is the
	// loopback address that they call.
	PublicURL string
	ClientIP  func(*http.Request) netip.Addr           // for limits; nil: that of the connection
	Event     func(name string, fields map[string]any) // for the audit: login, grant and logout; nil: none
	Revoked   func()                                   // a grant has ended; streams that it opened must end, too
	Now       func() time.Time                         // nil: time.Now
	Log       *slog.Logger                             // nil: nothing is logged
}

// A Server issues tokens, and is the auth.Source that knows them. It is safe for concurrent use.
type Server struct {
	o Options
}

// New makes a Server. The error is that of the Store, or of a wrong PublicURL.
func New(ctx context.Context, o Options) (*Server, error) { return &Server{o: o}, nil }

// Handler returns what serves path, without the path of PublicURL; nil: nothing here does. The paths are those below
// /oauth/ and the metadata below /.well-known/. None of them needs a token.
func (s *Server) Handler(path string) http.Handler { return nil }

// Pending returns a sign-in that waits for a decision, or ErrNoAsk.
func (s *Server) Pending(ctx context.Context, id string) (Ask, error) { return Ask{}, ErrNoAsk }

// SameBrowser says whether the browser that sent r is the one that began the sign-in id. A page must not let another
// one decide: somebody may have been sent the page's address.
func (s *Server) SameBrowser(r *http.Request, id string) bool { return false }

// Approve carries out what a person decided and returns where the browser goes next. An Ask is decided once: of several
// calls all but one get ErrNoAsk. Another error says what of d is wrong, and the Ask goes on waiting.
func (s *Server) Approve(ctx context.Context, id string, d Decision) (redirect string, err error) {
	return "", ErrNoAsk
}

// Refuse tells the client that the person does not want it, and returns where the browser goes next. It is a decision
// as in Approve.
func (s *Server) Refuse(ctx context.Context, id string) (redirect string, err error) {
	return "", ErrNoAsk
}

// Grants returns what is in force, the newest first.
func (s *Server) Grants(ctx context.Context) ([]Grant, error) { return nil, nil }

// RevokeGrant ends a grant and all its tokens at once, or returns ErrNoGrant.
func (s *Server) RevokeGrant(ctx context.Context, id string) error { return ErrNoGrant }

// Find implements auth.Source.
func (s *Server) Find(text string, now time.Time) (auth.Found, bool, error) {
	return auth.Found{}, false, nil
}

// Valid implements auth.Source.
func (s *Server) Valid(who auth.Principal) (valid, mine bool) { return false, false }

// Watch ends what has expired and keeps the last use of grants, until ctx ends.
func (s *Server) Watch(ctx context.Context) { <-ctx.Done() }

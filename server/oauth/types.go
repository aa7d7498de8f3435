package oauth

import (
	"errors"
	"time"

	"codehand/server/auth"
)

// An Ask is a sign-in that waits for a person. A client began it, and a page shows it.
type Ask struct {
	ID       string // unguessable; in the page's URL
	Client   ClientInfo
	Scopes   auth.Scopes // what the client asks for, and the most that a person can approve
	Resource string      // URL of the endpoint that the client wants to use
	Created  time.Time
	Expires  time.Time
}

// Kind says how codehand knows a client.
type Kind string

// The kinds of clients.
const (
	Document   Kind = "document"   // by the metadata document at the URL that is its id: Host is verified
	Registered Kind = "registered" // by its own registration: nothing that it says of itself is verified
)

// ClientInfo is what a page may say of a client. Every text is of one line, has no control characters, and is short.
type ClientInfo struct {
	ID           string
	Name         string // as the client says; may be "", and may be a lie
	Host         string // where its metadata document is, verified; "": a registered client
	RedirectHost string // where the answer goes: a host, or the scheme of an app's URL; "" if Loopback
	Loopback     bool   // the answer goes to a program on the person's own machine
	Kind         Kind
}

// A Decision is what a person approved. It narrows what the operator gives the principal, and never widens it.
type Decision struct {
	Principal string
	Scopes    auth.Scopes   // those of the Ask that are approved; 0: Approve refuses
	Roots     []string      // absolute, each one of the principal's roots or inside one; nil: all of them
	Mode      string        // at the start of a session; "": the principal's
	MaxMode   string        // no session goes above; "": the principal's
	Life      time.Duration // of the grant, at most MaxLife; 0: that of one access token, without a refresh token
}

// Lives of what is issued.
const (
	AskLife     = 10 * time.Minute
	CodeLife    = time.Minute
	AccessLife  = time.Hour
	DefaultLife = 30 * 24 * time.Hour  // of a grant, for a page to suggest
	MaxLife     = 365 * 24 * time.Hour // of a grant
	IdleLife    = 30 * 24 * time.Hour  // a grant that is not refreshed for so long has ended
)

// A Grant is a Decision in force: one client acts for one principal.
type Grant struct {
	ID       string // names it in the audit and for RevokeGrant; no secret
	Decision        // with what Approve settled
	Client   ClientInfo
	Resource string
	Created  time.Time
	Expires  time.Time
	LastUse  time.Time // zero: never; exact within a minute
}

// Errors of Pending, Approve, Refuse and RevokeGrant.
var (
	ErrNoAsk   = errors.New("this sign-in does not exist, has expired or was decided already")
	ErrNoGrant = errors.New("there is no such grant")
)

package people

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
)

// An Invite lets the holder of its code choose, once, how a principal signs in.
type Invite struct {
	ID        string    `json:"id"`   // names it in lists; no secret
	Hash      string    `json:"hash"` // SHA-256 of the code, in hex
	Principal string    `json:"principal"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
	Used      time.Time `json:"used,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

const (
	inviteLife   = 24 * time.Hour
	inviteMemory = 7 * 24 * time.Hour // how long one that is over is listed
	invitePrefix = "chi_"
)

// InvitePath is what stands between the address of serve and the code of an invitation in its link.
const InvitePath = "/signin/invite/"

// State is what an invitation is at a time: used, revoked, expired or open.
func (i Invite) State(now time.Time) string {
	switch {
	case !i.Used.IsZero():
		return "used"
	case !i.Revoked.IsZero():
		return "revoked"
	case !now.Before(i.Expires):
		return "expired"
	}
	return "open"
}

// Invite makes an invitation, and returns it with its secret code. Others of the same principal end: the last link that
// was given counts.
func (b *Book) Invite(principal string) (made Invite, code string, err error) {
	if err := auth.CheckID(principal); err != nil {
		return Invite{}, "", err
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	code = invitePrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	now := second(b.now())
	made = Invite{ID: strings.ToLower(rand.Text()[:10]), Hash: hashOf(code), Principal: principal, Created: now,
		Expires: now.Add(inviteLife)}
	err = b.change(func(r *roll) error {
		for i := range r.Invites {
			if o := &r.Invites[i]; o.Principal == principal && o.State(now) == "open" {
				o.Revoked = now
			}
		}
		r.Invites = append(r.Invites, made)
		return nil
	})
	return made, code, err
}

func hashOf(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// Invites returns all invitations, the oldest first; also those that are over, for a week.
func (b *Book) Invites() ([]Invite, error) {
	r, err := b.read()
	return slices.Clone(r.Invites), err
}

// RevokeInvites ends the open ones that match says, and returns them.
func (b *Book) RevokeInvites(match func(Invite) bool) (ended []Invite, err error) {
	now := second(b.now())
	err = b.change(func(r *roll) error {
		for i := range r.Invites {
			if o := &r.Invites[i]; o.State(now) == "open" && match(*o) {
				o.Revoked = now
				ended = append(ended, *o)
			}
		}
		return nil
	})
	return ended, err
}

// invited finds the open invitation of a code.
func (r *roll) invited(code string, now time.Time) *Invite {
	hash := []byte(hashOf(code))
	for i := range r.Invites {
		o := &r.Invites[i]
		if subtle.ConstantTimeCompare(hash, []byte(o.Hash)) == 1 && o.State(now) == "open" {
			return o
		}
	}
	return nil
}

// Invited returns the invitation of a code, or ErrInvite.
func (b *Book) Invited(code string) (Invite, error) {
	r, err := b.read()
	if err != nil {
		return Invite{}, err
	}
	i := r.invited(code, b.now())
	if i == nil {
		return Invite{}, ErrInvite
	}
	return *i, nil
}

// Accept uses an invitation up: its principal signs in with that password, by its hash, or that passkey from now on,
// and with nothing that was chosen before. handle is what the passkey's authenticator was given; nil without one. Of
// several calls with one code all but one get ErrInvite.
func (b *Book) Accept(code, hash string, key *Passkey, handle []byte) (Person, error) {
	var p Person
	err := b.change(func(r *roll) error {
		now := second(b.now())
		i := r.invited(code, b.now())
		if i == nil {
			return ErrInvite
		}
		i.Used = now
		who := r.made(i.Principal)
		who.Password, who.Passkeys, who.Epoch, who.Changed = hash, nil, who.Epoch+1, now
		if key != nil {
			who.Handle = handle
			if err := r.add(who, *key, now); err != nil {
				return err
			}
		}
		p = *who
		return nil
	})
	return p, err
}

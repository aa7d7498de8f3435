package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"codehand/server/auth/limits"
)

// A Principal is who calls, and what he may do at most. The zero value may do nothing.
type Principal struct {
	ID      string   // as authenticated; see CheckID; compared byte by byte
	Slug    string   // for directory names; different IDs never share one
	Roots   []string // expanded, absolute
	Whole   []string // likewise, those that it has without its token: rules that deny hold there, too
	Seed    string   // directory that is copied into a new workspace; "": none
	Mode    string   // at the start of a session; a name of tools/permission
	MaxMode string   // no session goes above
	Profile string   // which tools are listed and callable: default, readonly; "": default
	Allow   []string // permission rules, as written
	Deny    []string
	Scopes  Scopes
	Quota   limits.Quota
	Admin   bool
	Via     string // none, token:<id>, oauth:<grant>, oidc:<name>

	brought *brought // nil: it came with no token of a Source
}

// LocalID is the principal of stdio and of calls in process: the person who started it.
const LocalID = "local"

// maxID is the longest ID, in bytes.
const maxID = 200

// CheckID refuses what cannot be the ID of a principal: it has 1 to 200 bytes of UTF-8, all of them printable. Two
// spellings of one character are two principals, who share nothing.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("the principal has no name")
	case len(id) > maxID:
		return fmt.Errorf("the principal's name has %d bytes; at most %d are allowed", len(id), maxID)
	case !utf8.ValidString(id) || strings.ContainsRune(id, utf8.RuneError):
		return errors.New("the principal's name is not UTF-8")
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the principal's name contains %U, which is not printable", r)
		}
	}
	return nil
}

// Limits of a slug: file systems take names of 255 bytes, people read shorter ones.
const (
	slugBytes = 40
	slugHash  = 32 // hex digits: a name that is chosen to get another one's directory cannot be found
	// oldHash is how many a slug had before. Directories that have such a name are carried over.
	oldHash = 8
)

// Slug is the name of an ID in paths: the ID itself if it is short, of lower-case letters, digits, `-` and `_`, and not
// like a made one; else what is left of it, and the beginning of its hash.
func Slug(id string) string {
	if isPlain(id) && !endsInHash(id, slugHash) && !endsInHash(id, oldHash) {
		return id
	}
	return hashed(id, slugHash)
}

// OldSlug is what Slug was before; other names that a person finds within minutes have the same one.
func OldSlug(id string) string {
	if isPlain(id) && !endsInHash(id, oldHash) {
		return id
	}
	return hashed(id, oldHash)
}

// hashed is what is left of an ID in a path, with that many digits of its hash.
func hashed(id string, digits int) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(id) {
		if r < utf8.RuneSelf && isSlugByte(byte(r)) {
			b.WriteRune(r)
			gap = false
			continue
		}
		if !gap {
			b.WriteByte('-')
		}
		gap = true
	}
	base := strings.Trim(b.String(), "-")
	sum := sha256.Sum256([]byte(id))
	return base[:min(len(base), slugBytes)] + "-" + hex.EncodeToString(sum[:])[:digits]
}

func isSlugByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func isPlain(id string) bool {
	if id == "" || len(id) > slugBytes || id[0] == '-' || id[0] == '_' {
		return false
	}
	for _, c := range []byte(id) {
		if !isSlugByte(c) {
			return false
		}
	}
	return true
}

// endsInHash says whether an ID looks like a slug that was made from another one, which it must not be equal to.
func endsInHash(id string, digits int) bool {
	at := len(id) - digits
	return at >= 1 && id[at-1] == '-' && strings.Trim(id[at:], "0123456789abcdef") == ""
}

// Seal tells the sessions of one principal apart: it names the grant or static token that the principal came with. An
// issuer of the operator names no grants, and its tokens change with each refresh, so scopes and roots stand for them.
// "": the principal needed no token, and its sessions are all its own.
func (p Principal) Seal() string {
	if p.Via == ModeNone {
		return ""
	}
	parts := []string{p.Via}
	if name, ok := strings.CutPrefix(p.Via, "oidc:"); ok {
		name, _, _ = strings.Cut(name, ":")
		parts = append([]string{"oidc:" + name, p.Scopes.String()}, p.Roots...)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// sameRights says whether two principals may do the same. Quotas do not count: new ones hold from the next request on,
// and what runs need not end for them.
func (p Principal) sameRights(o Principal) bool {
	return p.ID == o.ID && p.Slug == o.Slug && slices.Equal(p.Roots, o.Roots) &&
		slices.Equal(p.Whole, o.Whole) && p.Mode == o.Mode && p.MaxMode == o.MaxMode &&
		p.Profile == o.Profile && slices.Equal(p.Allow, o.Allow) && slices.Equal(p.Deny, o.Deny) &&
		p.Scopes == o.Scopes && p.Admin == o.Admin
}

// clone makes the lists of p the caller's.
func (p Principal) clone() Principal {
	p.Roots, p.Whole = slices.Clone(p.Roots), slices.Clone(p.Whole)
	p.Allow, p.Deny = slices.Clone(p.Allow), slices.Clone(p.Deny)
	return p
}

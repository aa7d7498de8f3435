package issuer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A jwt is a token that was read and not yet verified.
type jwt struct {
	text   string
	header claims
	claims claims
}

// claims are the members of a JSON object.
type claims map[string]json.RawMessage

// registered are the names that mean something to us or to go-oidc, which matches names in any case: another spelling
// of one of these could be read by one of us and not by the other.
var registered = []string{
	"alg", "typ", "kid", "crit", "iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "at_hash", "email",
	"email_verified",
	"_claim_names", "_claim_sources",
}

// parse reads a token: three parts in base64url, the first two of which are JSON objects without doubled names.
func parse(text string) (jwt, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return jwt{}, fmt.Errorf("the token has %d parts, not 3", len(parts))
	}
	j := jwt{text: text}
	for i, to := range []*claims{&j.header, &j.claims} {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		if err != nil {
			return jwt{}, errors.New("a part of the token is not base64url")
		}
		if *to, err = object(raw); err != nil {
			return jwt{}, err
		}
	}
	return j, nil
}

// object reads a JSON object strictly.
func object(raw []byte) (claims, error) {
	if err := unique(raw); err != nil {
		return nil, err
	}
	var c claims
	if json.Unmarshal(raw, &c) != nil || c == nil {
		return nil, errors.New("a part of the token is not a JSON object")
	}
	for name := range c {
		for _, r := range registered {
			if name != r && strings.EqualFold(name, r) {
				return nil, fmt.Errorf("the token spells %s in another case", r)
			}
		}
	}
	return c, nil
}

// maxDepth bounds how deep claims are nested.
const maxDepth = 16

// unique refuses JSON in which an object has two members of one name, at any depth.
func unique(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	var open []map[string]bool // names of each open object; nil: an array
	name := false              // the next token is a name
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err != nil {
			return errors.New("a part of the token is not JSON")
		}
		in := len(open) > 0 && open[len(open)-1] != nil
		if text, ok := t.(string); ok && in && name {
			if open[len(open)-1][text] {
				return errors.New("the token has a claim twice")
			}
			open[len(open)-1][text] = true
			name = false
			continue
		}
		switch t {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > maxDepth {
			return errors.New("the token is nested too deeply")
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// has says whether there is a claim, even null.
func (c claims) has(name string) bool { return c[name] != nil }

// text returns a claim that is a text.
func (c claims) text(name string) (string, bool) {
	var s *string
	if json.Unmarshal(c[name], &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// texts returns a claim that is a text or a list of texts. ok is false for anything else.
func (c claims) texts(name string) (list []string, ok bool) {
	if s, ok := c.text(name); ok {
		return []string{s}, true
	}
	var all []*string
	if json.Unmarshal(c[name], &all) != nil || all == nil || slices.Contains(all, nil) {
		return nil, false
	}
	for _, s := range all {
		list = append(list, *s)
	}
	return list, true
}

// moment returns a claim that is a time in seconds. ok is false for anything else, such as a text.
func (c claims) moment(name string) (at time.Time, ok bool) {
	var n *float64
	if json.Unmarshal(c[name], &n) != nil || n == nil || *n < 0 || *n > 1<<40 {
		return time.Time{}, false
	}
	whole, part := math.Modf(*n)
	return time.Unix(int64(whole), int64(part*1e9)), true
}

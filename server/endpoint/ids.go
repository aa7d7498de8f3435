package endpoint

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"codehand/server/state"
)

// Labels keep the uses of one key apart.
const (
	labelSession = "mcp-session|1|"
	labelSSE     = "sse-session|1|"
)

// idVersion begins every id of a transport session.
const idVersion = "ch1"

// idText is how random bytes and macs are written: lower case, since some proxies change the case of what they log.
var idText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// A Signer makes ids of transport sessions that cannot be forged and belong to one principal each. It keeps no list of
// them, so an id survives a restart.
type Signer struct {
	key []byte
	ttl time.Duration
	now func() time.Time
}

// NewSigner gets the key from the Store, or makes and stores one: all replicas and restarts share it.
func NewSigner(ctx context.Context, store state.Store, ttl time.Duration) (*Signer, error) {
	name := state.Key(state.Keyring, "session")
	for range 3 { // another process may make it at the same time
		key, _, err := store.Get(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("key of session ids: %w", err)
		}
		if len(key) == sha256.Size {
			return &Signer{key: key, ttl: ttl, now: time.Now}, nil
		}
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // it never fails
		if _, err := store.Swap(ctx, name, key, 0); err != nil {
			return nil, fmt.Errorf("key of session ids: %w", err)
		}
	}
	return nil, errors.New("key of session ids: the store does not keep it")
}

// id makes a new id.
func (g *Signer) id(label, principal string) string {
	issued := strconv.FormatInt(g.now().Unix(), 36)
	random := strings.ToLower(rand.Text())
	return strings.Join([]string{idVersion, issued, random, g.mac(label, principal, issued, random)}, ".")
}

func (g *Signer) mac(label, principal, issued, random string) string {
	h := hmac.New(sha256.New, g.key)
	h.Write([]byte(label + principal + "|" + issued + "|" + random))
	return idText.EncodeToString(h.Sum(nil)[:16])
}

// valid reports whether this server made id for this principal and label, at most g.ttl ago.
func (g *Signer) valid(label, principal, id string) bool {
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != idVersion || len(id) > 100 {
		return false
	}
	issued, err := strconv.ParseInt(parts[1], 36, 64)
	if err != nil {
		return false
	}
	genuine := hmac.Equal([]byte(parts[3]), []byte(g.mac(label, principal, parts[1], parts[2])))
	return genuine && g.now().Sub(time.Unix(issued, 0)) <= g.ttl
}

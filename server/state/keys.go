package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Limits of keys, values and streams. They are those of the weakest back-end.
const (
	maxKey         = 200 // bytes
	minTokens      = 2
	maxTokens      = 8
	maxValue       = 256 << 10 // bytes
	maxStreamValue = 64 << 10  // bytes
	maxStream      = 256       // values of one stream
	maxKeys        = 10_000    // of one answer of Keys
)

// DefaultSessionLife is how long a session is remembered after its last write, if nothing else is configured.
const DefaultSessionLife = 30 * 24 * time.Hour

// The families: the first token of a key. The family decides how long its keys live after their last write.
const (
	Session = "sess"  // sess.<principal>.<session>.…: cells, read state, client record
	Job     = "job"   // job.<principal>.<job>: record of a job; the stream of the same name: its output
	Ask     = "ask"   // ask.<nonce>: pending question, taken once
	Lease   = "lease" // lease.path.<path>, lease.<principal>.<job>: renewed by its holder every 10 s
	Kept    = "kept"  // kept.<principal>.<id>: where a kept result is
	Token   = "token" // token.<id>: hashed token and its rights
	Keyring = "key"   // key.<use>: signing keys
	Call    = "call"  // call.<principal>.<id>: idempotency of calls
	Audit   = "audit" // streams only
)

// streamLife is how long a stream lives after its last value.
const streamLife = 24 * time.Hour

// lives says how long the keys of each family live; 0: for ever. What is not here is no family.
func lives(session time.Duration) map[string]time.Duration {
	return map[string]time.Duration{
		Session: session,
		Job:     24 * time.Hour,
		Ask:     10 * time.Minute,
		Lease:   30 * time.Second,
		Kept:    30 * 24 * time.Hour,
		Token:   0,
		Keyring: 0,
		Call:    10 * time.Minute,
		Audit:   streamLife,
	}
}

// Hash makes a token of free text: a path, a principal, a session id. It is the first 16 bytes of its SHA-256 in hex.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Key joins tokens. It does not check them; the Store does.
func Key(tokens ...string) string { return strings.Join(tokens, ".") }

// checkKey refuses what is no key: 2 to 8 tokens of [A-Za-z0-9_-], joined by dots, at most 200 bytes.
func checkKey(key string) error { return checkTokens(key, minTokens) }

// checkPrefix refuses what no key can begin with: as a key, but one token is enough.
func checkPrefix(prefix string) error { return checkTokens(prefix, 1) }

func checkTokens(key string, least int) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrKey, len(key), maxKey)
	}
	tokens := strings.Split(key, ".")
	if len(tokens) < least || len(tokens) > maxTokens {
		return fmt.Errorf("%w: %q has %d tokens, not %d to %d", ErrKey, key, len(tokens), least, maxTokens)
	}
	for _, t := range tokens {
		if t == "" || strings.IndexFunc(t, notInToken) >= 0 {
			return fmt.Errorf("%w: %q has the token %q", ErrKey, key, t)
		}
	}
	return nil
}

func notInToken(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
}

// family is the first token of a key.
func family(key string) string {
	f, _, _ := strings.Cut(key, ".")
	return f
}

// checkValue refuses a value that no back-end would keep, or could not tell from absence.
func checkValue(value []byte, most int) error {
	if len(value) == 0 || len(value) > most {
		return fmt.Errorf("%w: %d bytes, not 1 to %d", ErrSize, len(value), most)
	}
	return nil
}

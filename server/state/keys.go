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
	maxStream      = 256       // values of a stream of a job
	maxRows        = 10_000    // values of a stream of the page
	maxKeys        = 10_000    // of one answer of Keys
)

const day = 24 * time.Hour

// defaultSessionLife is how long a session is remembered after its last write, if nothing else is configured.
const defaultSessionLife = 30 * day

// The families of keys: the first token of each. P stands for the hash of a principal, S for that of a session.
const (
	Session   = "sess"     // sess.P.S.…: cells, read state, client record
	Ask       = "ask"      // ask.<nonce>: pending question, taken once
	Call      = "call"     // call.P.<hash>: a call that its client may repeat
	Job       = "job"      // job.P.<job>: record of a job; the stream of the same name: the end of its output
	Lease     = "lease"    // lease.path.<path>, lease.P.<job>, lease.ws.P: renewed by its holder every 10 s
	Kept      = "kept"     // kept.P.<id>: where a kept result is
	Wish      = "wish"     // wish.<hash>: cancel of a call that runs elsewhere
	Principal = "prin"     // prin.P: who it is, first seen, state of the workspace
	Token     = "token"    // token.<id>: hashed token and its rights
	TokenUse  = "tokenuse" // tokenuse.<id>: when a token was used last
	Keyring   = "key"      // key.<use>: signing keys
	Replica   = "rep"      // rep.<id>: a running process; written every 2 s
	Browser   = "web"      // web.<hash>: a browser in which a person signed in to approve clients
	Worker    = "work"     // work.<id>: a worker behind a front
	Place     = "place"    // place.P: which worker serves a principal
	SignIn    = "signin"   // signin.<hash>: a sign-in that waits for a person, decided once
	Grant     = "grant"    // grant.<id>: what a person approved, with hashes of its tokens; its owner deletes it
	Pause     = "pause"    // pause.P, pause.all: a person has paused calls, or has resumed them
	Client    = "client"   // client.<id>: an OAuth client that registered; its owner deletes it
)

// The families of streams, beside Job. They have no keys.
const (
	Audit  = "audit"  // audit.all: one row per finished call
	Change = "change" // change.all: one row per changed file
)

// A keyFamily is the first token of a key. A key of an unknown family is ErrKey.
type keyFamily struct {
	Name   string
	Life   time.Duration // from the last write; 0: until deleted
	Global bool          // the second token is no principal, so Keys and Watch may ask for the whole family
}

// families is the only list of families that have keys.
func families(session time.Duration) []keyFamily {
	return []keyFamily{
		{Name: Session, Life: session},
		{Name: Ask, Life: 10 * time.Minute, Global: true},
		{Name: Call, Life: time.Hour}, // longer than a call may run
		{Name: Job, Life: day},
		{Name: Lease, Life: 30 * time.Second},
		{Name: Kept, Life: 30 * day},
		{Name: Wish, Life: time.Minute, Global: true},
		{Name: Principal, Global: true},
		{Name: Token, Global: true},
		{Name: TokenUse, Life: 40 * day, Global: true},
		{Name: Keyring, Global: true},
		{Name: Replica, Life: holdLife, Global: true},
		{Name: Browser, Life: 12 * time.Hour, Global: true},
		{Name: Worker, Life: 30 * time.Second, Global: true},
		{Name: Place, Global: true},
		{Name: SignIn, Life: 10 * time.Minute, Global: true},
		{Name: Grant, Global: true},
		{Name: Pause, Global: true},
		{Name: Client, Global: true},
	}
}

// A streamFamily is the first token of a stream's name.
type streamFamily struct {
	name   string
	length int           // values; the oldest is dropped for one more
	life   time.Duration // from the last value
}

// streamFamilies is the only list of families that have streams.
func streamFamilies() []streamFamily {
	return []streamFamily{
		{Job, maxStream, day},
		{Audit, maxRows, day},
		{Change, maxRows, 30 * day},
	}
}

// plan says what is a key and what is a stream.
type plan struct {
	families map[string]keyFamily
	streams  map[string]streamFamily
}

func newPlan(session time.Duration) plan {
	p := plan{families: map[string]keyFamily{}, streams: map[string]streamFamily{}}
	for _, f := range families(session) {
		p.families[f.Name] = f
	}
	for _, s := range streamFamilies() {
		p.streams[s.name] = s
	}
	return p
}

// key returns the family of a key, or ErrKey.
func (p plan) key(key string) (keyFamily, error) {
	if err := checkKey(key); err != nil {
		return keyFamily{}, err
	}
	f, ok := p.families[family(key)]
	if !ok {
		return keyFamily{}, fmt.Errorf("%w: %q is of no family", ErrKey, key)
	}
	return f, nil
}

// prefix refuses what no key can begin with, and a family alone that is not global: no caller reads all principals.
func (p plan) prefix(prefix string) error {
	if err := checkTokens(prefix, 1); err != nil {
		return err
	}
	switch f, ok := p.families[family(prefix)]; {
	case !ok:
		return fmt.Errorf("%w: %q is of no family", ErrKey, prefix)
	case !f.Global && prefix == f.Name:
		return fmt.Errorf("%w: %q is the family of all principals", ErrKey, prefix)
	}
	return nil
}

// stream returns the family of a stream, or ErrKey.
func (p plan) stream(name string) (streamFamily, error) {
	if err := checkKey(name); err != nil {
		return streamFamily{}, err
	}
	f, ok := p.streams[family(name)]
	if !ok {
		return streamFamily{}, fmt.Errorf("%w: %q is of no family of streams", ErrKey, name)
	}
	return f, nil
}

// group is the longest prefix that two keys must share if one Keys or Watch can find both: the principal's part of a
// family, or the whole of a global one.
func (p plan) group(key string) string {
	f, rest, found := strings.Cut(key, ".")
	if p.families[f].Global || !found {
		return f
	}
	second, _, _ := strings.Cut(rest, ".")
	return key[:len(f)+1+len(second)]
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

func checkTokens(key string, least int) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrKey, len(key), maxKey)
	}
	count := 0
	for rest, more := key, true; more; {
		var t string
		t, rest, more = strings.Cut(rest, ".")
		count++
		if !isToken(t) {
			return fmt.Errorf("%w: %q has the token %q", ErrKey, key, t)
		}
	}
	if count < least || count > maxTokens {
		return fmt.Errorf("%w: %q has %d tokens, not %d to %d", ErrKey, key, count, least, maxTokens)
	}
	return nil
}

func isToken(t string) bool {
	for _, c := range []byte(t) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return t != ""
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

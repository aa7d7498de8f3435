package asking

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"codehand/server/pipeline"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// stateVersion begins every requestState.
	stateVersion = "v1"
	// label keeps this use of a key apart from others.
	label = "ask|1|"
	// keyLife is how long a key signs. The one before it still verifies, so no question is lost.
	keyLife = 24 * time.Hour
	// storeTries is how often a race with another process is run again.
	storeTries = 3
)

// ErrForged says that a requestState is not one that was made for this principal, session and tool.
var ErrForged = errors.New("a requestState that is not ours")

// A keptAsk is a waiting question, as the Store holds it. It leaves out the text that was shown: that may be a command
// line or a plan, and no reader needs it any more.
type keptAsk struct {
	V      int         `json:"v"` // 1
	At     time.Time   `json:"at"`
	Used   bool        `json:"used,omitempty"` // an answer came; nothing else is left
	Tool   string      `json:"tool,omitempty"`
	Digest string      `json:"digest,omitempty"`
	Fields []keptField `json:"fields,omitempty"`
	// as Question.Decides
	Decides string          `json:"decides,omitempty"`
	Before  json.RawMessage `json:"before,omitempty"`
}

// A keptField is what an answer is held against.
type keptField struct {
	Name     string   `json:"name"`
	Choices  []string `json:"choices,omitempty"`
	Many     bool     `json:"many,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	Flags    bool     `json:"flags,omitempty"` // each choice was a flag of its own
}

// keepField is what an answer of a client of a revision is held against.
func keepField(f tool.Field, revision string) keptField {
	return keptField{Name: f.Name, Choices: f.Choices, Many: f.Many, Optional: f.Optional,
		Flags: f.Many && revision < namedChoices}
}

// keep stores a question as a client of a revision is asked it, and returns its nonce and the requestState that names
// it.
func (a *Asker) keep(ctx context.Context, key session.Key, q pipeline.Asking,
	revision string) (nonce, token string, err error) {
	keys, err := a.keys(ctx, true)
	if err != nil {
		return "", "", err
	}
	k := keptAsk{V: 1, At: a.now(), Tool: q.Tool, Digest: q.Digest, Before: q.Before, Decides: q.Question.Decides}
	for _, f := range q.Question.Fields {
		k.Fields = append(k.Fields, keepField(f, revision))
	}
	body, err := json.Marshal(k)
	if err != nil {
		return "", "", fmt.Errorf("keep a question: %w", err)
	}
	nonce = strings.ToLower(rand.Text())
	ok, err := a.store.Swap(ctx, state.Key(state.Ask, nonce), body, 0)
	if err != nil {
		return "", "", fmt.Errorf("keep a question: %w", err)
	}
	if !ok {
		return "", "", errors.New("keep a question: 16 random bytes came twice")
	}
	return nonce, strings.Join([]string{stateVersion, nonce, mac(keys.Key, nonce, key, q.Tool)}, "."), nil
}

// open returns the nonce of a requestState. The error is ErrForged, or that of the Store.
func (a *Asker) open(ctx context.Context, key session.Key, name, token string) (nonce string, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[0] != stateVersion || len(token) > 200 {
		return "", ErrForged
	}
	keys, err := a.keys(ctx, false)
	if err != nil {
		return "", err
	}
	for _, k := range [][]byte{keys.Key, keys.Before} {
		if len(k) == sha256.Size && hmac.Equal([]byte(parts[2]), []byte(mac(k, parts[1], key, name))) {
			return parts[1], nil
		}
	}
	return "", ErrForged
}

func mac(key []byte, nonce string, of session.Key, name string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(label + nonce + "|" + state.Hash(of.Principal) + "|" + state.Hash(of.Session) + "|" + name))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// take takes a question out, for one caller on any replica. nil: it was answered before, or its time is over.
func (a *Asker) take(ctx context.Context, nonce string) (*keptAsk, error) {
	name := state.Key(state.Ask, nonce)
	body, rev, err := a.store.Get(ctx, name)
	if err != nil || body == nil {
		return nil, err
	}
	k := &keptAsk{}
	if err := json.Unmarshal(body, k); err != nil {
		return nil, fmt.Errorf("a question: %w", err)
	}
	if k.V != 1 {
		return nil, fmt.Errorf("a question of format %d", k.V)
	}
	if k.Used || a.now().Sub(k.At) > a.Life {
		return nil, nil
	}
	used, err := json.Marshal(keptAsk{V: 1, At: k.At, Used: true})
	if err != nil {
		return nil, err
	}
	ok, err := a.store.Swap(ctx, name, used, rev)
	if err != nil || !ok {
		return nil, err
	}
	return k, nil
}

// keyring are the keys of requestStates, as the Store holds them.
type keyring struct {
	V      int       `json:"v"` // 1
	Made   time.Time `json:"made"`
	Key    []byte    `json:"key"`              // 32 bytes
	Before []byte    `json:"before,omitempty"` // the one that Key took the place of
}

// keys reads the keys. With sign, one that is too old, or missing, is replaced: all replicas and restarts share it.
func (a *Asker) keys(ctx context.Context, sign bool) (keyring, error) {
	name := state.Key(state.Keyring, "ask")
	for range storeTries {
		var k keyring
		body, rev, err := a.store.Get(ctx, name)
		if err == nil && body != nil {
			err = json.Unmarshal(body, &k)
		}
		if err != nil {
			return k, fmt.Errorf("key of questions: %w", err)
		}
		if k.V > 1 {
			return k, fmt.Errorf("key of questions: format %d", k.V)
		}
		if !sign || len(k.Key) == sha256.Size && a.now().Sub(k.Made) < keyLife {
			return k, nil
		}
		next := keyring{V: 1, Made: a.now(), Key: make([]byte, sha256.Size), Before: k.Key}
		_, _ = rand.Read(next.Key) // it never fails
		if body, err = json.Marshal(next); err != nil {
			return k, err
		}
		ok, err := a.store.Swap(ctx, name, body, rev)
		if err != nil {
			return k, fmt.Errorf("key of questions: %w", err)
		}
		if ok {
			return next, nil
		}
	}
	return keyring{}, errors.New("key of questions: the store does not keep it")
}

package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"codehand/server/state"
	"codehand/tools/session"
)

// A ClientRecord is what a client said about itself when it initialized. It is replaced as a whole, never changed.
type ClientRecord struct {
	V        int      `json:"v"` // 1
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty"`
	Protocol string   `json:"protocol,omitempty"` // negotiated
	CanAsk   bool     `json:"ask,omitempty"`      // declared elicitation
	Cards    bool     `json:"cards,omitempty"`    // declared that it shows cards
	Samples  bool     `json:"samples,omitempty"`  // declared sampling with tools
	Sampling bool     `json:"model,omitempty"`    // declared sampling, with tools or without
	HasRoots bool     `json:"roots,omitempty"`    // declared roots
	Roots    []string `json:"dirs,omitzero"`      // its answer about them, over HTTP; nil: none yet

	Capabilities any `json:"-"` // all that it declared, for who extends the server; nil: not kept
}

// Records keep what clients said of themselves, by session. They outlive the process, because clients do not initialize
// again when the server restarts.
type Records struct {
	Store state.Store
	Log   *slog.Logger
}

// ClientKey names the record among what is remembered of a session.
const ClientKey = "client"

// Remember writes what a client said about itself, for requests after a restart.
func (r Records) Remember(ctx context.Context, key session.Key, c *ClientRecord) error {
	c.V = 1
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return r.Store.Set(ctx, cellKey(key, ClientKey), body)
}

// Recall reads it. gone says that the session was ended for good. A session without a record has an empty one.
func (r Records) Recall(ctx context.Context, key session.Key) (c *ClientRecord, gone bool, err error) {
	tomb, _, err := r.Store.Get(ctx, cellKey(key, "gone"))
	if err != nil || tomb != nil {
		return nil, tomb != nil, err
	}
	c = &ClientRecord{}
	body, _, err := r.Store.Get(ctx, cellKey(key, ClientKey))
	if err != nil {
		return nil, false, err
	}
	if body != nil {
		if err := json.Unmarshal(body, c); err != nil {
			r.Log.Warn("a client record cannot be read", "err", err)
			c = &ClientRecord{}
		}
	}
	return c, false, nil
}

// Bury marks a session as gone.
func (r Records) Bury(ctx context.Context, key session.Key) error {
	if err := r.Store.Set(ctx, cellKey(key, "gone"), []byte(`{"v":1}`)); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// Clear removes all that is remembered of a session but that it is gone. What cannot be removed ends with its life.
func (r Records) Clear(ctx context.Context, key session.Key) {
	keys, err := r.Store.Keys(ctx, state.Key(state.Session, state.Hash(key.Principal), state.Hash(key.Session)))
	for _, k := range keys {
		if k != cellKey(key, "gone") {
			err = errors.Join(err, r.Store.Delete(ctx, k))
		}
	}
	if err != nil {
		r.Log.Warn("what a session left cannot be removed", "err", err)
	}
}

func cellKey(key session.Key, cell string) string {
	return state.Key(state.Session, state.Hash(key.Principal), state.Hash(key.Session), cell)
}

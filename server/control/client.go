package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"codehand/server/oauth"
	"codehand/server/state"
)

// A Desk is where a command asks about grants: the running server, or the Store if none runs. It is for one command at
// a time.
type Desk struct {
	server *http.Client // nil: the Store is ours
	direct Grants       // nil: a server answers, or nothing was ever kept
	close  func() error
}

// Open finds the server that has the data directory, or opens the Store that url names with o while none does. The
// error says who is in the way.
func Open(ctx context.Context, dir, url string, o state.Options) (*Desk, error) {
	place, release, err := reach(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &Desk{close: func() error { return nil }}, nil
	} else if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", place) }
	if c, err := dial(ctx); err == nil {
		_ = c.Close()
		transport := &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
		return &Desk{server: &http.Client{Transport: transport, Timeout: answerTime},
			close: func() error { release(); return nil }}, nil
	} else if errors.Is(err, fs.ErrPermission) {
		release()
		return nil, fmt.Errorf("%s: the server belongs to another user", socketIn(dir))
	}
	release()
	if _, err := os.Lstat(filepath.Join(dir, "lock")); url == state.OnDisk && errors.Is(err, fs.ErrNotExist) {
		return &Desk{close: func() error { return nil }}, nil // no server has ever run there
	}
	o.Dir = dir
	store, err := state.Open(ctx, url, o)
	if used, ok := errors.AsType[*state.InUseError](err); ok {
		return nil, fmt.Errorf("%w, a server in which nobody signs in; its auth.mode must have owner or team", used)
	} else if err != nil {
		return nil, err
	}
	grants, err := oauth.New(ctx, oauth.Options{Store: store})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Desk{direct: grants, close: store.Close}, nil
}

// List returns what is in force, the newest first.
func (d *Desk) List(ctx context.Context) ([]Row, error) {
	switch {
	case d.server != nil:
		return d.ask(ctx, http.MethodGet, "grants", nil)
	case d.direct != nil:
		return list(ctx, d.direct)
	}
	return []Row{}, nil
}

// Revoke ends grants, and returns those that it ended, also with an error.
func (d *Desk) Revoke(ctx context.Context, w Wish) ([]Row, error) {
	switch {
	case d.server != nil:
		body, err := json.Marshal(w)
		if err != nil {
			return nil, err
		}
		return d.ask(ctx, http.MethodPost, "revoke", body)
	case d.direct != nil:
		return revoke(ctx, d.direct, w)
	}
	return []Row{}, nil
}

// Close gives the Store back.
func (d *Desk) Close() error { return d.close() }

func (d *Desk) ask(ctx context.Context, method, what string, body []byte) ([]Row, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://control/"+what, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := d.server.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the server does not answer: %w", err)
	}
	defer answer.Body.Close()
	said := struct {
		Rows  []Row
		Error string
	}{}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return nil, fmt.Errorf("the server does not answer: status %d", answer.StatusCode)
	}
	if said.Error != "" {
		return said.Rows, errors.New(said.Error)
	}
	return said.Rows, nil
}

package control

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/server/oauth"
)

// Grants are what a person approved. *oauth.Server has them.
type Grants interface {
	Grants(ctx context.Context) ([]oauth.Grant, error)
	RevokeGrant(ctx context.Context, id string) error
}

// A Row is a grant as it is listed. It has no secret.
type Row struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Client    Client    `json:"client"`
	Scopes    []string  `json:"scopes"`
	MaxMode   string    `json:"max_mode,omitempty"` // "": the principal's
	Roots     []string  `json:"roots,omitempty"`    // none: all of the principal's
	Created   time.Time `json:"created"`
	LastUse   time.Time `json:"last_used,omitzero"`
	Expires   time.Time `json:"expires"`
}

// A Client is who acts by a grant.
type Client struct {
	Name string `json:"name,omitempty"` // as it says
	Host string `json:"host,omitempty"` // verified; "": nothing is
}

func rowOf(g oauth.Grant) Row {
	return Row{ID: g.ID, Principal: g.Principal, Client: Client{g.Client.Name, g.Client.Host},
		Scopes: strings.Fields(g.Scopes.String()), MaxMode: g.MaxMode, Roots: g.Roots, Created: g.Created,
		LastUse: g.LastUse, Expires: g.Expires}
}

// A Wish says which grants to revoke: those with these IDs, those of a principal, or all.
type Wish struct {
	IDs       []string `json:"ids,omitempty"`
	Principal string   `json:"principal,omitempty"`
	All       bool     `json:"all,omitempty"`
}

func (w Wish) match(r Row) bool {
	return w.All || w.Principal != "" && r.Principal == w.Principal || slices.Contains(w.IDs, r.ID)
}

const (
	socketName = "control.sock"
	headerTime = 5 * time.Second
	answerTime = 60 * time.Second
	maxWish    = 1 << 20 // bytes
)

func list(ctx context.Context, g Grants) ([]Row, error) {
	all, err := g.Grants(ctx)
	rows := make([]Row, len(all))
	for i, one := range all {
		rows[i] = rowOf(one)
	}
	return rows, err
}

// revoke returns what has ended.
func revoke(ctx context.Context, g Grants, w Wish) ([]Row, error) {
	rows, err := list(ctx, g)
	if err != nil {
		return nil, err
	}
	ended := []Row{}
	for _, r := range rows {
		if !w.match(r) {
			continue
		}
		switch err := g.RevokeGrant(ctx, r.ID); {
		case err == nil:
			ended = append(ended, r)
		case !errors.Is(err, oauth.ErrNoGrant):
			return ended, err
		}
	}
	return ended, nil
}

// Serve answers commands on the socket of a data directory until ctx ends, and removes it. The error is why it could
// not begin: without the socket everything else works.
func Serve(ctx context.Context, dir string, g Grants, log *slog.Logger) error {
	place, release, err := reach(dir)
	if err != nil {
		return err
	}
	defer release()
	l, err := listen(ctx, place)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(g, log), ReadHeaderTimeout: headerTime, ReadTimeout: headerTime,
		WriteTimeout: answerTime, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(ours{l}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen makes the socket. The directory is our own, and its lock as well, so a socket without a listener is the rest
// of a killed server.
func listen(ctx context.Context, place string) (net.Listener, error) {
	if info, err := os.Lstat(place); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, errors.New(socketName + " is no socket; remove it")
		}
		if c, err := new(net.Dialer).DialContext(ctx, "unix", place); err == nil {
			_ = c.Close()
			return nil, errors.New("another server answers at " + socketName)
		}
		if err := os.Remove(place); err != nil {
			return nil, err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", place)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(place, 0o600); err != nil { // until then the directory keeps others out
		_ = l.Close() // not served
		return nil, err
	}
	return l, nil
}

// ours accepts connections of our own user and of root only.
type ours struct{ net.Listener }

func (l ours) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || mayAsk(c) {
			return c, err
		}
		_ = c.Close() // it gets no answer
	}
}

func handler(g Grants, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, rows []Row, err error) {
		said := struct {
			Rows  []Row  `json:"rows"`
			Error string `json:"error,omitempty"`
		}{Rows: rows}
		if err != nil {
			log.Error("a command of the operator failed", "err", err)
			said.Error = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said) // a command that is gone needs no answer
	}
	mux.HandleFunc("GET /grants", func(w http.ResponseWriter, r *http.Request) {
		rows, err := list(r.Context(), g)
		answer(w, rows, err)
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		var wish Wish
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxWish)).Decode(&wish); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		rows, err := revoke(r.Context(), g, wish)
		answer(w, rows, err)
	})
	return mux
}

func socketIn(dir string) string { return filepath.Join(dir, socketName) }

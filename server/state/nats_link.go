package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A natsLink is a connection to servers of NATS, which is made again when it breaks. Safe for concurrent use.
type natsLink struct {
	conn *nats.Conn

	mu    sync.Mutex      // covers the rest
	again chan struct{}   // closed after a reconnect, and made anew
	link  context.Context // ends when the connection does, and with it what waits for an answer
	cut   context.CancelFunc
}

func newNATSLink() *natsLink {
	l := &natsLink{again: make(chan struct{})}
	l.link, l.cut = context.WithCancel(context.Background())
	return l
}

// options are those of the connection.
func (l *natsLink) options(o NATSOptions) ([]nats.Option, error) {
	host, _ := os.Hostname() // for people who look at connections
	out := []nats.Option{
		nats.Name("codehand " + host), nats.Timeout(2 * time.Second), nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.ReconnectBufSize(-1), // what cannot be sent now fails now, and is known not to be carried out
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(),                                       // a file of credentials can be renewed
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // it would print; operations say what fails
		nats.DisconnectErrHandler(func(*nats.Conn, error) { l.disconnected() }),
		nats.ReconnectHandler(func(*nats.Conn) { l.reconnected() }),
	}
	if o.CredsFile != "" {
		out = append(out, nats.UserCredentials(o.CredsFile))
	}
	if o.NKeyFile != "" {
		key, err := nats.NkeyOptionFromSeed(o.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("store.nats.nkey_file: %w", err)
		}
		out = append(out, key)
	}
	if o.User != "" {
		password, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("store.nats.password_file: %w", err)
		}
		out = append(out, nats.UserInfo(o.User, strings.TrimRight(string(password), "\r\n")))
	}
	if o.CAFile != "" {
		out = append(out, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" {
		out = append(out, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	return out, nil
}

// connect connects, and tries again until ctx ends.
func (l *natsLink) connect(ctx context.Context, servers []string, o NATSOptions) error {
	options, err := l.options(o)
	if err != nil {
		return err
	}
	began := time.Now()
	for {
		if l.conn, err = nats.Connect(strings.Join(servers, ","), options...); err == nil {
			return nil
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
			return fmt.Errorf("it refused to let codehand in: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not reachable for %v: %w", time.Since(began).Round(time.Second), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Connect makes a connection of its own to the servers of a Store in NATS, for what is no state, and tries for a while.
// It is made again when it breaks; what is sent meanwhile fails at once.
func Connect(ctx context.Context, url string, o NATSOptions) (*nats.Conn, error) {
	servers, err := natsServers(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	l := newNATSLink()
	if err := l.connect(ctx, servers, o); err != nil {
		return nil, fmt.Errorf("nats %s: %w", url, err)
	}
	return l.conn, nil
}

// disconnected gives up what waits for an answer: none can come on another connection.
func (l *natsLink) disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
	l.link, l.cut = context.WithCancel(context.Background())
}

// linked is a context that also ends with the connection.
func (l *natsLink) linked(ctx context.Context) (context.Context, func()) {
	l.mu.Lock()
	link := l.link
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(link, cancel)
	return ctx, func() { unlink(); cancel() }
}

func (l *natsLink) reconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.again)
	l.again = make(chan struct{})
}

// afresh is closed after the next reconnect.
func (l *natsLink) afresh() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}

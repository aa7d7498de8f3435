package state

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// oldestServer is the first nats-server that loses nothing it acknowledged when one of three is killed.
	oldestServer = "2.12.3"

	// openTime is how long Open waits for a server that does not answer: after a power cut all start at once.
	openTime = 30 * time.Second

	// lookEvery is how old Stats may be.
	lookEvery = 15 * time.Second
)

// NATSOptions say how a server of NATS is reached. Files are absolute; "" is none. At most one of CredsFile, NKeyFile
// and User is set.
type NATSOptions struct {
	Prefix       string // of all names in NATS; "": codehand
	CredsFile    string // credentials, as nsc makes them
	NKeyFile     string // seed of an nkey
	User         string
	PasswordFile string // of User
	CAFile       string // authorities that sign servers; "": those of the system
	CertFile     string // our certificate, with KeyFile
	KeyFile      string

	lives map[string]time.Duration // of families, where they are others, for tests
}

// natsPrefix is what stands before all names if nothing else is configured.
const natsPrefix = "codehand"

// natsStore is a Store in JetStream. Each family of keys is a stream of its own, with one message for each key, whose
// sequence is the revision; NATS ends lives by the clock of its servers.
//
// What can go wrong is told apart by whether a write may have been carried out. One without an answer is sent again
// until its time is up, with the same id: NATS drops the second of two Sets or Appends with one id, and a Swap that
// comes too late for itself finds its id in the value.
type natsStore struct {
	natsNames
	*natsLink
	plan    plan
	timeout time.Duration
	most    int64 // MaxBytes
	js      jetstream.JetStream
	breaker *breaker
	stop    chan struct{} // closed by Close
	end     func() error  // once
	running sync.WaitGroup

	mu    sync.Mutex // covers the rest
	stats Stats
}

// isNATS says whether url names servers of NATS.
func isNATS(url string) bool {
	return strings.HasPrefix(url, "nats://") || strings.HasPrefix(url, "tls://")
}

// CheckURL returns why Open could not use url; nil: it can. The error never repeats the url, which may hold a password.
func CheckURL(url string) error {
	if _, known := openers[url]; known {
		return nil
	}
	if !isNATS(url) {
		return fmt.Errorf("must be one of %s, or nats://HOST:PORT or tls://HOST:PORT, several with commas",
			strings.Join(URLs(), ", "))
	}
	_, err := natsServers(url)
	return err
}

// CheckPrefix returns why NATSOptions.Prefix could not be prefix; nil: it can.
func CheckPrefix(prefix string) error {
	if !isToken(prefix) || len(prefix) > 32 {
		return errors.New("must be 1 to 32 of A-Z a-z 0-9 _ and -")
	}
	return nil
}

// Kind is what a url is called in metrics: embedded, memory or nats.
func Kind(url string) string {
	if isNATS(url) {
		return "nats"
	}
	return strings.TrimSuffix(url, ":")
}

// natsServers takes the list of servers apart.
func natsServers(list string) (servers []string, err error) {
	scheme, _, _ := strings.Cut(list, "://")
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = scheme + "://" + one
		}
		u, err := url.Parse(one)
		switch {
		case err != nil:
			return nil, errors.New("is no URL: write nats://HOST:PORT, several with commas")
		case u.User != nil:
			return nil, errors.New("must hold no user and no password: store.nats.creds_file, store.nats.nkey_file " +
				"or store.nats.user and store.nats.password_file name them")
		case u.Scheme != scheme:
			return nil, errors.New("must have the same scheme for all servers: nats:// or tls://")
		case u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return nil, errors.New("must be nats://HOST:PORT or tls://HOST:PORT, several with commas")
		}
		port := u.Port()
		if port == "" {
			port = strconv.Itoa(nats.DefaultPort)
		}
		servers = append(servers, scheme+"://"+net.JoinHostPort(u.Hostname(), port))
	}
	return servers, nil
}

// openNATS opens the Store in NATS, mostly for this process alone: another process with the same prefix is refused
// while this one lives.
func openNATS(ctx context.Context, url string, o Options) (Store, error) {
	named := func(err error) error { return fmt.Errorf("store %s: %w", url, err) }
	servers, err := natsServers(url)
	if err != nil {
		return nil, fmt.Errorf("store.url: %w", err)
	}
	patience := openTime
	if o.Impatient {
		patience = o.Timeout
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	release, err := lockFiles(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := dialNATS(within, servers, o, release)
	if err != nil {
		return nil, named(errors.Join(err, release()))
	}
	if err := s.prepare(within); err != nil {
		return nil, named(errors.Join(err, s.Close()))
	}
	patient := patientNATS{s}
	if o.Nodes {
		if err := Unheld(ctx, patient); err != nil {
			return nil, named(errors.Join(err, s.Close()))
		}
		s.breaker.probe = func(ctx context.Context) error {
			_, _, err := patient.Get(ctx, holdKey)
			return err
		}
		s.running.Go(s.watchStats)
		return s, nil
	}
	holder := newHold(patient)
	if err := takeAlone(ctx, holder); err != nil {
		return nil, named(errors.Join(err, s.Close()))
	}
	held := Held(s, holder)
	s.breaker.probe = holder.Renew
	s.running.Go(func() { holder.Keep(s.stop, func() {}) })
	s.running.Go(s.watchStats)
	return held, nil
}

// lockFiles keeps other servers out of a data directory, where the journal and the audit are; "" has none.
func lockFiles(dir string) (release func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("store nats: the data dir %q is not absolute", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store nats: %w", err)
	}
	return lockDir(dir)
}

func positive(d, instead time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return instead
}

// dialNATS connects, and tries again until ctx ends. The Store calls release when it is closed.
func dialNATS(ctx context.Context, servers []string, o Options, release func() error) (*natsStore, error) {
	s := &natsStore{
		natsNames: natsNames{o.NATS.Prefix}, natsLink: newNATSLink(), timeout: o.Timeout, most: o.MaxBytes,
		stop: make(chan struct{}),
	}
	if s.prefix == "" {
		s.prefix = natsPrefix
	}
	if err := CheckPrefix(s.prefix); err != nil {
		return nil, fmt.Errorf("store.nats.prefix: %w", err)
	}
	if s.most <= 0 {
		s.most = defaultMaxBytes
	}
	session := positive(o.SessionLife, defaultSessionLife)
	s.plan = newPlan(session)
	for name, life := range o.NATS.lives {
		f := s.plan.families[name]
		f.Life = life
		s.plan.families[name] = f
	}
	s.stats.MaxBytes = s.most
	s.breaker = newBreaker(s.stop, &s.running)
	s.end = sync.OnceValue(func() error {
		close(s.stop)
		s.running.Wait()
		s.conn.Close()
		return release()
	})
	if err := s.connect(ctx, servers, o.NATS); err != nil {
		return nil, err
	}
	var err error
	if s.js, err = jetstream.New(s.conn); err != nil {
		s.conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *natsStore) isClosed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// Ping asks the server that decides about a key, so it fails while there is none.
func (s *natsStore) Ping(ctx context.Context) error {
	_, _, err := s.Get(ctx, holdKey)
	return err
}

// Stats says how the Store was at most 15 s ago.
func (s *natsStore) Stats() Stats {
	if s.isClosed() {
		return Stats{Down: ErrClosed}
	}
	down := s.breaker.check()
	if down == nil && !s.conn.IsConnected() {
		down = fmt.Errorf("%w: not connected", ErrDown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Down = down
	return stats
}

// watchStats looks from time to time how much is stored.
func (s *natsStore) watchStats() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	ctx, cancel := s.whileOpen()
	defer cancel()
	for {
		if stats, err := s.measure(ctx); err == nil {
			s.mu.Lock()
			s.stats.Bytes, s.stats.Keys, s.stats.Streams = stats.Bytes, stats.Keys, stats.Streams
			s.mu.Unlock()
		}
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
	}
}

// whileOpen is a context that ends with the Store.
func (s *natsStore) whileOpen() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// measure asks each stream what it holds.
func (s *natsStore) measure(ctx context.Context) (stats Stats, err error) {
	for name := range s.plan.families {
		got, err := s.info(ctx, s.bucket(name), "", 0)
		if err != nil {
			return Stats{}, err
		}
		stats.Bytes += got.State.Bytes
		stats.Keys += got.State.Messages
	}
	for name := range s.plan.streams {
		got, err := s.info(ctx, s.output(name), "", 0)
		if err != nil {
			return Stats{}, err
		}
		stats.Bytes += got.State.Bytes
		stats.Streams += got.State.Subjects
	}
	return stats, nil
}

// Close ends the Watches and the connection.
func (s *natsStore) Close() error { return s.end() }

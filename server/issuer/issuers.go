package issuer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/config"
)

// Times and sizes.
const (
	retryEvery   = 10 * time.Second // between attempts to reach an issuer, and between fetches of its keys
	missingFor   = 60 * time.Second // how long an unknown key id is remembered
	maxMissing   = 1024             // unknown key ids of one issuer
	maxKeyID     = 256              // bytes
	endsEvery    = 2 * time.Second  // between looks whether an accepted token has ended
	acceptedFor  = 60 * time.Second // how long an accepted token is not verified again
	maxAccepted  = 10_000
	maxToken     = 16 << 10 // bytes
	fetchTime    = 5 * time.Second
	maxDocument  = 1 << 20 // bytes of a discovery document or a key set
	maxRedirects = 3
)

// Options of Issuers.
type Options struct {
	Issuers   []config.Issuer   // as config has checked them
	Transport http.RoundTripper // nil: the network, through the proxy that the environment names
	Ended     func()            // called when an accepted token has expired, and Valid says whose; nil: not called
	Now       func() time.Time  // nil: time.Now
	Log       *slog.Logger      // nil: nothing is logged
}

// Issuers accepts the tokens of several issuers. It is an auth.Source, and safe for concurrent use.
type Issuers struct {
	o       Options
	client  *http.Client
	changed chan struct{} // wakes Watch: there are new issuers

	mu       sync.RWMutex // covers what follows
	all      []*entry
	accepted accepted
	ends     map[int64]bool // seconds in which accepted tokens end, at most maxAccepted
	crowded  bool           // there were more
}

// New takes the issuers as they are configured. It fetches nothing: Watch does. The error names what is wrong.
func New(o Options) (*Issuers, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Issuers{o: o, client: newClient(o.Transport), ends: map[int64]bool{}, changed: make(chan struct{}, 1)}
	if err := s.Reload(o.Issuers); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload replaces the issuers. Those that stayed the same keep their keys and the streams that they opened; tokens of
// the others are verified anew, and their streams end. With an error nothing changes.
func (s *Issuers) Reload(list []config.Issuer) error {
	if err := config.CheckIssuers(list); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*entry, 0, len(list))
	for _, c := range list {
		mark := fingerprint(c)
		if i := slices.IndexFunc(s.all, func(e *entry) bool { return e.mark == mark }); i >= 0 {
			all = append(all, s.all[i])
			continue
		}
		all = append(all, newEntry(c, mark, s.client, s.o.Now))
	}
	s.all = all
	s.accepted = accepted{} // a token may belong to none now, or mean something else
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// fingerprint tells configurations of issuers apart, in 8 hex digits.
func fingerprint(c config.Issuer) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", c)) // maps are printed in the order of their keys
	return hex.EncodeToString(sum[:4])
}

// Watch reaches the issuers that were not reached yet, again and again, and tells when tokens have expired, until ctx
// ends.
func (s *Issuers) Watch(ctx context.Context) {
	var reaching sync.WaitGroup
	defer reaching.Wait()
	reaching.Go(func() { s.reachAll(ctx) })
	tick := time.NewTicker(endsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.ended(s.o.Now()) && s.o.Ended != nil {
			s.o.Ended()
		}
	}
}

// reachAll reaches the issuers until ctx ends.
func (s *Issuers) reachAll(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		var fetching sync.WaitGroup
		for _, e := range s.entries() {
			fetching.Go(func() { s.reach(ctx, e) })
		}
		fetching.Wait()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.changed:
		}
	}
}

// reach discovers one issuer if it was not discovered yet, and logs the first failure and the first success after it.
func (s *Issuers) reach(ctx context.Context, e *entry) {
	tried, err := e.discover(ctx)
	switch {
	case !tried || ctx.Err() != nil:
	case err == nil:
		s.o.Log.Info("reached the issuer", "issuer", e.c.Name)
	case e.failedAnew(err):
		s.o.Log.Warn("cannot reach the issuer; its tokens are not accepted meanwhile", "issuer", e.c.Name, "err", err)
	}
}

func (s *Issuers) entries() []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.all)
}

// Status says what is wrong with each issuer now, by its name; nil: nothing.
func (s *Issuers) Status() map[string]error {
	status := map[string]error{}
	for _, e := range s.entries() {
		status[e.c.Name] = e.status()
	}
	return status
}

// URLs are the issuers as protected-resource metadata names them, in the order of the file.
func (s *Issuers) URLs() []string {
	var urls []string
	for _, e := range s.entries() {
		urls = append(urls, e.c.Issuer)
	}
	return urls
}

// Initial are the scopes that a client should ask for first, under the names of the issuers, with spaces between.
func (s *Issuers) Initial() string {
	var all []string
	for _, e := range s.entries() {
		for _, name := range e.c.Scopes.Initial {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return strings.Join(all, " ")
}

// Ask names scopes as the issuer does, if a client may ask it for more (step_up).
func (s *Issuers) Ask(who auth.Principal, want auth.Scopes) (scopes string, mine bool) {
	if !strings.HasPrefix(who.Via, via) {
		return "", false
	}
	e, _ := s.of(who.Via)
	if e == nil || !e.c.Scopes.StepUp {
		return "", true
	}
	return e.ask(want), true
}

// via begins Principal.Via. What follows is the issuer's name, its fingerprint, and the second in which the token ends:
// together they say all that Valid needs, however many tokens there are.
const via = "oidc:"

// Find implements auth.Source. Every token with a dot is taken for one of an issuer: ours have none.
func (s *Issuers) Find(text string, now time.Time) (auth.Found, bool, error) {
	if !strings.Contains(text, ".") {
		return auth.Found{}, false, nil
	}
	if len(text) > maxToken {
		return auth.Found{}, true, refuse("the token is larger than 16 KiB")
	}
	sum := sha256.Sum256([]byte(text))
	s.mu.RLock()
	f, ok := s.accepted.get(sum, now)
	all := s.all
	s.mu.RUnlock()
	if ok {
		return f, true, nil
	}
	j, err := parse(text)
	if err != nil {
		return auth.Found{}, true, refuse(err.Error())
	}
	e := issuerOf(all, j.claims)
	if e == nil {
		return auth.Found{}, true, refuse("the issuer is not known")
	}
	f, ends, err := e.verify(j, now)
	if err != nil {
		return auth.Found{}, true, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.all, e) { // else it was replaced meanwhile
		s.accepted.put(sum, f, now, ends)
	}
	if s.ends[ends.Unix()] || len(s.ends) < maxAccepted {
		s.ends[ends.Unix()] = true
	} else {
		s.crowded = true
	}
	return f, true, nil
}

// ended says whether an accepted token may have expired since it was asked last.
func (s *Issuers) ended(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	any := s.crowded
	for at := range s.ends {
		if at <= now.Unix() {
			delete(s.ends, at)
			any = true
		}
	}
	return any
}

// issuerOf is the entry that the unverified claim iss names, or nil.
func issuerOf(all []*entry, claims claims) *entry {
	iss, _ := claims.text("iss")
	for _, e := range all {
		if e.c.Issuer == iss {
			return e
		}
	}
	return nil
}

// Valid implements auth.Source: a token holds until it expires, as long as its issuer's configuration stays the same.
func (s *Issuers) Valid(who auth.Principal) (valid, mine bool) {
	if !strings.HasPrefix(who.Via, via) {
		return false, false
	}
	e, ends := s.of(who.Via)
	return e != nil && s.o.Now().Before(ends), true
}

// of returns the issuer that Principal.Via names, and when the token ends. nil: it has none of this configuration.
func (s *Issuers) of(text string) (*entry, time.Time) {
	rest, ok := strings.CutPrefix(text, via)
	parts := strings.Split(rest, ":")
	if !ok || len(parts) != 3 {
		return nil, time.Time{}
	}
	ends, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return nil, time.Time{}
	}
	for _, e := range s.entries() {
		if e.c.Name == parts[0] && e.mark == parts[1] {
			return e, time.Unix(ends, 0)
		}
	}
	return nil, time.Time{}
}

// refuse is the one answer to every token that is not accepted. The reason is for log and audit only.
func refuse(reason string) *auth.Error {
	return &auth.Error{Status: http.StatusUnauthorized, Code: "invalid_token", Message: "token not accepted",
		Reason: reason}
}

// unavailable is the answer while the issuer of a token cannot be asked for its keys.
func unavailable(name string, cause error) *auth.Error {
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "auth_unavailable", RetryAfter: retryEvery,
		Message: "The issuer of this token cannot be reached at the moment. Try again later.",
		Reason:  fmt.Sprintf("issuer %s: %v", name, cause)}
}

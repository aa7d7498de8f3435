package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/audit"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/endpoint"
	"codehand/server/metrics"
	"codehand/server/pipeline"
	"codehand/server/public"
	"codehand/server/request"
	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/server/toolset"
)

// A team is what serve has besides stdio: who may call, where each works, the record of what was done, and the numbers.
type team struct {
	replica string // names this process in the audit; new at each start
	porter  *auth.Porter
	tenants *tenants.Registry
	mode    string // of auth
	signing *signing
	prefix  string // path of http.public_url
	audit   *audit.Log
	metrics *metrics.Counts
	health  *metrics.Health

	signer   *endpoint.Signer
	endpoint atomic.Pointer[endpoint.Endpoint] // that serves; nil: none does

	public      *public.Prover // nil: nothing is to be proven
	scrapeToken string         // opens /metrics; "": there is none
	keepGoing   bool           // calls go on when the audit cannot be written
	quiet       *quiet
}

// newTeam makes it, in the order of the start: who may call, the ids of sessions, the audit.
func newTeam(ctx context.Context, o Options, e *engines) (_ *team, err error) {
	cfg, dir := o.Config, e.dir
	t := &team{
		replica: "r" + strings.ToLower(rand.Text()[:8]), tenants: tenants.NewRegistry(e.tenants), public: o.Public,
		mode: cfg.Auth.Mode, prefix: pathOf(cfg.HTTP.PublicURL), keepGoing: cfg.Audit.OnError == "continue",
		quiet: &quiet{now: time.Now, seen: map[string]*quietSpan{}},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.signing, err = newSigning(ctx, o, e, t); err != nil {
		return nil, &config.Unusable{Err: err}
	}
	if t.porter, err = auth.New(auth.Options{
		Mode: t.mode, LocalPeer: cfg.Auth.LocalPeer, TokenFile: cfg.TokenFile(), Local: localPrincipal(cfg),
		Default: cfg.Principals.Default, Named: named(cfg, cfg.Principals), Groups: cfg.Principals.Groups,
		Sources: t.signing.sources(), Metadata: t.signing.metadata(), Initial: t.signing.initial(),
		TokensOnly: t.tokenPath, Workspaces: filepath.Join(dir, workspacesDir),
		Trusted: cfg.HTTP.TrustedProxies, Log: o.Log,
	}); err != nil {
		return nil, &config.Unusable{Err: err}
	}
	if name := cfg.Metrics.TokenFile; name != "" {
		token, err := os.ReadFile(name)
		if err != nil {
			return nil, &config.Unusable{Err: fmt.Errorf("metrics.token_file: %w", err)}
		}
		t.scrapeToken = strings.TrimSpace(string(token))
	}
	if t.signer, err = endpoint.NewSigner(ctx, e.store, cfg.Session.TTL); err != nil {
		return nil, err
	}
	audits := cfg.Audit.Dir
	if audits == "" {
		audits = filepath.Join(dir, "audit")
	}
	if err := follow(dir, audits, t.replica, o.Log); err != nil {
		return nil, err
	}
	if t.audit, err = audit.Open(audit.Options{
		Dir: audits, Out: o.AuditOut, Replica: t.replica, Sync: cfg.Audit.Sync, Rotate: cfg.Audit.Rotate,
		Keep:   cfg.Audit.Keep,
		Digest: cfg.Audit.Commands == "digest", Start: map[string]any{"version": o.Version, "auth": t.mode}, Log: o.Log,
	}); err != nil {
		return nil, err
	}
	return t, nil
}

// watch makes what tells people how the server is. It comes last, since it looks at allScopes else.
func (t *team) watch(s *Server, version string) {
	store := s.engines.store
	stats, _ := store.(state.Stater)
	level := func() int {
		if s.cfg.Sandbox.Policy == config.SandboxOff {
			return 0
		}
		return int(s.engines.proven().Level)
	}
	go level() // who asks first does not wait for the probes
	t.health = metrics.NewHealth(t.replica, version)
	t.health.AddCheck("store", false, func(ctx context.Context) (string, error) {
		if stats != nil {
			if lag := stats.Stats().Lag; lag != nil {
				return "", fmt.Errorf("its log grows: %w", lag)
			}
		}
		return "", store.Ping(ctx)
	})
	t.health.AddCheck("audit", s.cfg.Audit.OnError == "refuse",
		func(context.Context) (string, error) { return "", t.audit.Failed() })
	t.health.AddCheck("sandbox", false, func(context.Context) (string, error) { return strconv.Itoa(level()), nil })
	t.checkIssuers(s.cfg.Auth.Issuers)
	t.metrics = metrics.New(metrics.Options{
		Version: version, Tools: s.tools.All, Methods: measuredMethods, Versions: mcp.ValidProtocolVersions,
		Gauges: t.gauges(s, stats, level),
	})
	s.engines.store = t.metrics.Measure(store, strings.TrimSuffix(s.cfg.Store.URL, ":"))
}

// gauges are what is asked when somebody scrapes. stats nil: the Store cannot say how it is.
func (t *team) gauges(s *Server, stats state.Stater, level func() int) metrics.Gauges {
	return metrics.Gauges{
		Sessions: func() map[string]int {
			if e := t.endpoint.Load(); e != nil {
				n := e.Count()
				return map[string]int{"http": n["sessions"], "sse": n["sse"]}
			}
			return nil
		},
		Streams: func() map[string]int {
			n := map[string]int{"get": 0, "sse": 0, "listen": 0}
			if e := t.endpoint.Load(); e != nil {
				open := e.Count()
				for kind := range n {
					n[kind] = open[kind]
				}
			}
			return n
		},
		Jobs: s.sessions.Jobs,
		InFlight: func() int {
			if e := t.endpoint.Load(); e != nil {
				return e.Count()[""]
			}
			return 0
		},
		Waiting:        s.pipe.Waiting,
		TokensReadable: t.porter.Readable,
		StoreUp:        func() bool { return stats == nil || stats.Stats().Down == nil },
		StoreBytes: func() int64 {
			if stats == nil {
				return 0
			}
			return stats.Stats().Bytes
		},
		Draining: t.health.Draining, Backend: strings.TrimSuffix(s.cfg.Store.URL, ":"),
		SandboxLevel: level,
	}
}

// shown is what the endpoint tells people of the team, and tells the team.
func (t *team) shown(metricsAway bool, tools toolset.Set) endpoint.Team {
	return endpoint.Team{
		Metrics: t.metrics, Health: t.health, Mode: t.mode, ScrapeToken: t.scrapeToken, MetricsAway: metricsAway,
		Event: t.event, Refused: t.refused, Limited: t.limited, Public: t.public,
		SignIn: endpoint.SignIn{Pages: t.signing.pages, TokenPaths: t.signing.tokens(), Lacking: t.lacking(tools)},
	}
}

// limited notes that a quota refused a request of a principal.
func (t *team) limited(principal, quota string) {
	t.metrics.Limited(quota)
	if n := t.quiet.due("quota " + principal); n > 0 {
		t.event("quota", map[string]any{"p": principal, "quota": quota, "count": n})
	}
}

// record takes a finished call into the numbers.
func (t *team) record(r pipeline.Record) { t.metrics.Call(r) }

// write takes a call into the audit. With audit.on_error = continue a call goes on without its line.
func (t *team) write(r pipeline.Record) error {
	err := t.audit.Call(r)
	t.metrics.Audited(err)
	if err != nil && t.keepGoing {
		return nil
	}
	return err
}

// ready says whether calls can be recorded.
func (t *team) ready() error {
	if t.keepGoing {
		return nil
	}
	return t.audit.Failed()
}

// event takes what is no call into the audit.
func (t *team) event(ev string, fields map[string]any) {
	t.metrics.Audited(t.audit.Event(ev, fields)) // the next call says that the audit fails
}

// refused notes who was not let in.
func (t *team) refused(ip string, err error) {
	refusal, ok := errors.AsType[*auth.Error](err)
	if !ok {
		return
	}
	t.metrics.Authenticated(t.mode, refusal.Code)
	if n := t.quiet.due(ip); n > 0 {
		t.event("auth.fail", map[string]any{"ip": ip, "code": refusal.Code, "reason": refusal.Reason, "count": n})
	}
}

// A quiet lets one of many like events through: per address one in 10 s, with how many there were. It is safe for
// concurrent use.
type quiet struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]*quietSpan
}

type quietSpan struct {
	since time.Time
	count int // since then, not told
}

const (
	quietFor = 10 * time.Second
	maxQuiet = 10_000 // addresses
)

// due counts an event and returns how many are to be told now; 0: none.
func (q *quiet) due(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	span := q.seen[name]
	if span == nil {
		if len(q.seen) >= maxQuiet {
			clear(q.seen) // many addresses at once: what they did before is not worth the memory
		}
		q.seen[name] = &quietSpan{since: now}
		return 1
	}
	span.count++
	if now.Sub(span.since) < quietFor {
		return 0
	}
	n := span.count
	span.since, span.count = now, 0
	return n
}

// observed makes work that is counted when it is done. t may be nil.
func (t *team) observed(r request.Request, work request.Work) request.Work {
	return func(ctx context.Context) (a request.Answer) {
		began := time.Now()
		defer func() { t.observe(r, a, time.Since(began)) }()
		return work(ctx)
	}
}

// observe counts a request that was served. t may be nil.
func (t *team) observe(r request.Request, a request.Answer, took time.Duration) {
	if t == nil {
		return
	}
	version := r.Version
	if !r.Client.Modern {
		version = r.Client.Protocol
	}
	t.metrics.Request(r.Method, a.Tool, a.Failed, version, r.Caller.From.Transport, took)
}

func (t *team) close() error {
	if t == nil || t.audit == nil {
		return nil
	}
	return t.audit.Close()
}

// workspacesDir is where principals without configured roots have theirs, below the data directory.
const workspacesDir = "workspaces"

// localPrincipal is who calls where there is no authentication: the person who started this process.
func localPrincipal(cfg config.Config) auth.Principal {
	who, _ := auth.Resolve(auth.LocalID, "", cfg.Principals.Named[auth.LocalID], cfg.Principals.Default)
	if len(who.Roots) == 0 {
		who.Roots = cfg.Roots
	}
	who.Admin, who.Via = true, auth.ModeNone
	return who
}

// follow notes this process's name for the next start, and mends what the process before it left: each process has an
// audit file of its own, so nobody else would.
func follow(dir, audits, replica string, log *slog.Logger) error {
	path := filepath.Join(dir, "replica.id")
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replica id: %w", err)
	}
	if err := audit.Mend(audits, strings.TrimSpace(string(before)), log); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replica id: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("replica id: %w", err)
	}
	_, err = f.WriteString(replica + "\n")
	return errors.Join(err, f.Close())
}

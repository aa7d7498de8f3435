// Package team is what serve has besides stdio: who may call, where each works, how people sign in, the record of what
// was done, and the numbers. The record of a process for one person (Local) is here, too.
package team

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/asking"
	"codehand/server/audit"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/endpoint"
	"codehand/server/listen"
	"codehand/server/metrics"
	"codehand/server/nodes"
	"codehand/server/pauses"
	"codehand/server/pipeline"
	"codehand/server/public"
	"codehand/server/request"
	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// Options of a Team.
type Options struct {
	Config   config.Config
	Version  string // of codehand
	Log      *slog.Logger
	Public   *public.Prover // nil: nothing is to be proven
	AuditOut io.Writer      // where the audit goes with audit.dir = "-"
	Check    bool           // nothing will be served: the audit must be possible, and gets no line

	Dir    string // state directory
	Store  state.Store
	Nodes  *nodes.Nodes // that share the Store; nil: this process has it alone
	Maker  *tenants.Maker
	Proven func() sandbox.Report // may wait until the machine was probed
}

// A Team is what serve has besides stdio. It is safe for concurrent use.
type Team struct {
	replica string // names this process in the audit; new at each start
	o       Options
	Porter  *auth.Porter
	Tenants *tenants.Registry
	Signing *Signing // nil: people do not sign in by OAuth
	Behind  Behind   // what does what people want on the page; set before the Team serves

	forPeople
	audit   *audit.Log
	Metrics *metrics.Counts
	health  *metrics.Health

	signer   *endpoint.Signer
	Endpoint atomic.Pointer[endpoint.Endpoint] // that serves; nil: none does

	scrapeToken string // opens /metrics; "": there is none
	quiet       *quiet
}

// forPeople is where people decide.
type forPeople struct {
	page   *webPage      // nil: there is none
	Desk   *asking.Desk  // what waits there; nil: nothing does
	Pauses *pauses.Table // what was paused there, also if there is none any more
}

// Behind is what does on the page what people click on.
type Behind struct {
	// Act makes a call of a tool for a person, in the session of that person's page: as calls.Handler.ByPerson.
	Act      func(ctx context.Context, at *tenants.Tenant, name string, args json.RawMessage) (string, bool, error)
	Commands Commands
}

// New makes a Team, in the order of the start: who may call, the ids of sessions, the audit. Its Watch must be called
// before it is used.
func New(ctx context.Context, o Options) (_ *Team, err error) {
	cfg, dir := o.Config, o.Dir
	t := &Team{
		replica: "r" + strings.ToLower(rand.Text()[:8]), o: o, Tenants: tenants.NewRegistry(o.Maker),
		quiet: &quiet{now: time.Now, seen: map[string]*quietSpan{}},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if m, err := auth.ParseModes(cfg.Auth.Mode); o.Nodes != nil && (err != nil || m.None || m.Pages()) {
		return nil, &config.Unusable{Err: fmt.Errorf("cluster.node (%s) needs auth.mode token, oidc or token+oidc: "+
			"each machine must know who calls, and pages to sign in are for one machine in this version",
			cfg.Origin("cluster.node"))}
	}
	if o.Nodes != nil && o.Nodes.Shared() && len(cfg.Principals.Default.Roots) == 0 {
		return nil, &config.Unusable{Err: errors.New("cluster.workspaces is shared, but nobody says which roots all " +
			"machines have"), Hint: "codehand serve '/srv/volume/ws/{principal}'"}
	}
	if t.Signing, err = newSigning(ctx, t); err != nil {
		return nil, &config.Unusable{Err: err}
	}
	if t.Porter, err = auth.New(auth.Options{
		Mode: cfg.Auth.Mode, LocalPeer: cfg.Auth.LocalPeer, TokenFile: cfg.TokenFile(), Local: LocalPrincipal(cfg),
		Default: cfg.Principals.Default, Named: named(cfg, cfg.Principals), Groups: cfg.Principals.Groups,
		Sources: t.Signing.sources(), Metadata: t.Signing.metadata(), Initial: t.Signing.initial(),
		TokensOnly: t.tokenPath, Workspaces: filepath.Join(dir, workspacesDir),
		Trusted: cfg.HTTP.TrustedProxies, Log: o.Log,
	}); err != nil {
		return nil, &config.Unusable{Err: err}
	}
	if how := cfg.Console.Approvals; how != "off" {
		t.Desk = asking.NewDesk(how == "always", t.Event)
	} else if cfg.Console.Chats {
		return nil, &config.Unusable{Err: fmt.Errorf("console.approve_chats (%s) needs console.approvals: nothing "+
			"waits on the page, so nobody could let a chat work", cfg.Origin("console.approve_chats"))}
	}
	if t.Pauses, err = pauses.NewTable(ctx, o.Store, t.Event, o.Log); err != nil {
		return nil, err
	}
	t.page = newPage(t)
	if name := cfg.Metrics.TokenFile; name != "" {
		token, err := os.ReadFile(name)
		if err != nil {
			return nil, &config.Unusable{Err: fmt.Errorf("metrics.token_file (%s): %w",
				cfg.Origin("metrics.token_file"), err),
				Hint: "make the file, and let the user of serve read it: chown, or chgrp and chmod 640"}
		}
		if t.scrapeToken = strings.TrimSpace(string(token)); t.scrapeToken == "" {
			return nil, &config.Unusable{Err: fmt.Errorf("metrics.token_file (%s): %s is empty",
				cfg.Origin("metrics.token_file"), name), Hint: "openssl rand -hex 32 > " + name}
		}
		if info, err := os.Stat(name); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
			o.Log.Warn("every user of this machine can read the token of /metrics; run chmod o= on it", "file", name)
		}
	}
	if t.signer, err = endpoint.NewSigner(ctx, o.Store, cfg.Session.TTL); err != nil {
		return nil, err
	}
	audits := AuditDir(o.Config, o.Dir)
	if !o.Check {
		if err := follow(dir, audits, t.replica, o.Log); err != nil {
			return nil, err
		}
	}
	if t.audit, err = audit.Open(audit.Options{
		Dir: audits, Out: o.AuditOut, Replica: t.replica, Node: cfg.Cluster.Node, Sync: cfg.Audit.Sync,
		Rotate: cfg.Audit.Rotate, Keep: cfg.Audit.Keep, Check: o.Check,
		Digest: cfg.Audit.Commands == "digest", Log: o.Log,
		Start: map[string]any{"version": o.Version, "auth": cfg.Auth.Mode},
	}); err != nil {
		return nil, err
	}
	return t, nil
}

// AuditOut as audit.dir means standard output.
const AuditOut = "-"

// AuditDir is where the audit of serve is, in its data directory by default; or AuditOut.
func AuditDir(cfg config.Config, dir string) string {
	return cmp.Or(cfg.Audit.Dir, filepath.Join(dir, "audit"))
}

// Watched is what a Team tells people of the rest of the server.
type Watched struct {
	Tools   []tool.Tool
	Jobs    func() map[string]int // of all sessions, by state
	Waiting func() int            // how many calls wait at gates
}

// Watch makes what tells people how the server is, and returns the Store with its operations measured. It comes last,
// since it looks at all else.
func (t *Team) Watch(w Watched) state.Store {
	store, cfg := t.o.Store, t.o.Config
	stats, _ := store.(state.Stater)
	level := func() int {
		if cfg.Sandbox.Policy == config.SandboxOff {
			return 0
		}
		return int(t.o.Proven().Level)
	}
	go level() // who asks first does not wait for the probes
	t.health = metrics.NewHealth(t.replica, t.o.Version)
	t.health.AddCheck("store", false, func(ctx context.Context) (string, error) {
		if stats != nil {
			if lag := stats.Stats().Lag; lag != nil {
				return "", fmt.Errorf("its log grows: %w", lag)
			}
		}
		return "", store.Ping(ctx)
	})
	t.health.AddCheck("audit", cfg.Audit.OnError == "refuse",
		func(context.Context) (string, error) { return "", t.audit.Failed() })
	t.health.AddCheck("sandbox", false, func(context.Context) (string, error) { return strconv.Itoa(level()), nil })
	t.checkNode()
	t.checkIssuers(cfg.Auth.Issuers)
	t.Metrics = metrics.New(metrics.Options{
		Version: t.o.Version, Tools: w.Tools, Methods: measuredMethods, Versions: mcp.ValidProtocolVersions,
		Gauges: t.gauges(w, stats, level),
	})
	return t.Metrics.Measure(store, state.Kind(cfg.Store.URL))
}

// gauges are read at each scrape. stats nil: the Store cannot report its state.
func (t *Team) gauges(w Watched, stats state.Stater, level func() int) metrics.Gauges {
	return metrics.Gauges{
		Sessions: func() map[string]int {
			if e := t.Endpoint.Load(); e != nil {
				n := e.Count()
				return map[string]int{"http": n["sessions"], "sse": n["sse"]}
			}
			return nil
		},
		Streams: func() map[string]int {
			n := map[string]int{"get": 0, "sse": 0, "listen": 0}
			if e := t.Endpoint.Load(); e != nil {
				open := e.Count()
				for kind := range n {
					n[kind] = open[kind]
				}
			}
			return n
		},
		Jobs: w.Jobs,
		InFlight: func() int {
			if e := t.Endpoint.Load(); e != nil {
				return e.Count()[""]
			}
			return 0
		},
		Waiting:        w.Waiting,
		TokensReadable: t.Porter.Readable,
		StoreUp:        func() bool { return stats == nil || stats.Stats().Down == nil },
		StoreBytes: func() int64 {
			if stats == nil {
				return 0
			}
			return stats.Stats().Bytes
		},
		Draining: t.health.Draining, Backend: state.Kind(t.o.Config.Store.URL),
		SandboxLevel: level,
	}
}

// Serve serves on the listeners until ctx ends, then drains: calls that run may finish, streams are ended. It closes
// the listeners. The error is that of a listener; after a clean drain it is nil. Serve adds what o lacks of a team.
func (t *Team) Serve(ctx context.Context, ls []listen.Listener, tools *toolset.Set, o endpoint.Options) error {
	o.Porter, o.Tenants, o.Signer, o.Team = t.Porter, t.Tenants, t.signer, t.shown(tools)
	e, leave, err := t.endpoint(ctx, o)
	if err != nil {
		for _, l := range ls {
			_ = l.Close() // never served
		}
		return err
	}
	defer leave()
	t.Endpoint.Store(e)
	defer t.Endpoint.Store(nil)
	defer servePage(ctx, t, ls)()
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { t.Signing.watch(background) })
	defer watching.Wait()
	defer end()
	return e.Serve(ctx, ls)
}

// Reload takes what the operator now says about principals, and reads the tokens again. With an error that part stays
// as it was.
func (t *Team) Reload(p config.Principals) error {
	err := errors.Join(t.Porter.Configure(p.Default, named(t.o.Config, p), p.Groups), t.Porter.Reload())
	t.revoked()
	t.Tenants.Reload(p)
	t.Event("config.reload", map[string]any{"ok": err == nil})
	return err
}

// ReloadIssuers takes the issuers that the operator now names. With an error the old ones stay.
func (t *Team) ReloadIssuers(list []config.Issuer) error {
	if t.Signing == nil || t.Signing.issuers == nil {
		return nil
	}
	if err := t.Signing.issuers.Reload(list); err != nil {
		return err
	}
	t.checkIssuers(list)
	t.revoked()
	return nil
}

// shown is what the endpoint tells people of the team, and tells the team.
func (t *Team) shown(tools *toolset.Set) endpoint.Team {
	return endpoint.Team{
		Metrics: t.Metrics, Health: t.health, Mode: t.o.Config.Auth.Mode, ScrapeToken: t.scrapeToken,
		MetricsAway: t.o.Config.Metrics.Listen != "",
		Event:       t.Event, Refused: t.refused, Limited: t.limited, Public: t.o.Public,
		SignIn: endpoint.SignIn{Pages: pagesOf(t), TokenPaths: t.Signing.tokens(), Lacking: t.lacking(tools)},
	}
}

// limited notes that a quota refused a request of a principal.
func (t *Team) limited(principal, quota string) {
	t.Metrics.Limited(quota)
	if n := t.quiet.due("quota " + principal); n > 0 {
		t.Event("quota", map[string]any{"p": principal, "quota": quota, "count": n})
	}
}

// Record takes a finished call into the numbers.
func (t *Team) Record(r pipeline.Record) { t.Metrics.Call(r) }

// Write takes a call into the audit. With audit.on_error = continue a call goes on without its line.
func (t *Team) Write(r pipeline.Record) error {
	err := t.audit.Call(r)
	t.Metrics.Audited(err)
	if err != nil && t.keepGoing() {
		return nil
	}
	return err
}

// keepGoing says whether calls go on when the audit cannot be written.
func (t *Team) keepGoing() bool { return t.o.Config.Audit.OnError == "continue" }

// Ready says whether calls can be recorded.
func (t *Team) Ready() error {
	if t.keepGoing() {
		return nil
	}
	return t.audit.Failed()
}

// Event takes what is no call into the audit.
func (t *Team) Event(ev string, fields map[string]any) {
	t.Metrics.Audited(t.audit.Event(ev, fields)) // the next call says that the audit fails
}

// refused notes who was not let in.
func (t *Team) refused(ip string, err error) {
	refusal, ok := errors.AsType[*auth.Error](err)
	if !ok {
		return
	}
	t.Metrics.Authenticated(t.o.Config.Auth.Mode, refusal.Code)
	if n := t.quiet.due(ip); n > 0 {
		t.Event("auth.fail", map[string]any{"ip": ip, "code": refusal.Code, "reason": refusal.Reason, "count": n})
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

// Observed makes work that is counted when it is done. t may be nil.
func (t *Team) Observed(r request.Request, work request.Work) request.Work {
	return func(ctx context.Context) (a request.Answer) {
		began := time.Now()
		defer func() { t.observe(r, a, time.Since(began)) }()
		return work(ctx)
	}
}

// observe counts a request that was served. t may be nil.
func (t *Team) observe(r request.Request, a request.Answer, took time.Duration) {
	if t == nil {
		return
	}
	version := r.Version
	if !r.Client.Modern {
		version = r.Client.Protocol
	}
	t.Metrics.Request(r.Method, a.Tool, a.Failed, version, r.Caller.From.Transport, took)
}

// Close closes the audit. t may be nil.
func (t *Team) Close() error {
	if t == nil {
		return nil
	}
	t.Pauses.Close()
	if t.audit == nil {
		return nil
	}
	return t.audit.Close()
}

// workspacesDir is where principals without configured roots have theirs, below the data directory.
const workspacesDir = "workspaces"

// LocalPrincipal is who calls where there is no authentication: the person who started this process.
func LocalPrincipal(cfg config.Config) auth.Principal {
	who, _ := auth.Resolve(auth.LocalID, "", cfg.Principals.Named[auth.LocalID], cfg.Principals.Default)
	if len(who.Roots) == 0 {
		who.Roots = cfg.Roots
	}
	who.Admin, who.Via = true, auth.ModeNone
	return who
}

// follow notes this process's name for the next start, and mends what the process before it left: each process has an
// audit file of its own, so no other process would.
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

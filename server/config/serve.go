package config

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/state"
	"codehand/tools/permission"
)

// day is what `d` means in a duration; a change of the clock does not lengthen it.
const day = 24 * time.Hour

// sizes of settings, in bytes.
const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// HTTP is where and how serve listens.
type HTTP struct {
	Listen []string // host:port, [v6]:port, unix:/path, systemd:
	// what the outside calls this server: scheme, host and the path before /mcp, no slash at its end; "": unknown
	PublicURL string
	// beside those of the listeners and of PublicURL: lower case, host or host:port, IPv6 in brackets
	AllowedHosts   []string
	AllowedOrigins []string      // as browsers write them: lower case, without the scheme's usual port
	MaxBody        int64         // bytes
	Drain          time.Duration // for running calls after SIGTERM
	OrphanGrace    time.Duration // for calls whose client is gone
	LameDuck       time.Duration // between SIGTERM and the first 503; -1: 0 on loopback, else 5 s
	SSE            bool          // /sse and /message are served
	DataDir        string        // absolute; StateDir by default
	BehindProxy    bool
	TrustedProxies []netip.Prefix // without bits behind the mask; no IPv4 as IPv6
	UnixMode       fs.FileMode
	MaxConnections int
	TLSCert        string // absolute; with TLSKey or not at all
	TLSKey         string
	ClientCA       string // only with TLSCert
}

// Auth is how callers are told apart.
type Auth struct {
	Mode      string // auto, or as auth.ParseModes reads it
	LocalPeer string // same-user, any
	TokenFile string // absolute; "": tokens.jsonl in the data directory
	Issuers   []Issuer
}

// Session is how long conversations are kept.
type Session struct {
	Idle            time.Duration // until the handles of one are dropped
	TTL             time.Duration // until one is forgotten
	Max             int           // in memory
	MaxPerPrincipal int           // of legacy HTTP
}

// Store is where the state is kept.
type Store struct {
	URL      string // embedded:, memory:, or servers of NATS
	MaxBytes int64
	Sync     time.Duration // 0: always
	NATS     state.NATSOptions
}

// Audit is the record of calls.
type Audit struct {
	Dir      string        // absolute; "": audit in the data directory; "-": standard output
	Sync     time.Duration // 0: always; -1: never
	OnError  string        // refuse, continue
	Rotate   int64         // bytes of one file
	Keep     time.Duration
	Commands string // redacted, digest
}

// Console is the page of serve for people.
type Console struct {
	Approvals string   // off, open, always: when questions of clients that cannot ask wait there
	Record    bool     // stdio records calls for it
	Chats     bool     // a person lets each new chat of a client work, in serve
	Notify    []string // program and arguments, started when a question waits there; empty: none
}

// Metrics are for Prometheus.
type Metrics struct {
	Listen    string // an address of their own, without authentication; "": on the main listeners
	TokenFile string // absolute
}

// serveDefaults sets what holds if nothing is said.
func serveDefaults(c *Config) {
	c.HTTP = HTTP{
		Listen: []string{"127.0.0.1:7433"}, MaxBody: 4 << 20, Drain: 30 * time.Second,
		OrphanGrace: 30 * time.Second,
		LameDuck:    -1, SSE: true, UnixMode: 0o600, MaxConnections: 4096,
	}
	c.Auth = Auth{Mode: "auto", LocalPeer: "same-user"}
	c.Session = Session{Idle: 30 * time.Minute, TTL: 30 * 24 * time.Hour, Max: 10_000, MaxPerPrincipal: 200}
	c.Store = Store{URL: state.OnDisk, MaxBytes: 4 << 30, Sync: time.Second,
		NATS: state.NATSOptions{Prefix: "codehand"}}
	c.Cluster = Cluster{Capacity: 200, Workspaces: workspacesLocal}
	c.Console = Console{Approvals: "open", Record: true}
	c.Audit = Audit{Sync: time.Second, OnError: "refuse", Rotate: 256 << 20, Keep: 90 * 24 * time.Hour,
		Commands: "redacted"}
}

// pageTable is the part of the table about the page. A project file can set none of it.
func pageTable(c *Config) []setting {
	return []setting{
		{"console.approvals",
			"when a call of a client that cannot ask waits for a person on the page: off (never), open (while that " +
				"person has the page open) or always (serve alone)",
			operatorOnly, choice{&c.Console.Approvals, []string{"off", "open", "always"}}},
		{"console.approve_chats",
			"whether each new session of a client waits with its first call until a person lets it work, on the page " +
				"(serve alone)",
			operatorOnly, toggle{&c.Console.Chats}},
		{"console.notify",
			"program and arguments that tell a person that a call waits on the page (JSON on standard input)",
			operatorOnly, command{&c.Console.Notify}},
		{"console.record",
			"whether stdio records calls for codehand page: tool, command or file, outcome, no " +
				"contents; for audit.keep",
			operatorOnly, toggle{&c.Console.Record}},
	}
}

// serveTable is the part of the table that counts in serve. A project file can set none of it: who may call, and what
// is remembered about calls, is nothing that a workspace decides.
func serveTable(c *Config) []setting {
	return slices.Concat(callersTable(c), storeTable(c), clusterTable(c), recordTable(c))
}

// callersTable is the part of it that says who may call, and where.
func callersTable(c *Config) []setting {
	return []setting{
		{"http.listen", "addresses to listen on: host:port, [v6]:port, unix:/path or systemd:", operatorOnly,
			terms{&c.HTTP.Listen, readListen}},
		{"http.public_url", "URL that clients use, such as https://tools.example.com", operatorOnly, term{&c.HTTP.PublicURL, readPublicURL}},
		{"http.allowed_hosts", "host names that requests may name, besides those of the listeners and of public_url",
			operatorOnly, terms{&c.HTTP.AllowedHosts, readHost}},
		{"http.allowed_origins", "origins of web pages that may send requests, as scheme://host[:port]", operatorOnly, terms{&c.HTTP.AllowedOrigins, readOrigin}},
		{"http.max_body", "largest request", operatorOnly, size{&c.HTTP.MaxBody, kib, gib}},
		{"http.drain", "time that running calls have after SIGTERM", operatorOnly,
			period{&c.HTTP.Drain, 0, time.Hour, nil}},
		{"http.orphan_grace", "time that running calls have when their client is gone", operatorOnly,
			period{&c.HTTP.OrphanGrace, 0, time.Hour, nil}},
		{"http.lame_duck",
			"time between SIGTERM and the first refused request; empty: 0s if only this machine can reach the " +
				"listeners, else 5s", operatorOnly, period{&c.HTTP.LameDuck, 0, time.Hour, []word{{"", -1}}}},
		{"http.sse", "also serve the transport of 2024-11-05, at /sse and /message", operatorOnly, toggle{&c.HTTP.SSE}},
		{"http.data_dir", "directory for everything that serve keeps; empty: state_dir", operatorOnly,
			term{&c.HTTP.DataDir, absolute}},
		{"http.behind_proxy", "whether a proxy in front of serve speaks TLS with the clients", operatorOnly,
			toggle{&c.HTTP.BehindProxy}},
		{"http.trusted_proxies", "networks of proxies whose X-Forwarded-For counts, as 10.0.0.0/8", operatorOnly,
			networks{&c.HTTP.TrustedProxies, readNetwork}},
		{"http.unix_mode", "mode of unix sockets", operatorOnly, octal{&c.HTTP.UnixMode}},
		{"http.max_connections", "most connections at once; more wait", operatorOnly,
			number{&c.HTTP.MaxConnections, 1, 1_000_000, false}},
		{"http.tls_cert", "file with the certificates, the server's own first", operatorOnly,
			term{&c.HTTP.TLSCert, absolute}},
		{"http.tls_key", "file with the key of http.tls_cert", operatorOnly, term{&c.HTTP.TLSKey, absolute}},
		{"http.client_ca",
			"file with the certificate authorities of clients; each client then needs a certificate besides a token",
			operatorOnly, term{&c.HTTP.ClientCA, absolute}},

		{"auth.mode", "how callers sign in: auto, none, token, owner (one person, on a page of serve), team " +
			"(principals, likewise), oidc (issuers), or token, owner or team with +oidc; tokens are good with " +
			"owner and team, too",
			operatorOnly, partly{choice{&c.Auth.Mode, authModes()}, []string{"front"}}},
		{"auth.local_peer", "who can connect without a token: same-user, or any (user of this machine)", operatorOnly,
			choice{&c.Auth.LocalPeer, []string{"same-user", "any"}}},
		{"auth.token_file", "tokens file; empty: tokens.jsonl in http.data_dir", operatorOnly,
			term{&c.Auth.TokenFile, absolute}},

		{"session.idle", "time without a request after which a conversation closes what it holds open", operatorOnly,
			period{&c.Session.Idle, time.Second, 3650 * day, nil}},
		{"session.ttl", "time without a request after which a conversation is forgotten", operatorOnly,
			period{&c.Session.TTL, time.Minute, 3650 * day, nil}},
		{"session.max", "most conversations in memory", operatorOnly, number{&c.Session.Max, 1, 1_000_000, false}},
		{"session.max_per_principal", "most conversations with a session id of one caller", operatorOnly,
			number{&c.Session.MaxPerPrincipal, 1, 1_000_000, false}},
	}
}

// recordTable is the part of it that says what is told to people of calls.
func recordTable(c *Config) []setting {
	return []setting{
		{"audit.dir", "directory of the audit log; empty: audit in http.data_dir, and no log on stdio; -: standard " +
			"output of serve", operatorOnly, term{&c.Audit.Dir, readAuditDir}},
		{"audit.sync", "longest time until the audit log is synced to disk, or always, or never", operatorOnly,
			period{&c.Audit.Sync, 0, time.Hour, []word{{"always", 0}, {"never", -1}}}},
		{"audit.on_error", "what to do with calls if the audit log cannot be written: refuse or continue", operatorOnly,
			choice{&c.Audit.OnError, []string{"refuse", "continue"}}},
		{"audit.rotate_bytes", "largest file of the audit log", operatorOnly,
			size{&c.Audit.Rotate, 64 * kib, 64 * gib}},
		{"audit.keep", "age at which a file of the audit log is deleted", operatorOnly,
			period{&c.Audit.Keep, time.Hour, 36500 * day, nil}},
		{"audit.commands", "how the audit log records commands: redacted or digest", operatorOnly,
			choice{&c.Audit.Commands, []string{"digest", "redacted"}}},

		{"metrics.listen",
			"address of /metrics for everyone who can reach it; empty: at the addresses of serve, with a token",
			operatorOnly, term{&c.Metrics.Listen, readMetricsListen}},
		{"metrics.token_file", "file with the token of /metrics", operatorOnly, term{&c.Metrics.TokenFile, absolute}},
	}
}

// authModes are the values of auth.mode, the strictest first.
func authModes() []string {
	var all []string
	for _, name := range auth.ModeNames() {
		if name != auth.ModeNone {
			all = append(all, name)
		}
	}
	return append(all, "auto", auth.ModeNone)
}

// serveOrigin is the origin of values that are not set and whose default differs in serve.
const serveOrigin = "default of serve"

// serveDefaults makes serve answer by itself: there is no person at its terminal to ask.
func (l *loader) serveDefaults() {
	if !l.src.Serve {
		return
	}
	c := &l.config
	c.Permissions.Mode, c.origins["permissions.mode"] = permission.AcceptEdits, serveOrigin
	c.Permissions.AskFallback, c.origins[askFallbackKey] = "deny", serveOrigin
	c.Sandbox.Network, c.origins[networkKey] = NetworkOff, serveOrigin
	c.Web.Preapproved, c.origins[preapprovedKey] = nil, serveOrigin
}

// ForOnePerson returns c as serve has it where only the person who started it can connect: what the mode would ask
// about is left to the dialog of that person's client, and commands have the network that the person has, both as on
// stdio. What a source says stays.
func (c Config) ForOnePerson() Config {
	if c.origins[networkKey] == serveOrigin {
		c.Sandbox.Network = NetworkOn
	}
	if c.origins[askFallbackKey] == serveOrigin {
		c.Permissions.AskFallback = "client"
	}
	return c
}

// serveTogether checks what depends on more than one setting of serve. Also without serve: a file that serve would not
// start with is wrong.
func (l *loader) serveTogether() {
	c := &l.config
	wrong := func(key, format string, args ...any) {
		l.problems.add(c.origins[key], key+": "+fmt.Sprintf(format, args...))
	}
	if len(c.HTTP.Listen) == 0 {
		wrong("http.listen", "at least one address must be listened on")
	}
	for i, address := range c.HTTP.Listen {
		if slices.Contains(c.HTTP.Listen[:i], address) && !strings.HasSuffix(address, ":0") {
			wrong("http.listen", "%s is given twice", address)
		}
	}
	if at := c.Metrics.Listen; at != "" && slices.Contains(c.HTTP.Listen, at) && !strings.HasSuffix(at, ":0") {
		wrong("metrics.listen", "%s is an address of http.listen, too", at)
	}
	switch h := c.HTTP; {
	case h.TLSCert != "" && h.TLSKey == "":
		wrong("http.tls_cert", "needs http.tls_key")
	case h.TLSCert == "" && h.TLSKey != "":
		wrong("http.tls_key", "needs http.tls_cert")
	case h.TLSCert == "" && h.ClientCA != "":
		wrong("http.client_ca", "needs http.tls_cert and http.tls_key")
	}
	natsTogether(c.Store.NATS, wrong)
	clusterTogether(c.Cluster, wrong)
	issuersTogether(l)
	if m, err := auth.ParseModes(c.Auth.Mode); err == nil && m.OIDC && len(c.Auth.Issuers) == 0 {
		wrong("auth.mode", "%s needs an issuer: a table [[auth.oidc]]", c.Auth.Mode)
	}
	if c.Session.Idle > c.Session.TTL {
		wrong("session.idle", "%s is more than session.ttl, %s", showDuration(c.Session.Idle),
			showDuration(c.Session.TTL))
	}
}

// serveModes refuses the mode that never asks, and sets the mode of principals without one. A mode that a project file
// narrowed also limits principals with a mode of their own.
func (l *loader) serveModes(narrowed bool) {
	if !l.src.Serve {
		return
	}
	c := &l.config
	if c.Permissions.Mode == permission.Bypass {
		l.problems.add(c.origins["permissions.mode"], "permissions.mode: "+noBypass)
		return
	}
	mode, most := c.Permissions.Mode.String(), permission.AcceptEdits.String()
	if c.Principals.Default.Mode == nil {
		c.Principals.Default.Mode = &mode
	}
	if c.Principals.Default.MaxMode == nil {
		c.Principals.Default.MaxMode = &most
	}
	if !narrowed {
		return
	}
	c.Principals.Default.Mode = stricterMode(c.Principals.Default.Mode, mode)
	c.Principals.Default.MaxMode = stricterMode(c.Principals.Default.MaxMode, mode)
	for id, v := range c.Principals.Named {
		v.Mode, v.MaxMode = stricterMode(v.Mode, mode), stricterMode(v.MaxMode, mode)
		c.Principals.Named[id] = v
	}
	for i := range c.Principals.Groups {
		v := &c.Principals.Groups[i].Values
		v.Mode, v.MaxMode = stricterMode(v.Mode, mode), stricterMode(v.MaxMode, mode)
	}
}

const noBypass = "bypassPermissions in serve needs permissions.allow_bypass, which is not in this version; use " +
	"acceptEdits"

// stricterMode returns the stricter of two modes; said is nil if nothing is said, which stays so.
func stricterMode(said *string, mode string) *string {
	if said == nil || modeRank(*said) <= modeRank(mode) {
		return said
	}
	return &mode
}

func modeRank(name string) int {
	m, _ := permission.ParseMode(name) // it was checked when it was read
	return mode{&m}.rank()
}

// Package config reads the settings and says where each came from.
//
// Flags, environment and files become one checked Config, and nothing reads them again later. A key that is not in the
// table of settings is an error, and all errors are reported at once, with file and line. A project file is content of
// the workspace: it may make settings stricter, and choose a few defaults of output. The package knows which values are
// possible, not what they do.
package config

import (
	"io/fs"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/tools/permission"
	"codehand/tools/web/guard"
)

// A Config is what holds for this process. Every value was checked. It is made by Load and does not change.
type Config struct {
	// Roots are absolute and clean, as written (links unresolved); empty: every path is outside. In serve they are
	// those of the person who started it, who needs no sign-in: Principals.Default.Roots if these are the same for
	// everybody, else none if they are templates, else what stdio would take.
	Roots    []string
	StateDir string // absolute; OpenState makes and checks it

	Permissions Permissions
	Hooks       Hooks
	Plan        Plan
	Results     Results
	Tools       Tools
	Skills      Skills
	Tasks       Tasks
	Git         Git
	Read        Read
	Edit        Edit
	Write       Write
	Journal     Journal
	List        List
	Grep        Grep
	Shell       Shell
	Protocol    Protocol
	Stdio       Stdio
	Client      Client
	Search      Search
	Log         Log
	Web         Web

	// Of serve.
	HTTP       HTTP
	Auth       Auth
	Principals Principals
	Session    Session
	Store      Store
	Sandbox    Sandbox
	Audit      Audit
	Metrics    Metrics

	// What the environment says besides settings.
	OnStdio
	Home       string // absolute; "": unknown
	ConfigHome string // where programs keep their configuration (XDG_CONFIG_HOME or its default); "": unknown
	WorkDir    string // where relative paths start

	Files    []string // the files that were read, the operator's first
	Projects []string // those of them that belong to projects

	said
}

// What was said of settings, by key.
type said struct {
	origins map[string]string
	typed   map[string]string // what flags and environment said, as a flag takes it
}

// OnStdio is what the environment says of the conversation on stdio.
type OnStdio struct {
	StdioHandle    string // CODEHAND_SESSION: its explicit handle; "": none
	StdioProcessID string // session id that the client put into the environment; "": none
}

// Permissions are the rules and the mode.
type Permissions struct {
	Mode             permission.Mode
	Highest          permission.Mode   // no session goes above it; Bypass unless the machine's administrator fixed Mode
	Deny, Ask, Allow []permission.Rule // of all sources, each with its own origin; all parse
	AskFallback      string            // client, deny: who answers a default ask
	AskTimeout       time.Duration     // of a person
	AdditionalDirs   []string          // absolute; beside the roots
	Protect          []string          // names besides the built-in ones that a person must allow to change
	Unprotect        []string          // built-in names that are ordinary files here
	Classifier       []string          // the command that decides in mode auto; empty: none, and Mode is not Auto
	UserFile         string            // that the user's own rules stand in; it need not be there; "": no place for one
	ManagedRulesOnly bool              // no rule allows but those of the machine's administrator, which are in Allow
}

// Hooks are the operator's programs around calls.
type Hooks struct {
	Entries      []Hook
	ToolNames    string // claude, codehand: which names of tools they are told
	TrustProject bool   // those of project files count
	FailClosed   bool   // one that fails blocks the call
}

// A Hook is one of them.
type Hook struct {
	Event   string          // PreToolUse and the like
	Matcher string          // "": all
	If      permission.Rule // Text "": always
	Command []string
	Timeout time.Duration
	Async   bool
	Project bool   // of a project file: it may only narrow
	Origin  string // file and line
}

// Plan is plan mode.
type Plan struct {
	Directory        string // of plan files, absolute; "": in the state directory
	ApprovalFallback string // client, console, auto: who approves when no person can be asked
}

// Results are the texts that were too long to show.
type Results struct {
	KeepDays int
	MaxBytes int64 // of all sessions together
}

// Tools is which tools there are and how they run.
type Tools struct {
	MaxParallel int      // calls of one session at once
	Profile     string   // default, simple, readonly: which tools there are
	Deferral    string   // auto, on, off: which of them are listed before they were searched for
	Always      []string // names of further tools that are always listed
	Agent       Agent    // how sub-agents are executed
}

// Skills are instructions in files.
type Skills struct {
	Dirs       []string // of the operator, absolute; each holds NAME/SKILL.md
	AllowShell bool     // commands in skills are run, but not in those of a project
}

// Tasks are the lists of tasks.
type Tasks struct {
	Directory string // of a list that all sessions of a principal share, absolute; "": each has its own
}

// Git is what is said about commits.
type Git struct {
	CoAuthor string // "NAME <ADDRESS>" for the trailer of a commit; "": none
}

// Read is how files are shown.
type Read struct {
	Dedup      string // once, off: answer an unchanged re-read with a stub
	MaxTokens  int    // of one page
	MaxLine    int    // runes of one line; 0: no limit
	LineFormat string // tab, pipe
	Version    string // auto, always: when versions are shown

	// pixels of the longer edge of an image as it is shown, within 1.15 megapixels; a page of a PDF has 1,568 at most
	ImageMaxEdge int
	PDF          bool // the programs for PDF files may run
}

// Edit is what must be known before a change, and how text is looked for.
type Edit struct {
	Guard      string // strict, relaxed
	Desanitize bool   // write out short forms of markers
}

// Write is how changes reach the disk, and what must not.
type Write struct {
	Durability  string            // full: fsync; fast: none
	SecretPaths []permission.Rule // each Edit(pattern): where no secret may be written
}

// Journal is how long the contents before and after each change are kept.
type Journal struct {
	KeepDays int
	MaxBytes int64 // of one principal
	Shell    bool  // also of what changes in a git work tree while a command runs
}

// List is how directories are listed.
type List struct {
	Limit     int // paths
	Gitignore bool
	TimeoutMS int
}

// Grep is how contents are searched.
type Grep struct {
	DefaultMode string // files_with_matches, content, count
	TimeoutMS   int
}

// Shell is how commands run.
type Shell struct {
	Enabled          bool
	DefaultTimeoutMS int
	MaxTimeoutMS     int
	AutoBackgroundMS int      // 0: never
	MaskSecrets      bool     // of known shapes, in what commands print
	InitFile         string   // absolute; sourced before each command; "": none
	EnvAllow         []string // names, or prefixes that end in `*`, passed on besides the built-in ones
	EnvAllowSecret   []string // likewise, also what sounds like a secret
}

// Protocol is what is spoken.
type Protocol struct {
	Versions []string // of MCP, newest first
}

// Stdio is how the pipe ends.
type Stdio struct {
	EOFGrace    time.Duration // for running calls after the end of input
	ParentWatch bool          // end when the parent is gone
}

// Client is what we know better than the client.
type Client struct {
	Profile string // name of a profile that is used whatever the client says; "": chosen by its name
}

// Search is how the search engine works.
type Search struct {
	Workers        int    // 0: by the number of processors
	OutsideIgnores string // auto, off: ignore files above a root
}

// Log is where the log goes.
type Log struct {
	Level slog.Level
	File  string // absolute; "": stderr
}

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

// Principals are what holds for all callers and for some by name. In serve, Default always says a mode and a highest
// mode.
type Principals struct {
	Default auth.Values
	Named   map[string]auth.Values // by ID
	Groups  []auth.Group           // in the order of the file

	lines map[principalRule]string // origins
}

// A principalRule is a rule in one list of a principal, or of all.
type principalRule struct{ id, list, text string }

// RuleOrigin returns the file and line of a rule of the principal id, in its list `allow` or `deny`; "" if it is not
// from the configuration but from a token.
func (p Principals) RuleOrigin(id, list, text string) string {
	if at, ok := p.lines[principalRule{dotted([]string{id}), list, text}]; ok {
		return at
	}
	for _, g := range p.Groups { // whichever it is in: a principal does not say of which groups it is
		if at, ok := p.lines[principalRule{dotted([]string{groups, g.Name}), list, text}]; ok {
			return at
		}
	}
	return p.lines[principalRule{everyone, list, text}]
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
	URL      string // embedded:, memory:
	MaxBytes int64
	Sync     time.Duration // 0: always
}

// Sandbox is what must confine commands.
type Sandbox struct {
	Policy    string         // required, best-effort, off
	MinLevel  int            // below it, policy decides
	AutoAllow bool           // a command at level 3 needs no question
	Readable  []string       // besides what a profile shows
	Writable  []string       // besides the roots
	Hide      []string       // from every command
	Network   string         // off, list, on
	Domains   []guard.Domain // what list opens; not empty with it
	Addresses guard.Options  // what web.* opens besides public addresses; no ports
	Memory    int64          // bytes of a command with all that it starts, where control groups can be used
	Processes int            // of a command, with threads
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

// Metrics are for Prometheus.
type Metrics struct {
	Listen    string // an address of their own, without authentication; "": on the main listeners
	TokenFile string // absolute
}

// Changed returns the keys of settings whose values differ in o, in the order of the table, and `hooks` if some of
// these do, wherever they stand. Principals and quotas are no settings.
func (c Config) Changed(o Config) []string {
	var keys []string
	now := table(&o)
	for i, s := range table(&c) {
		if s.at.text() != now[i].at.text() {
			keys = append(keys, s.key)
		}
	}
	same := func(h, o Hook) bool {
		return h.Event == o.Event && h.Matcher == o.Matcher && h.If.Text == o.If.Text && h.If.Dir == o.If.Dir &&
			slices.Equal(h.Command, o.Command) && h.Timeout == o.Timeout && h.Async == o.Async && h.Project == o.Project
	}
	if !slices.EqualFunc(c.Hooks.Entries, o.Hooks.Entries, same) {
		keys = append(keys, hooksTable)
	}
	return keys
}

// OfProject says whether a rule or a hook of that origin was written in a project's file.
func (c Config) OfProject(origin string) bool {
	return slices.ContainsFunc(c.Projects, func(file string) bool { return strings.HasPrefix(origin, file+":") })
}

// Origin says where the value of a setting comes from: `default`, `default of serve`, `flag --log-level`,
// `CODEHAND_LOG_LEVEL`, or file and line. "" for a key that does not exist, and for one of a principal, such as
// `principals.default.roots`, that is not set.
func (c Config) Origin(key string) string { return c.origins[key] }

// Said says whether the value of key was set.
func (c Config) Said(key string) bool {
	return c.origins[key] != byDefault && c.origins[key] != serveOrigin
}

// Package config reads the settings and says where each came from.
//
// Flags, environment and files become one checked Config, and nothing reads them again later. A key that is not in the
// table of settings is an error, and all errors are reported at once, with file and line. A project file is content of
// the workspace: it may make settings stricter, and choose a few defaults of output. The package knows which values are
// possible, not what they do.
package config

import (
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/tools/permission"
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
	Mounts      []Mount // by name
	LSP         LSP

	// Of serve.
	HTTP       HTTP
	Auth       Auth
	Principals Principals
	Session    Session
	Store      Store
	Sandbox    Sandbox
	Audit      Audit
	Console    Console
	Metrics    Metrics
	Cluster    Cluster

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

// Changed returns the keys of settings whose values differ in o, in the order of the table, `hooks` if some of these
// do, wherever they stand, and `mcp.servers`. Principals and quotas are no settings.
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
	if !sameMounts(c.Mounts, o.Mounts) {
		keys = append(keys, strings.Join(mountsTable, "."))
	}
	if !sameServers(c.LSP.Servers, o.LSP.Servers) {
		keys = append(keys, lspTable)
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

// Auto says whether sessions begin in the mode in which a classifier judges calls.
func (c Config) Auto() bool { return c.Permissions.Mode == permission.Auto }

// Said says whether the value of key was set.
func (c Config) Said(key string) bool {
	return c.origins[key] != byDefault && c.origins[key] != serveOrigin
}

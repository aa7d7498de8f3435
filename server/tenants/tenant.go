package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/toolset"
	"codehand/tools/confine"
	"codehand/tools/guarded"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/skills"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A Tenant is what the calls of one principal work in: its roots and rules, and the tools that it may see. Two tokens
// of one principal with different rights are two tenants. It does not change.
type Tenant struct {
	Who       auth.Principal
	Space     *workspace.Space
	Rules     *permission.Policy
	Clean     *permission.Policy // denies changes to files into which no secret may be written; nil: there are none
	Bare      *session.State     // of no session: what a tool needs to say whether it is available
	Prefs     session.Prefs
	Start     permission.Mode // of a session that has not changed it
	Highest   permission.Mode
	Env       func() []string // of commands; made at first use, because it looks at every directory of PATH
	SkillDirs []skills.Dir    // that are not in the workspace
	Broken    bool            // its roots cannot be served: every call is refused

	confiner *confine.Confiner

	tools   *toolset.Set
	offers  *atomic.Pointer[offers]
	profile string // of tools, which the operator set for all
}

// A Maker makes tenants. Its fields are set once.
type Maker struct {
	Config config.Config
	Tools  *toolset.Set
	Search *search.Engine
	// Language is how sessions reach language servers, but for the environment of these.
	Language session.Languages
	Log      *slog.Logger
	State    string // the state directory
	// Worked says whether a principal has made changes or had sessions here; nil: none has
	Worked  func(id string) bool
	Durable bool            // sessions outlive the process, and callers come over a network
	NoShell string          // why no command runs in this process; "": each tenant says
	Confine confine.Options // of commands, but what depends on the tenant

	Principal string // of Local; "": auth.LocalID

	shared taskLists

	mu     sync.Mutex
	spaces []*workspace.Space // of all tenants, for Close
}

// A spec is what differs between tenants.
type spec struct {
	who     auth.Principal
	roots   []string
	workDir string
	rules   permission.Options // Deny, Ask and Allow
	start   permission.Mode
	highest permission.Mode
}

// tenant opens the roots, which must exist.
func (m *Maker) tenant(o spec) (*Tenant, error) {
	said := m.Config.Permissions
	o.highest = said.Limit(o.highest)
	t := &Tenant{Who: o.who, Prefs: prefs(m.Config), Start: said.Start(o.start).AtMost(o.highest), Highest: o.highest}
	o.rules.Allow = slices.Concat(o.rules.Allow, m.Config.PreapprovedRules())
	rules, err := m.policy(o.rules)
	if err != nil {
		return nil, err
	}
	if err := m.checkNames(rules); err != nil {
		return nil, err
	}
	m.warnDispatchers(o.rules)
	home := m.Config.Home
	if m.Durable {
		home = "" // those who come over a network have nothing to do with the home of who started the server
	}
	if t.Space, err = m.open(slices.Concat(o.roots, said.AdditionalDirs), home); err != nil {
		return nil, err
	}
	// Several clients start servers in `/` or in their own directory: then relative paths begin at the first root.
	if t.Space.Inside(o.workDir) || len(o.roots) == 0 {
		t.Space = t.Space.At(o.workDir)
	}
	t.Rules = rules.At(t.Space.Roots(), t.Space.Cwd())
	folds := func(rules *permission.Policy) bool {
		return rules.ComparesPaths() && slices.ContainsFunc(t.Space.Roots(), t.Space.Folds)
	}
	if folds(rules) {
		t.Rules = t.Rules.Folding()
	}
	if clean := m.Config.Write.SecretPaths; len(clean) > 0 {
		rules, err := permission.New(permission.Options{Home: m.Config.Home, Deny: clean})
		if err != nil {
			return nil, err
		}
		if t.Clean = rules.At(t.Space.Roots(), t.Space.Cwd()); folds(rules) {
			t.Clean = t.Clean.Folding()
		}
	}
	types := m.typeDirs(o.who)
	t.openSkills(m.skillDirs(o.who), types)
	t.Env = sync.OnceValue(func() []string {
		return sandbox.Environ(sandbox.EnvOptions{Roots: t.Space.Roots(), Allow: m.Config.Shell.EnvAllow,
			AllowSecret: m.Config.Shell.EnvAllowSecret, Withhold: m.Config.KeyEnvs(), Personal: !m.Durable,
			Display: m.Config.Sandbox.Display})
	})
	probe, err := shell.New(shell.Options{Dir: m.State, Init: m.Config.Shell.InitFile})
	switch {
	case !m.Config.Shell.Enabled:
		t.Prefs.NoShell = "the operator switched the shell off (shell.enabled)"
	case m.NoShell != "":
		t.Prefs.NoShell = m.NoShell
	case err != nil:
		t.Prefs.NoShell = err.Error() // said by every shell tool, instead of by a server that does not start
	}
	t.Bare = &session.State{
		Space: t.Space, Rules: t.Rules, Clean: t.Clean, Search: m.Search, Commands: session.Commands{Shell: probe},
		Prefs:  t.Prefs,
		Skills: skills.New(), Client: session.Client{CanAsk: true},
		Helpers: session.Helpers{SkillDirs: t.SkillDirs, Agents: session.Agents{
			Types: types, Samples: m.Config.Tools.Agent.Sampling,
		}},
	}
	limits := m.Confine
	limits.Protected, err = guarded.ProtectedNames(said.Protect, said.Unprotect)
	if err != nil {
		return nil, err
	}
	limits.Owner, limits.Roots = o.who.ID, t.Space.Roots()
	t.confiner = confine.New(limits, t.Env)
	t.Bare.Confine = t.Confinement("")
	t.Bare.Languages = m.Language
	t.Bare.ServerEnv = t.Env
	t.profile = m.Config.Tools.Profile
	t.tools, t.offers = m.Tools, new(atomic.Pointer[offers])
	return t, nil
}

// open opens the roots of a tenant, until Close.
func (m *Maker) open(roots []string, home string) (*workspace.Space, error) {
	space, err := workspace.Open(roots, workspace.Options{Home: home})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spaces = append(m.spaces, space)
	return space, nil
}

// Close gives back the handles of all roots. What still runs finds them closed.
func (m *Maker) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, space := range m.spaces {
		errs = append(errs, space.Close())
	}
	m.spaces = nil
	return errors.Join(errs...)
}

// ownRoots are the roots as they were opened, without those that the operator gives everybody.
func (t *Tenant) ownRoots(everybodys []string) []string {
	return slices.DeleteFunc(slices.Clone(t.Space.Roots()), func(dir string) bool {
		return slices.ContainsFunc(everybodys, func(d string) bool { return config.Canonical(d) == dir })
	})
}

// Confinement is how the commands of one session are confined. temp is the session's temporary directory, and readable
// what it may read besides its roots and the skills.
func (t *Tenant) Confinement(temp string, readable ...string) *confine.Session {
	for _, d := range t.outsideDirs() {
		if !t.Space.Inside(d.Path) { // a command could put a link in its place there
			readable = append(readable, config.Canonical(d.Path))
		}
	}
	s := &confine.Session{Confiner: t.confiner, Temp: temp, Readable: readable}
	if temp != "" {
		s.Begin(t.Space.Roots())
	}
	return s
}

// Withheld are the names of variables that commands lack, for the person whose variables they are; nil for those who
// come over a network.
func (m *Maker) Withheld(t *Tenant) []string {
	if m.Durable {
		return nil
	}
	return sandbox.Withheld(t.Env())
}

// outsideDirs are the directories of skills and of types of sub-agents that are not the workspace's.
func (t *Tenant) outsideDirs() []skills.Dir {
	if t.Bare == nil {
		return t.SkillDirs
	}
	return slices.Concat(t.SkillDirs, t.Bare.Types)
}

// openSkills lets calls read the directories of skills and of types of sub-agents. One inside a root is there
// already, and stays what it is.
func (t *Tenant) openSkills(dirs, types []skills.Dir) {
	t.SkillDirs = dirs
	var open []string
	for _, d := range slices.Concat(dirs, types) {
		if !t.Space.Inside(d.Path) {
			t.Space = t.Space.Readable(d.Path)
			open = append(open, config.Canonical(d.Path))
		}
	}
	t.Rules = t.Rules.Reading(open...)
}

// Forbids says why this principal may not use a tool that the rules allow; nil: it may.
func (t *Tenant) Forbids(x tool.Tool) *tool.Refusal {
	if t.Broken {
		return &tool.Refusal{Code: tool.WorkspaceUnavailable,
			Text: "The workspace cannot be served. Nothing was done. Tell the operator: the server's log says why."}
	}
	return t.beyond(x)
}

// beyond is Forbids for what the principal may not use in any workspace.
func (t *Tenant) beyond(x tool.Tool) *tool.Refusal {
	name := x.Spec.Name
	if want, text := Scope(x); !t.Who.Scopes.Has(want) {
		remedy := "The operator can make a token that has it."
		if t.Who.Token() != "" { // of a sign-in of our own
			remedy = "The user did not allow it when signing in: the user can sign in again and allow it, if the " +
				"operator does. Do not try other ways."
		}
		return &tool.Refusal{Code: tool.ScopeMissing, Text: fmt.Sprintf(
			"%s needs the scope %s, which this token does not have. %s", name, text, remedy)}
	}
	var reason string // made when it is needed: this is on the way of every call (BenchmarkServe)
	switch {
	case !profiled(t.Who.Profile, x):
		reason = "this token's tool profile is " + t.Who.Profile
	case !profiled(t.profile, x):
		reason = "the tool profile is " + t.profile + " (tools.profile)"
	default:
		return nil
	}
	return &tool.Refusal{Code: tool.ToolDisabled, Text: name + " is not available: " + reason}
}

const (
	// readOnlyProfile is the tool profile without anything that changes something. A dispatcher only leads to the rest.
	readOnlyProfile = "readonly"
	// simpleProfile is that with the few tools with which everything can be done.
	simpleProfile = "simple"
)

// profiled says whether a tool belongs to a tool profile.
func profiled(profile string, t tool.Tool) bool {
	switch profile {
	case readOnlyProfile:
		return t.Spec.Traits.ReadOnly || t.Dispatches()
	case simpleProfile:
		return t.Spec.Simple
	}
	return true
}

// Scope is what a tool needs of a token, also by name.
func Scope(x tool.Tool) (auth.Scopes, string) {
	switch x.Spec.Scope {
	case tool.ScopeRead:
		return auth.Read, "mcp:read"
	case tool.ScopeWrite:
		return auth.Write, "mcp:write"
	case tool.ScopeShell:
		return auth.Shell, "mcp:shell"
	case tool.ScopeWeb:
		return auth.Web, "mcp:web"
	}
	return auth.Read | auth.Write | auth.Shell | auth.Web, "mcp:all"
}

// allScopes are the scopes of callers that need no token.
const allScopes = auth.Read | auth.Write | auth.Shell | auth.Web | auth.AdminConsole

// Local is the tenant of the person who started this process: stdio, calls in process, and serve without
// authentication.
func (m *Maker) Local() (*Tenant, error) {
	id := cmp.Or(m.Principal, auth.LocalID)
	t, err := m.tenant(spec{
		who: auth.Principal{
			ID: id, Slug: auth.Slug(id), Roots: m.Config.Roots, Scopes: allScopes, Admin: true,
			Via: auth.ModeNone,
		},
		roots: m.Config.Roots, workDir: m.Config.WorkDir,
		rules: permission.Options{Deny: m.Config.Permissions.Deny, Ask: m.Config.Permissions.Ask,
			Allow: m.Config.Permissions.Allow},
		start: m.Config.Permissions.Mode, highest: permission.Bypass,
	})
	if err == nil {
		m.warnIdle(t, nil)
	}
	return t, err
}

package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/skills"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A place is what the calls of one principal work in: its roots and rules, and the tools that it may see. Two tokens of
// one principal with different rights have two places. It does not change.
type place struct {
	who       auth.Principal
	rights    string // of who, as one text
	space     *workspace.Space
	rules     *permission.Policy
	clean     *permission.Policy // denies to change files into which no secret may be written; nil: there are none
	bare      *session.State     // of no session: what a tool needs to say whether it is available
	prefs     session.Prefs
	start     permission.Mode // of a session that has not changed it
	highest   permission.Mode
	env       func() []string // of commands; made when it is first asked for, since it looks at every directory of PATH
	skillDirs []skills.Dir    // that are not in the workspace
	asked     offer           // to clients that can be asked
	unasked   offer           // to those that cannot
	profile   string          // of tools, which the operator set for all
	broken    bool            // its roots cannot be served: every call is refused
}

// placeOptions are what differs between places.
type placeOptions struct {
	who     auth.Principal
	roots   []string
	workDir string
	rules   permission.Options // Deny, Ask and Allow
	noShell string
	start   permission.Mode
	highest permission.Mode
}

// newPlace opens the roots, which must exist.
func (s *Server) newPlace(o placeOptions) (*place, error) {
	e := s.engines
	said := s.cfg.Permissions
	o.highest = said.Limit(o.highest)
	p := &place{who: o.who, rights: rights(o.who), prefs: prefs(s.cfg), start: said.Start(o.start).AtMost(o.highest), highest: o.highest}
	rules, err := s.policy(o.rules)
	if err != nil {
		return nil, err
	}
	if err := s.checkNames(rules); err != nil {
		return nil, err
	}
	s.warnDispatchers(o.rules)
	home := s.cfg.Home
	if s.engines.durable {
		home = "" // those who come over a network have nothing to do with the home of who started the server
	}
	if p.space, err = workspace.Open(slices.Concat(o.roots, said.AdditionalDirs), workspace.Options{Home: home}); err != nil {
		return nil, err
	}
	// Several clients start servers in `/` or in their own directory: then relative paths begin at the first root.
	if p.space.Inside(o.workDir) || len(o.roots) == 0 {
		p.space = p.space.At(o.workDir)
	}
	p.rules = rules.At(p.space.Roots(), p.space.Cwd())
	folds := func(rules *permission.Policy) bool {
		return rules.ComparesPaths() && slices.ContainsFunc(p.space.Roots(), p.space.Folds)
	}
	if folds(rules) {
		p.rules = p.rules.Folding()
	}
	if clean := s.cfg.Write.SecretPaths; len(clean) > 0 {
		rules, err := permission.New(permission.Options{Home: s.cfg.Home, Deny: clean})
		if err != nil {
			return nil, err
		}
		if p.clean = rules.At(p.space.Roots(), p.space.Cwd()); folds(rules) {
			p.clean = p.clean.Folding()
		}
	}
	p.openSkills(s.skillDirs(o.who))
	p.env = sync.OnceValue(func() []string {
		return sandbox.Environ(sandbox.EnvOptions{Roots: p.space.Roots(), Allow: s.cfg.Shell.EnvAllow})
	})
	probe, err := shell.New(shell.Options{Dir: e.dir, Init: s.cfg.Shell.InitFile})
	switch {
	case !s.cfg.Shell.Enabled:
		p.prefs.NoShell = "the operator switched the shell off (shell.enabled)"
	case o.noShell != "":
		p.prefs.NoShell = o.noShell
	case err != nil:
		p.prefs.NoShell = err.Error() // said by every shell tool, instead of by a server that does not start
	}
	p.bare = &session.State{Space: p.space, Rules: p.rules, Clean: p.clean, Search: e.search, Shell: probe, Prefs: p.prefs, Skills: skills.New(), SkillDirs: p.skillDirs, Client: session.Client{CanAsk: true}}
	p.profile = s.cfg.Tools.Profile
	s.arrange(p)
	return p, nil
}

// openSkills lets calls read the directories of skills. One inside a root is there already, and stays what it is.
func (p *place) openSkills(dirs []skills.Dir) {
	p.skillDirs = dirs
	var open []string
	for _, d := range dirs {
		if !p.space.Inside(d.Path) {
			p.space = p.space.Readable(d.Path)
			open = append(open, config.Canonical(d.Path))
		}
	}
	p.rules = p.rules.Reading(open...)
}

// forbids says why this principal may not use a tool that the rules allow; nil: it may.
func (p *place) forbids(t tool.Tool) *tool.Refusal {
	name := t.Spec.Name
	if p.broken {
		return &tool.Refusal{Code: tool.WorkspaceUnavailable, Text: "The workspace cannot be served. Nothing was done. Tell the operator: the server's log says why."}
	}
	if want, text := scope(t.Spec.Scope); !p.who.Scopes.Has(want) {
		return &tool.Refusal{Code: tool.ScopeMissing, Text: fmt.Sprintf(
			"%s needs the scope %s, which this token does not have. The operator can make a token that has it.", name, text)}
	}
	var reason string // made when it is needed: this is on the way of every call (BenchmarkHTTPHandler)
	switch {
	case !profiled(p.who.Profile, t):
		reason = "this token's tool profile is " + p.who.Profile
	case !profiled(p.profile, t):
		reason = "the tool profile is " + p.profile + " (tools.profile)"
	default:
		return nil
	}
	return &tool.Refusal{Code: tool.ToolDisabled, Text: name + " is not available: " + reason}
}

const (
	// readOnlyProfile is the tool profile without anything that changes something. A dispatcher only leads to the rest.
	readOnlyProfile = "readonly"
	// simpleProfile is that with simpleTools alone.
	simpleProfile = "simple"
)

// simpleTools are those with which everything can be done.
var simpleTools = []string{"run_shell", "read_file", "edit_file"}

// profiled says whether a tool belongs to a tool profile.
func profiled(profile string, t tool.Tool) bool {
	switch profile {
	case readOnlyProfile:
		return t.Spec.Traits.ReadOnly || t.Dispatches()
	case simpleProfile:
		return slices.Contains(simpleTools, t.Spec.Name)
	}
	return true
}

// scope is what a tool needs of a token, also by name.
func scope(s tool.Scope) (auth.Scopes, string) {
	switch s {
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

// allScopes are the scopes of whoever needs no token.
const allScopes = auth.Read | auth.Write | auth.Shell | auth.Web | auth.AdminConsole

// localPlace is the place of the person who started this process: stdio, calls in process, and serve without
// authentication.
func (s *Server) localPlace() (*place, error) {
	return s.newPlace(placeOptions{
		who:   auth.Principal{ID: localID, Slug: localID, Roots: s.cfg.Roots, Scopes: allScopes, Admin: true, Via: "none"},
		roots: s.cfg.Roots, workDir: s.cfg.WorkDir,
		rules: permission.Options{Deny: s.cfg.Permissions.Deny, Ask: s.cfg.Permissions.Ask, Allow: s.cfg.Permissions.Allow},
		start: s.cfg.Permissions.Mode, highest: permission.Bypass, noShell: s.noShell,
	})
}

// places are those of all principals of serve. It is safe for concurrent use.
type places struct {
	s   *Server
	now func() time.Time

	founding sync.Mutex // of one root after the other

	mu    sync.Mutex
	by    map[string]*placeSlot // by all that makes a principal's rights
	owned map[string][]string   // roots by principal, of all that were served since the last reload
	said  config.Principals     // the operator's words about principals
	loads int                   // how often they were read again
}

// A placeSlot is one place, made by who needs it first while others wait.
type placeSlot struct {
	mu     sync.Mutex
	place  *place
	failed time.Time // when place is broken
	load   int       // the reload after which its roots were claimed last
}

// retryPlace is how long a workspace that could not be made is not tried again.
const retryPlace = 5 * time.Second

func newPlaces(s *Server) *places {
	return &places{s: s, now: time.Now, by: map[string]*placeSlot{}, owned: map[string][]string{}, said: s.cfg.Principals}
}

// rights names all that makes a principal's place.
func rights(who auth.Principal) string {
	return strings.Join([]string{
		who.ID, who.Mode, who.MaxMode, who.Profile, who.Scopes.String(), fmt.Sprint(who.Admin, who.Via == modeNone), who.Seed,
		strings.Join(who.Roots, "\x01"), strings.Join(who.Allow, "\x01"), strings.Join(who.Deny, "\x01"),
	}, "\x00")
}

// of returns the place of a principal, and makes its workspace at the first call. If that fails, it is a place where
// nothing can be called; it is tried again a little later.
func (ps *places) of(who auth.Principal) (*place, error) {
	key := rights(who)
	ps.mu.Lock()
	slot := ps.by[key]
	if slot == nil {
		slot = &placeSlot{}
		ps.by[key] = slot
	}
	load := ps.loads
	ps.mu.Unlock()

	slot.mu.Lock()
	defer slot.mu.Unlock()
	switch {
	case slot.place == nil || slot.place.broken:
		if slot.place != nil && ps.now().Sub(slot.failed) < retryPlace {
			return slot.place, nil
		}
	case slot.load == load || ps.claim(who) == nil:
		slot.load = load
		return slot.place, nil
	}
	made, err := ps.make(who)
	slot.load = load
	if err != nil {
		ps.s.log.Error("a workspace cannot be served", "principal", who.ID, "err", err)
		slot.failed = ps.now()
		if made, err = ps.s.newPlace(placeOptions{who: who, noShell: ps.s.noShell}); err != nil {
			return nil, err
		}
		made.broken = true
	}
	slot.place = made
	return made, nil
}

func (ps *places) make(who auth.Principal) (*place, error) {
	s := ps.s
	if err := ps.claim(who); err != nil {
		return nil, err
	}
	for i, root := range who.Roots {
		seed := ""
		if i == 0 {
			seed = who.Seed
		}
		if err := ps.found(root, seed); err != nil {
			return nil, fmt.Errorf("root %s: %w", root, err)
		}
	}
	start, err := permission.ParseMode(who.Mode)
	if err != nil {
		return nil, err
	}
	highest, err := permission.ParseMode(who.MaxMode)
	if err != nil {
		return nil, err
	}
	workDir := ""
	if len(who.Roots) > 0 {
		workDir = who.Roots[0]
	}
	p := s.cfg.Permissions
	deny, allow := ps.rulesOf(who, "deny", who.Deny, workDir), ps.rulesOf(who, "allow", who.Allow, workDir)
	if p.ManagedRulesOnly && len(allow) > 0 {
		s.log.Warn("rules that allow are ignored: the machine's administrator alone makes them", "principal", who.ID)
		allow = nil
	}
	return s.newPlace(placeOptions{
		who: who, roots: who.Roots, workDir: workDir, start: start, highest: highest, noShell: s.noShell,
		rules: permission.Options{
			Deny: slices.Concat(p.Deny, deny), Ask: p.Ask, Allow: slices.Concat(p.Allow, allow),
		},
	})
}

// rulesOf are rules of one list that hold for one principal. What is relative in them is so to where he starts, as a real
// path, since rules are held against those.
func (ps *places) rulesOf(who auth.Principal, list string, texts []string, dir string) []permission.Rule {
	ps.mu.Lock()
	said := ps.said
	ps.mu.Unlock()
	var rules []permission.Rule
	for _, text := range texts {
		origin := said.RuleOrigin(who.ID, list, text)
		if origin == "" { // from a token
			origin = "principal " + who.ID
		}
		rules = append(rules, permission.Rule{Text: text, Origin: origin, Dir: config.Canonical(dir)})
	}
	return rules
}

// claim refuses roots that contain those of another principal or lie in them. The same roots may be shared: the operator
// said so.
func (ps *places) claim(who auth.Principal) error {
	mine := make([]string, len(who.Roots))
	for i, root := range who.Roots {
		mine[i] = config.Canonical(root)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for other, roots := range ps.owned {
		if other != who.ID && !auth.Disjoint(mine, roots) {
			return fmt.Errorf("its roots %q and those of the principal %s, %q, lie in each other", mine, other, roots)
		}
	}
	for _, root := range mine {
		if !slices.Contains(ps.owned[who.ID], root) {
			ps.owned[who.ID] = append(ps.owned[who.ID], root)
		}
	}
	return nil
}

// reload lets all roots be claimed anew, after the rights of principals may have changed. Who has those that he had keeps
// his place: his running jobs hang on it.
func (ps *places) reload(said config.Principals) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.said = said
	ps.loads++
	clear(ps.owned)
}

// noShellReason says why serve runs no commands; "": it does.
func noShellReason(c config.Config) string {
	if c.Sandbox.Policy == "off" {
		return ""
	}
	return "commands need a sandbox of level 2 here, and this version has none; the operator can set sandbox.policy = \"off\""
}

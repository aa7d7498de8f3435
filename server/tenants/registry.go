package tenants

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/tools/permission"
)

// A Registry holds the tenants of all principals of serve. It is safe for concurrent use.
type Registry struct {
	Now func() time.Time // set before the first use

	maker *Maker

	founding sync.Mutex // of one root after the other

	mu    sync.Mutex
	by    map[string]*slot    // by all that makes a principal's rights
	owned map[string][]string // roots by principal, of all that were served since the last reload
	said  config.Principals   // the operator's words about principals
	loads int                 // how often they were read again

	apart atomic.Pointer[[]string] // directories of all principals, from said and owned
}

// A slot is one tenant, made by who needs it first while others wait.
type slot struct {
	mu     sync.Mutex
	tenant *Tenant
	failed time.Time // when tenant is broken
	load   int       // the reload after which its roots were claimed last
}

// retryTenant is how long a workspace that could not be made is not tried again.
const retryTenant = 5 * time.Second

// NewRegistry makes an empty registry whose tenants maker makes.
func NewRegistry(maker *Maker) *Registry {
	r := &Registry{
		Now: time.Now, maker: maker, by: map[string]*slot{}, owned: map[string][]string{},
		said: maker.Config.Principals,
	}
	r.keepApart()
	ours := maker.Confine.Apart
	maker.Confine.Apart = func() []string {
		dirs := *r.apart.Load()
		if ours != nil {
			dirs = append(slices.Clip(dirs), ours()...)
		}
		return dirs
	}
	return r
}

// keepApart notes which directories belong to principals, for a caller that has the lock.
func (r *Registry) keepApart() {
	dirs := r.maker.Config.Apart(r.said)
	for _, roots := range r.owned {
		for _, root := range roots {
			if !slices.ContainsFunc(dirs, func(dir string) bool { return lies(root, dir) }) {
				dirs = append(dirs, root)
			}
		}
	}
	r.apart.Store(&dirs)
}

// rights names all that makes a principal's tenant.
func rights(who auth.Principal) string {
	return strings.Join([]string{
		who.ID, who.Mode, who.MaxMode, who.Profile, who.Scopes.String(),
		fmt.Sprint(who.Admin, who.Via == auth.ModeNone), who.Seed,
		strings.Join(who.Roots, "\x01"), strings.Join(who.Whole, "\x01"),
		strings.Join(who.Allow, "\x01"), strings.Join(who.Deny, "\x01"),
	}, "\x00")
}

// Of returns the tenant of a principal, and makes its workspace at the first call. If that fails, the tenant is broken:
// nothing can be called; the next call after retryTenant tries again.
func (r *Registry) Of(who auth.Principal) (*Tenant, error) {
	key := rights(who)
	r.mu.Lock()
	s := r.by[key]
	if s == nil {
		s = &slot{}
		r.by[key] = s
	}
	load := r.loads
	r.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.tenant == nil || s.tenant.Broken:
		if s.tenant != nil && r.Now().Sub(s.failed) < retryTenant {
			return s.tenant, nil
		}
	case s.load == load || r.claim(who) == nil:
		s.load = load
		return s.tenant, nil
	}
	made, err := r.make(who)
	s.load = load
	if err != nil {
		r.maker.Log.Error("a workspace cannot be served", "principal", who.ID, "err", err)
		s.failed = r.Now()
		if made, err = r.maker.tenant(spec{who: who}); err != nil {
			return nil, err
		}
		made.Broken = true
	}
	s.tenant = made
	return made, nil
}

func (r *Registry) make(who auth.Principal) (*Tenant, error) {
	if err := r.claim(who); err != nil {
		return nil, err
	}
	if err := r.settle(who); err != nil {
		return nil, err
	}
	for i, root := range who.Roots {
		seed := ""
		if i == 0 && isWhole(who, root) {
			seed = who.Seed
		}
		if err := r.found(root, seed); err != nil {
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
	p := r.maker.Config.Permissions
	deny, allow := r.rulesOf(who, "deny", who.Deny), r.rulesOf(who, "allow", who.Allow)
	if p.ManagedRulesOnly && len(allow) > 0 {
		r.maker.Log.Warn("rules that allow are ignored: the machine's administrator alone makes them",
			"principal", who.ID)
		allow = nil
	}
	t, err := r.maker.tenant(spec{
		who: who, roots: who.Roots, workDir: workDir, start: start, highest: highest,
		rules: permission.Options{
			Deny: slices.Concat(p.Deny, deny), Ask: p.Ask, Allow: slices.Concat(p.Allow, allow),
		},
	})
	if err == nil && !who.Reaches(t.ownRoots(p.AdditionalDirs)) {
		return nil, errors.Join(errors.New("a directory that its token is for was exchanged for a link that leads out "+
			"of its roots"), t.Space.Close())
	}
	if err == nil && len(who.Whole) > 0 { // a token that has less of a principal's roots lifts no rule about the rest
		var whole []string
		for _, root := range who.Whole {
			whole = append(whole, config.Canonical(root))
		}
		t.Rules, t.Clean = t.Rules.AlsoFrom(whole), t.Clean.AlsoFrom(whole)
		t.Bare.Rules, t.Bare.Clean = t.Rules, t.Clean
	}
	if err == nil { // a rule for all principals may name files of another one
		r.maker.warnIdle(t, append([]permission.Rule{}, slices.Concat(deny, allow)...))
	}
	return t, err
}

// isWhole says whether a root is one of the principal itself, and not a part of one that a token narrows it to: a part
// is no workspace that begins with a seed.
func isWhole(who auth.Principal, root string) bool {
	return len(who.Whole) == 0 || slices.ContainsFunc(who.Whole, func(mine string) bool {
		return config.Canonical(mine) == config.Canonical(root)
	})
}

// rulesOf are rules of one list that hold for one principal.
func (r *Registry) rulesOf(who auth.Principal, list string, texts []string) []permission.Rule {
	r.mu.Lock()
	said := r.said
	r.mu.Unlock()
	var rules []permission.Rule
	for _, text := range texts {
		origin := said.RuleOrigin(who.ID, list, text)
		if origin == "" { // from a token
			origin = "principal " + who.ID
		}
		rules = append(rules, permission.Rule{Text: text, Origin: origin})
	}
	return rules
}

// claim refuses roots that contain those of another principal or lie in them. The same roots may be shared: the
// operator said so.
func (r *Registry) claim(who auth.Principal) error {
	mine := make([]string, len(who.Roots))
	for i, root := range who.Roots {
		mine[i] = config.Canonical(root)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, roots := range r.owned {
		if other != who.ID && !auth.Disjoint(mine, roots) {
			return fmt.Errorf("its roots %q and those of the principal %s, %q, lie in each other", mine, other, roots)
		}
	}
	for _, root := range mine {
		if !slices.Contains(r.owned[who.ID], root) {
			r.owned[who.ID] = append(r.owned[who.ID], root)
			r.keepApart()
		}
	}
	return nil
}

// Reload lets all roots be claimed anew, after the rights of principals may have changed. A principal with the same
// roots keeps its tenant, because running jobs hang on it.
func (r *Registry) Reload(said config.Principals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = said
	r.loads++
	clear(r.owned)
	r.keepApart()
}

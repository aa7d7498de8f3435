package tenants

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/config"
	"codehand/server/toolset"
	"codehand/tools/permission"
)

// policy makes the policy of rules and of what the operator says about protected names.
func (m *Maker) policy(o permission.Options) (*permission.Policy, error) {
	o.Protect, o.Unprotect = m.Config.Permissions.Protect, m.Config.Permissions.Unprotect
	o.Own, o.Home = m.ownFiles(), m.Config.Home
	return permission.New(o)
}

// ownFiles are the state and the configuration of codehand, with links resolved: no call changes them. Skills that the
// operator names belong to it, since they lend rights, and shared lists of tasks, which are changed under a lock. What
// a project holds is a file of the workspace, of protected name.
func (m *Maker) ownFiles() []string {
	c := m.Config
	own := []string{m.State, c.StateDir, c.HTTP.DataDir, c.Cluster.Volume(), c.Auth.TokenFile, c.Tasks.Directory}
	own = append(own, c.Skills.Dirs...)
	own = append(own, c.KeyFiles()...)
	if c.Audit.Dir != "-" {
		own = append(own, c.Audit.Dir)
	}
	if c.ConfigHome != "" {
		own = append(own, filepath.Join(c.ConfigHome, "codehand"))
	}
	for _, file := range c.Files {
		if !slices.Contains(c.Projects, file) {
			own = append(own, file)
		}
	}
	own = slices.DeleteFunc(own, func(path string) bool { return path == "" })
	for i, path := range own {
		own[i] = config.Canonical(path)
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// checkNames refuses a rule that names no tool: a misspelt deny rule denies nothing. Of a project's rules it only
// warns, since no repository may keep the server from starting.
func (m *Maker) checkNames(p *permission.Policy) error {
	var names []string
	for _, t := range m.Tools.All() {
		names = append(append(names, t.Spec.Name), t.Spec.Aliases...)
	}
	var errs []error
	for _, r := range p.Unmatched(names) {
		if m.Config.OfProject(r.Origin) {
			m.Log.Warn("a rule of the project names no tool and is ignored", "rule", r.Text, "from", r.Origin)
			continue
		}
		errs = append(errs, fmt.Errorf("%s: rule %s names no tool", r.Origin, r.Text))
	}
	return errors.Join(errs...)
}

// CheckRule says why a person cannot set a rule for a session of a tenant, in the words that a start has for rules of
// the settings, and refuses what these only warn of: nobody reads a log who sets it. list is deny, ask or allow.
func (m *Maker) CheckRule(t *Tenant, list string, r permission.Rule) error {
	var o permission.Options
	switch list {
	case lists[permission.Deny]:
		o.Deny = []permission.Rule{r}
	case lists[permission.Ask]:
		o.Ask = []permission.Rule{r}
	default:
		if err := permission.Grantable(r.Text); err != nil {
			return err
		}
		o.Allow = []permission.Rule{r}
	}
	p, err := m.policy(o)
	if err == nil {
		err = m.checkNames(p)
	}
	if err != nil {
		return err
	}
	if name := m.dispatcher(r, true); name != "" {
		return errors.New(decidesNothing(name))
	}
	for _, c := range p.At(t.Space.Roots(), t.Space.Cwd()).Coverage() {
		if why, fix := c.Idle(func(name string) bool { return m.hasInput(c, name) }); why != "" {
			return fmt.Errorf("rule %q can match nothing that it seems to mean: %s; %s", r.Text, why, fix)
		}
	}
	return nil
}

// warnDispatchers says of rules about dispatchers that they decide nothing: the calls are those of other tools. Only a
// dispatcher as a whole can be denied, in the settings.
func (m *Maker) warnDispatchers(o permission.Options) {
	for i, r := range slices.Concat(o.Deny, o.Ask) {
		if name := m.dispatcher(r, i >= len(o.Deny)); name != "" {
			m.Log.Warn(decidesNothing(name), "rule", r.Text, "from", r.Origin)
		}
	}
}

func decidesNothing(name string) string {
	return "a rule about " + name + " decides nothing: write it about the tools that are called through it"
}

// dispatcher is the dispatcher that a rule is about; "": it is about none. One about all of a dispatcher counts only
// if whole is set.
func (m *Maker) dispatcher(r permission.Rule, whole bool) string {
	name, _, part := strings.Cut(r.Text, "(")
	for _, t := range m.Tools.All() {
		if t.Dispatches() && toolset.GoesBy(t, name) && (part || whole) {
			return name
		}
	}
	return ""
}

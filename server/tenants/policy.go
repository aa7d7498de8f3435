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

// warnDispatchers says of rules about dispatchers that they decide nothing: the calls are those of other tools. Only a
// dispatcher as a whole can be denied.
func (m *Maker) warnDispatchers(o permission.Options) {
	for _, t := range m.Tools.All() {
		if !t.Dispatches() {
			continue
		}
		for _, r := range slices.Concat(o.Deny, o.Ask) {
			name, _, part := strings.Cut(r.Text, "(")
			if toolset.GoesBy(t, name) && (part || slices.Contains(o.Ask, r)) {
				m.Log.Warn("a rule about "+name+" decides nothing: write it about the tools that are called through it",
					"rule", r.Text, "from", r.Origin)
			}
		}
	}
}

package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/config"
	"codehand/tools/permission"
)

// policy makes the policy of rules and of what the operator says about protected names.
func (s *Server) policy(o permission.Options) (*permission.Policy, error) {
	o.Protect, o.Unprotect = s.cfg.Permissions.Protect, s.cfg.Permissions.Unprotect
	o.Own, o.Home = s.ownFiles(), s.cfg.Home
	return permission.New(o)
}

// ownFiles are the state and the configuration of codehand, with links resolved: no call changes them. Skills that the
// operator names belong to it, since they lend rights, and shared lists of tasks, which are changed under a lock. What a
// project holds is a file of the workspace, of protected name.
func (s *Server) ownFiles() []string {
	c := s.cfg
	own := append([]string{s.engines.dir, c.StateDir, c.HTTP.DataDir, c.Auth.TokenFile, c.Tasks.Directory}, c.Skills.Dirs...)
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

// checkNames refuses a rule that names no tool: a misspelt deny rule denies nothing. Of a project's rules it only warns,
// since no repository may keep the server from starting.
func (s *Server) checkNames(p *permission.Policy) error {
	var names []string
	for _, t := range s.tools {
		names = append(append(names, t.Spec.Name), t.Spec.Aliases...)
	}
	var errs []error
	for _, r := range p.Unmatched(names) {
		if s.cfg.OfProject(r.Origin) {
			s.log.Warn("a rule of the project names no tool and is ignored", "rule", r.Text, "from", r.Origin)
			continue
		}
		errs = append(errs, fmt.Errorf("%s: rule %s names no tool", r.Origin, r.Text))
	}
	return errors.Join(errs...)
}

// warnDispatchers says of rules about dispatchers that they decide nothing: the calls are those of other tools. Only a
// dispatcher as a whole can be denied.
func (s *Server) warnDispatchers(o permission.Options) {
	for _, t := range s.tools {
		if !t.Dispatches() {
			continue
		}
		for _, r := range slices.Concat(o.Deny, o.Ask) {
			name, _, part := strings.Cut(r.Text, "(")
			if goesBy(t, name) && (part || slices.Contains(o.Ask, r)) {
				s.log.Warn("a rule about "+name+" decides nothing: write it about the tools that are called through it", "rule", r.Text, "from", r.Origin)
			}
		}
	}
}

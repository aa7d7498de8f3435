package engines

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate/lock"
	"codehand/server/config"
	"codehand/server/listen"
	"codehand/server/state"
	"codehand/tools/confine"
	"codehand/tools/guarded"
	"codehand/tools/mounts"
	"codehand/tools/mounts/pins"
	"codehand/tools/mounts/upstream"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
)

// A Local is what the person who started the process has, once it is known.
type Local struct {
	Roots []string
	Rules *permission.Policy
}

// mounts makes what the operator's further MCP servers are reached by; nil: there are none.
func (o Options) mounts(e *Set, local func() Local) *mounts.Mounts {
	as := mounts.Options{
		Log: o.Log, Pins: pins.New(filepath.Join(e.Dir, "mounts"), e.Locker),
		Shared: o.Serve && listen.WhyShared(o.Config) != "",
	}
	for _, m := range o.Config.Mounts {
		if m.Off {
			continue
		}
		usual := mounts.PerProcess
		if o.Serve {
			usual = mounts.PerPrincipal
		}
		var sign func(string) (http.RoundTripper, error)
		if m.Signs() {
			sign = func(principal string) (http.RoundTripper, error) { return signed(e, m, principal) }
		}
		as.Servers = append(as.Servers, mounts.Remote{
			Sign: sign,
			Name: m.Name, Scope: cmp.Or(mounts.Scope(m.Scope), usual), Only: m.Tools, Listed: m.Always,
			Trusted: m.Trusted, Eager: m.Eager, Timeout: m.Timeout, Start: m.Start,
			Reach: func() (upstream.Options, error) {
				at := local()
				to, err := o.reach(m, at.Roots)
				if m.Sandbox {
					to.Command.Confine = func() (upstream.Confined, error) { return o.confined(e, m, to.Command, at) }
				}
				return to, err
			},
		})
	}
	if len(as.Servers) == 0 {
		return nil
	}
	return mounts.New(as)
}

// Grant is how a principal gets tokens for a mounted server; "" is the person whose process it is. dir is the state
// directory.
func Grant(m config.Mount, dir, principal string) (upstream.Grant, error) {
	locker := lock.New(filepath.Join(dir, "locks"))
	secret, err := m.Expanded(map[string]string{"oauth_client_secret": m.At.Secret})
	g := upstream.Grant{
		URL: m.At.URL, ID: m.At.ID, Secret: secret["oauth_client_secret"], Scopes: m.At.Scopes,
		Client: m.SignsItself(),
		Store: filepath.Join(dir, "mounts", "tokens", state.Hash(cmp.Or(principal, "local")),
			m.Name+".json"),
		Lock: func(ctx context.Context, path string) (func(), error) { return locker.Lock(ctx, path) },
	}
	return g, err
}

// signed adds the tokens of a principal to the requests of a server; nil: it has none.
func signed(e *Set, m config.Mount, principal string) (http.RoundTripper, error) {
	g, err := Grant(m, e.Dir, principal)
	if err != nil || !g.Client && !upstream.Signed(g.Store, g.URL) {
		return nil, err
	}
	return g.Transport(), nil
}

// confined is how the program of a server is confined that the operator wants in the sandbox: as a command that may
// write, by the rules of the person who started the process, with caches and a temporary directory of its own.
func (o Options) confined(e *Set, m config.Mount, c upstream.Command, local Local) (upstream.Confined, error) {
	limits := e.Confined.Options
	if limits.Off {
		return upstream.Confined{}, errors.New(`sandbox.policy is "off"`)
	}
	var err error
	p := o.Config.Permissions
	if limits.Protected, err = guarded.ProtectedNames(p.Protect, p.Unprotect); err != nil {
		return upstream.Confined{}, err
	}
	limits.Owner, limits.Roots = "mcp."+m.Name, canonical(local.Roots)
	session := &confine.Session{
		Confiner: confine.New(limits, func() []string { return c.Env }),
		Temp:     filepath.Join(e.Dir, "mounts", "tmp-"+m.Name+"-"+strings.ToLower(rand.Text()[:8])),
	}
	how, err := session.Command(confine.Use{Roots: limits.Roots, Rules: local.Rules, Background: true})
	if err == nil && (how.Profile == nil || how.Level < sandbox.LevelKernel) {
		err = fmt.Errorf("this machine has proven sandbox level %d, and 2 is needed: codehand doctor says why",
			how.Level)
	}
	release := func() {}
	if err == nil && how.Hold != nil {
		release, err = how.Hold()
	}
	if err != nil {
		return upstream.Confined{}, errors.Join(err, os.RemoveAll(session.Temp))
	}
	made := upstream.Confined{Profile: how.Profile, Level: how.Level, Groups: how.Groups, Env: how.Env}
	if how.Proxy != nil {
		made.Serve = how.Serve
	}
	made.Over = func() {
		release()
		if err := os.RemoveAll(session.Temp); err != nil {
			o.Log.Warn("a temporary directory is left behind", "cause", err)
		}
	}
	return made, nil
}

// reach is where a server is, with its secrets as they are now.
func (o Options) reach(m config.Mount, roots []string) (upstream.Options, error) {
	how := m.At.Transport
	to := upstream.Options{Version: o.Version, URL: m.At.URL, SSE: how == "sse", Only: how == "http"}
	var err error
	if m.At.URL != "" {
		to.Header, err = m.Expanded(m.At.Headers)
		return to, err
	}
	own, err := m.Expanded(m.Program.Env)
	if err != nil {
		return to, err
	}
	to.Command.Argv = m.Program.Argv
	to.Command.Env = sandbox.Environ(sandbox.EnvOptions{
		Roots: slices.Concat(roots, o.Config.Sandbox.Writable), Allow: o.Config.Shell.EnvAllow,
		Withhold: o.Config.KeyEnvs(), Personal: !o.Serve,
	})
	to.Command.Env = slices.DeleteFunc(to.Command.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, said := own[name]
		return said // of two, programs take the first
	})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		to.Command.Env = append(to.Command.Env, name+"="+own[name])
	}
	for _, dir := range o.startDirs(m, roots) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			to.Command.Dir = dir
			return to, nil
		}
		if dir == m.Program.Cwd {
			return to, errors.New("its working directory " + dir + " is no directory")
		}
	}
	return to, errors.New("there is no directory to start it in: set cwd")
}

// startDirs are the directories that a server may start in, the best first. Programs that start servers (npx, uvx,
// python -m) take code and settings from there. So what runs outside of the sandbox does not start where commands
// write, unless the operator says so.
func (o Options) startDirs(m config.Mount, roots []string) (dirs []string) {
	home := o.Config.Home
	switch {
	case m.Program.Cwd != "":
		return []string{m.Program.Cwd}
	case m.Sandbox:
		dirs = slices.Clone(roots)
	}
	written := func(dir string) bool {
		rel, err := filepath.Rel(dir, config.Canonical(home))
		return err == nil && filepath.IsLocal(rel)
	}
	if home != "" && (m.Sandbox || !slices.ContainsFunc(slices.Concat(roots, o.Config.Sandbox.Writable), written)) {
		dirs = append(dirs, home)
	}
	return append(dirs, filepath.VolumeName(home)+string(filepath.Separator))
}

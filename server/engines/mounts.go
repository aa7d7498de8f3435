package engines

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate/lock"
	"codehand/server/config"
	"codehand/tools/mounts"
	"codehand/tools/mounts/pins"
	"codehand/tools/mounts/upstream"
	"codehand/tools/sandbox"
)

// mounts makes what the operator's further MCP servers are reached by; nil: there are none. roots are those of the
// person who started the process, dir is the state directory.
func (o Options) mounts(roots func() []string, dir string, locker lock.Locker) *mounts.Mounts {
	as := mounts.Options{Log: o.Log, Pins: pins.New(filepath.Join(dir, "mounts"), locker)}
	for _, m := range o.Config.Mounts {
		if m.Off {
			continue
		}
		usual := mounts.PerProcess
		if o.Serve {
			usual = mounts.PerPrincipal
		}
		as.Servers = append(as.Servers, mounts.Remote{
			Name: m.Name, Scope: cmp.Or(mounts.Scope(m.Scope), usual), Only: m.Tools, Listed: m.Always,
			Trusted: m.Trusted, Eager: m.Eager, Timeout: m.Timeout, Start: m.Start,
			Reach: func() (upstream.Options, error) { return o.reach(m, roots()) },
		})
	}
	if len(as.Servers) == 0 {
		return nil
	}
	return mounts.New(as)
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
		Roots: roots, Allow: o.Config.Shell.EnvAllow, Withhold: o.Config.KeyEnvs(), Personal: !o.Serve,
	})
	to.Command.Env = slices.DeleteFunc(to.Command.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, said := own[name]
		return said // of two, programs take the first
	})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		to.Command.Env = append(to.Command.Env, name+"="+own[name])
	}
	for _, dir := range append([]string{m.Program.Cwd}, append(slices.Clone(roots), o.Config.Home)...) {
		if info, err := os.Stat(dir); dir != "" && err == nil && info.IsDir() {
			to.Command.Dir = dir
			return to, nil
		}
		if dir == m.Program.Cwd && dir != "" {
			return to, errors.New("its working directory " + dir + " is no directory")
		}
	}
	return to, errors.New("there is no directory to start it in: set cwd")
}

package engines

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"codehand/server/config"
	"codehand/server/listen"
	"codehand/tools/confine"
	"codehand/tools/sandbox"
)

// A Confinement is what all commands of this process share.
type Confinement struct {
	Options confine.Options
	// Proven is what this machine was proven to do. It waits until it was probed, and is safe for concurrent use.
	Proven func() sandbox.Report
	of     Options
	prover *prover
	tidy   tidy
	spares *sandbox.Spares
}

// Close ends the probes that run beside commands and the tidying of caches, and gives back what waits for the next
// command. A nil Confinement has nothing.
func (c *Confinement) Close() {
	if c != nil {
		c.tidy.close()
		c.prover.close()
		c.spares.Close()
	}
}

// confinement makes what all commands of this process have in common. dir is the state directory; proven takes the
// place of probing this machine, for tests; nil: it is probed.
func (o Options) confinement(dir string, proven func() sandbox.Report) *Confinement {
	cfg, made := o.Config, &Confinement{of: o, spares: sandbox.NewSpares()}
	p := newProver(o.Log)
	p.prove = func(context.Context) sandbox.Report { return proven() }
	if proven == nil {
		p.prove = func(ctx context.Context) sandbox.Report { return made.bounded(cfg, sandbox.Probe(ctx, dir)) }
		p.keep = func(r sandbox.Report) error { return r.Keep(dir) }
		if !o.Serve || listen.WhyShared(cfg) == "" { // others are kept apart by nothing but what was proven now
			p.recall = func() (sandbox.Report, error) {
				r, err := sandbox.Recall(dir)
				return made.bounded(cfg, r), err
			}
		}
	}
	made.prover, made.Proven = p, p.report
	made.tidy.begin(config.CacheDir(dir), cfg.Sandbox.CacheMax, o.Log)
	c := confine.Options{
		Places: confine.Places{
			Readable: canonical(cfg.Sandbox.Readable), Writable: canonical(cfg.Sandbox.Writable),
			Hide: append(ownSecrets(cfg), cfg.Sandbox.Hide...), Named: named(cfg),
		},
		Caches: config.CacheDir(dir),
		Network: confine.Network{Network: networks[cfg.Sandbox.Network], Domains: cfg.Sandbox.Domains,
			Addresses: cfg.Sandbox.Addresses},
		Off: cfg.Sandbox.Policy == config.SandboxOff, Proven: made.Proven, Known: p.expected,
		Needed: func() sandbox.Level { return neededLevel(cfg, o.Serve) },
	}
	c.Home, c.State = cfg.Home, config.Canonical(dir)
	data := keptDirs(cfg)
	c.Apart = func() []string { return data }
	c.Personal = !o.Serve || listen.WhyShared(cfg) == "" // others have nothing to do with that home
	// Where the network is open, what a command may read can leave: then the operator says so, and not a default.
	c.AutoAllow = cfg.Sandbox.AutoAllow && (c.Network.Network != sandbox.NetworkOn || cfg.Said("sandbox.auto_allow"))
	if !o.Serve && cfg.Sandbox.Git != config.GitOff {
		c.Credentials, c.CredentialSites = cfg.Sandbox.Git, cfg.Sandbox.GitHosts
	}
	made.Options = c
	return made
}

// keptDirs are the directories of serve besides the state directory, without links.
func keptDirs(cfg config.Config) []string {
	dirs := []string{config.Canonical(cfg.DataDir())}
	if shared := cfg.Cluster.Volume(); shared != "" {
		dirs = append(dirs, config.Canonical(shared))
	}
	return dirs
}

// checkApart refuses directories of several people that cannot be kept from each other's commands.
func (c *Confinement) checkApart() error {
	cfg, made := c.of.Config, c.Options
	if !c.of.Serve || made.Off || listen.WhyShared(cfg) == "" {
		return nil
	}
	return confine.CheckApart(slices.Concat(cfg.Apart(cfg.Principals), []string{made.State}, keptDirs(cfg)),
		slices.Concat(made.Readable, made.Writable))
}

// bounded adds to a report what the operator set, and what this process has for commands. The default limit of memory
// is no more than usual on this machine.
func (c *Confinement) bounded(cfg config.Config, r sandbox.Report) sandbox.Report {
	r.Spares, r.Processes = c.spares, cfg.Sandbox.Processes
	if r.Groups == nil {
		return r
	}
	memory := cfg.Sandbox.Memory
	if !cfg.Said("sandbox.memory") {
		memory = min(memory, r.Groups.Limits().Memory)
	}
	r.Groups = r.Groups.With(sandbox.Bounds{Memory: memory, Processes: cfg.Sandbox.Processes})
	return r
}

// ownSecrets are the files of the server's own that commands never read, wherever the operator put them.
func ownSecrets(cfg config.Config) []string {
	own := append(cfg.SecretsOfServe(), cfg.Files...)
	own = append(own, cfg.KeyFiles()...)
	return slices.DeleteFunc(own,
		func(path string) bool { return !filepath.IsAbs(path) || slices.Contains(cfg.Projects, path) })
}

// named returns what settings name that commands must not change, wherever it is: what opens places to commands, and
// programs with their files that run outside of the sandbox.
func named(cfg config.Config) (all []confine.Named) {
	add := func(by string, words ...string) {
		for _, word := range words {
			if !filepath.IsAbs(word) {
				continue
			}
			word = filepath.Clean(word)
			all = append(all, confine.Named{Path: word, By: by})
			if real := config.Canonical(word); real != word {
				all = append(all, confine.Named{Path: real, By: by})
			}
		}
	}
	add("sandbox.readable", cfg.Sandbox.Readable...)
	for _, dir := range cfg.Sandbox.Writable {
		if config.Canonical(dir) != filepath.Clean(dir) { // the link; what it leads to is written
			all = append(all, confine.Named{Path: filepath.Clean(dir), By: "sandbox.writable"})
		}
	}
	for _, h := range cfg.Hooks.Entries {
		if !h.Project { // those run in the sandbox
			add("hooks", h.Command...)
		}
	}
	add("permissions.classifier", cfg.Permissions.Classifier...)
	add("console.notify", cfg.Console.Notify...)
	add("agent.command", cfg.Tools.Agent.Command.Argv...)
	add("agent.command", cfg.Tools.Agent.Command.Resume...)
	for _, m := range cfg.Mounts {
		if !m.Sandbox {
			add("mcp.servers."+m.Name, m.Program.Argv...)
		}
	}
	return all
}

// canonical resolves links, since a profile has none: changing one would change what commands reach.
func canonical(paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = config.Canonical(path)
	}
	return all
}

// networks are the values of sandbox.network.
var networks = map[string]sandbox.Network{
	config.NetworkOff: sandbox.NetworkOff, config.NetworkList: sandbox.NetworkList,
	config.NetworkOn: sandbox.NetworkOn,
}

// neededLevel is the level below which no command runs.
func neededLevel(cfg config.Config, serve bool) sandbox.Level {
	switch {
	case cfg.Sandbox.Policy == config.SandboxOff:
		return sandbox.LevelNone
	case serve && listen.WhyShared(cfg) != "":
		// One token may become several while the server runs, and only this level keeps people apart.
		return sandbox.LevelFull
	case cfg.Sandbox.Policy == config.SandboxRequired:
		return sandbox.Level(cfg.Sandbox.MinLevel)
	}
	return sandbox.LevelNone
}

// NoShell says why no command runs in this process; "": commands run, or the first one says why not. Only serve
// for others waits for the probes, since it does not list tools that cannot work.
func (c *Confinement) NoShell() string {
	cfg, serve := c.of.Config, c.of.Serve
	needed := neededLevel(cfg, serve)
	if !serve || needed == sandbox.LevelNone {
		return ""
	}
	proven := c.Proven()
	if proven.Unknown() || proven.Level >= needed { // the next command tries again
		return ""
	}
	why := listen.WhyShared(cfg)
	if why == "" {
		why = `sandbox.policy is "required"`
	}
	text := fmt.Sprintf("commands need sandbox level %d here, because %s, and this machine has proven level %d", needed,
		why, proven.Level)
	if f := proven.Failed; f != nil {
		text += " (" + f.Probe + "); the operator can help: " + f.Remedy
	}
	return text + `; or set sandbox.policy = "off" to run them unconfined`
}

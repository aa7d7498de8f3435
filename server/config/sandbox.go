package config

import (
	"net/netip"
	"slices"
	"strings"

	"codehand/tools/credentials"
	"codehand/tools/web/guard"
)

// Sandbox is what must confine commands.
type Sandbox struct {
	Policy    string         // required, best-effort, off
	MinLevel  int            // below it, policy decides
	AutoAllow bool           // a command at level 3 needs no question
	Readable  []string       // besides what a profile shows
	Writable  []string       // besides the roots
	Hide      []string       // from every command
	Network   string         // off, list, on
	Domains   []guard.Domain // what list opens; not empty with it
	Addresses guard.Options  // what web.* opens besides public addresses; no ports
	Display   bool           // commands of the person at the machine reach the display
	Git       string         // whether their git gets stored passwords: off, ask, on
	GitHosts  []string       // for which it does besides those of remotes, as credentials.Site returns them
	Memory    int64          // bytes of a command with all that it starts, where control groups can be used
	Processes int            // of a command, with threads
	CacheMax  int64          // bytes that the private caches of one principal may keep
}

// defaultSandbox is what holds if nothing is said.
func defaultSandbox() Sandbox {
	return Sandbox{Policy: "best-effort", MinLevel: 2, AutoAllow: true, Network: NetworkOn, Git: "ask",
		Memory: 8 * gib, Processes: 512, CacheMax: 20 * gib}
}

// sandboxTable is about what confines commands.
func sandboxTable(c *Config) []setting {
	return []setting{
		{"sandbox.policy",
			"whether the kernel must confine commands: required, best-effort or off; serve requires it for more than " +
				"one person, unless off", narrower,
			choice{&c.Sandbox.Policy, []string{SandboxRequired, "best-effort", SandboxOff}}},
		{"sandbox.min_level", "level of confinement below which the policy counts: 1 limits, 2 kernel, 3 full; " +
			"several people need 3", operatorOnly, number{&c.Sandbox.MinLevel, 1, 3, false}},
		{"sandbox.auto_allow",
			"whether a confined command (level 3) needs no question; by default only where the network is not open; " +
				"dangerous ones are asked about all the same", operatorOnly, toggle{&c.Sandbox.AutoAllow}},
		{"sandbox.readable", "directories and files that commands may read besides the roots and the system's",
			operatorOnly, dirs{&c.Sandbox.Readable}},
		{"sandbox.writable", "directories that commands may change besides the roots", operatorOnly,
			dirs{&c.Sandbox.Writable}},
		{"sandbox.hide", "directories and files that no command may read", operatorOnly, dirs{&c.Sandbox.Hide}},
		{"sandbox.network", "what commands in the sandbox reach: off, list (only sandbox.domains) or on; serve " +
			"defaults to off where others than you can connect", narrower,
			choice{&c.Sandbox.Network, []string{NetworkOff, NetworkList, NetworkOn}}},
		{"sandbox.domains",
			"hosts for sandbox.network = list: example.com, *.npmjs.org (all below) or example.com:8443; without " +
				"a port 80 and 443; a command can send there whatever it can read", narrower,
			domains{&c.Sandbox.Domains}},
		{"sandbox.display",
			"whether commands on stdio reach the display (X11, Wayland) while their network is open; a program there " +
				"can read and type into your other windows", operatorOnly, toggle{&c.Sandbox.Display}},
		{"sandbox.git_credentials",
			"whether git in commands on stdio gets the passwords that your own git has for the hosts of the remotes: " +
				"off, ask (once a session) or on; such a command can read them", narrower,
			choice{&c.Sandbox.Git, []string{GitOff, "ask", GitOn}}},
		{"sandbox.git_hosts",
			"hosts besides those of the remotes for which sandbox.git_credentials holds, as github.com for a clone; " +
				"about any other host you are asked separately", operatorOnly, sites{&c.Sandbox.GitHosts}},
		{memoryKey, "memory of a command with all that it starts, where a delegated cgroup v2 tree limits it (doctor " +
			"says whether); by default also at most half of the machine's", operatorOnly,
			size{&c.Sandbox.Memory, 64 * mib, 1024 * gib}},
		{"sandbox.processes", "processes and threads of a command", operatorOnly,
			number{&c.Sandbox.Processes, 32, 1 << 20, false}},
		{"sandbox.cache_max", "largest size of the caches that commands have, for each principal; what was not used " +
			"for the longest time is removed while no command runs", operatorOnly,
			size{&c.Sandbox.CacheMax, 64 * mib, 1024 * gib}},
		{"web.allow_private",
			"private networks that allowed names may lead to, as 10.1.0.0/16; this machine and the metadata services " +
				"of clouds stay closed", operatorOnly, networks{&c.Sandbox.Addresses.Private, readPrivate}},
		{"web.nat64", "whether IPv4 is reached through 64:ff9b::/96, where there is only IPv6", operatorOnly,
			toggle{&c.Sandbox.Addresses.NAT64}},
	}
}

// Values of sandbox.policy: no command runs that the kernel does not confine, and all run whatever it does.
const (
	SandboxRequired = "required"
	SandboxOff      = "off"
)

// Values of sandbox.network.
const (
	NetworkOff  = "off"
	NetworkList = "list"
	NetworkOn   = "on"
)

// Values of sandbox.git_credentials, besides ask.
const (
	GitOff = "off"
	GitOn  = "on"
)

// The settings that say what commands reach.
const (
	networkKey = "sandbox.network"
	domainsKey = "sandbox.domains"
	memoryKey  = "sandbox.memory"
)

// domains is a list of hosts that may be reached. A source replaces the whole list, and a project narrows it to what
// both lists allow.
type domains struct{ p *[]guard.Domain }

func (v domains) set(in input) error {
	list, bad := each(in, func(s string, _ input) (guard.Domain, error) { return guard.ParseDomain(s) })
	if len(bad) > 0 {
		return bad
	}
	*v.p = list
	return nil
}

func (v domains) text() string {
	texts := make([]string, len(*v.p))
	for i, d := range *v.p {
		texts[i] = d.String()
	}
	return strings.Join(texts, ",")
}

// sites is a list of hosts whose passwords git may get.
type sites struct{ p *[]string }

func (v sites) set(in input) error {
	list, bad := each(in, func(s string, _ input) (string, error) { return credentials.Site(s) })
	if len(bad) > 0 {
		return bad
	}
	*v.p = list
	return nil
}

func (v sites) text() string { return strings.Join(*v.p, ",") }

// readPrivate reads a network that an operator opens.
func readPrivate(s string, in input) (netip.Prefix, error) {
	n, err := readNetwork(s, in)
	if err != nil {
		return n, err
	}
	return n, guard.CheckPrivate(n)
}

// meet narrows a list to what was open with was, too; ok is false if some of its entries open nothing. With no list
// before, a new one is stricter than on, and off stays off. An empty one is a list: another project left nothing of it.
func (v domains) meet(was []guard.Domain) (ok bool) {
	if was == nil {
		return true
	}
	ok = true
	both := []guard.Domain{}
	for _, d := range *v.p {
		before := len(both)
		for _, w := range was {
			if m, some := w.Meet(d); some && !slices.Contains(both, m) {
				both = append(both, m)
			}
		}
		ok = ok && len(both) > before
	}
	*v.p = both
	return ok
}

// checkNetwork says what is wrong with the settings about the network, read together; "": nothing. A list that would
// not count must not be taken for a limit.
func (c *Config) checkNetwork() (key, wrong string) {
	origin := c.origins[networkKey]
	switch open := len(c.Sandbox.Domains) > 0; {
	case c.Sandbox.Network == NetworkList && !open:
		return networkKey, "list needs sandbox.domains"
	case open && (origin == byDefault || origin == serveOrigin):
		return domainsKey, `counts only with sandbox.network = "list"`
	}
	return "", ""
}

// closeNetwork switches the network off if the projects left no host of it, and warns of that, and of a list of
// theirs that does not count.
func (c *Config) closeNetwork() []Warning {
	open := len(c.Sandbox.Domains) > 0
	switch at := c.origins[domainsKey]; {
	case c.Sandbox.Network == NetworkList && !open:
		c.Sandbox.Network = NetworkOff
		return []Warning{{Origin: c.origins[networkKey],
			Text: networkKey + ": off, because no entry of sandbox.domains is left"}}
	case open && c.Sandbox.Network == NetworkOn && c.OfProject(at):
		return []Warning{{Origin: at, Text: domainsKey + `: counts only with sandbox.network = "list"`}}
	}
	return nil
}

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"codehand/server/config"
	"codehand/tools/confine"
	"codehand/tools/sandbox"
	"codehand/tools/web/search"
)

// A Machine is what the checks of this machine look at. Its methods are safe for concurrent use.
type Machine struct {
	Config   config.Config
	Warnings []config.Warning // of loading Config
	Program  string           // absolute path of this program; "": not known
	Version  string           // of this program
	Revision string           // the commit that it was built from; "": not known
	Env      []string         // of this process
	Args     []string         // with which this program serves a client with these settings: stdio and what follows

	// Client narrows the checks to what concerns one client, by its id; "": all.
	Client string
	// Serve leaves out what is about stdio and the clients of this machine: Config is that of serve.
	Serve bool
	// More are checks that need what this package does not know. They stand behind the one of the configuration.
	More []Check

	sys *system // what the machine says of itself; nil: it is asked
}

// Checks are those of this machine and of all clients on it. The one of the configuration supposes that it was loaded.
func (m Machine) Checks() []Check {
	clients := clientChecks{m}
	if m.Client != "" {
		return append([]Check{one("binary", m.binary), {ID: "clients", Run: clients.clients}}, clients.handshakes()...)
	}
	env := sync.OnceValue(func() []string { return m.commandEnv() })
	checks := []Check{
		one("binary", m.binary),
		{ID: "config", Run: func(context.Context) []Finding { return m.config() }},
	}
	checks = append(checks, m.More...)
	if m.Serve {
		return append(checks, Check{ID: "journal", Run: m.journal},
			Check{ID: "programs", Run: func(context.Context) []Finding { return m.programs() }},
			one("sandbox", m.sandbox), Check{ID: "limits", Run: func(context.Context) []Finding { return m.limits() }})
	}
	checks = append(checks, []Check{
		{ID: "roots", Run: func(context.Context) []Finding { return m.roots() }},
		{ID: "state", Run: func(context.Context) []Finding { return m.state() }},
		{ID: "pause", Run: func(context.Context) []Finding { return pausedHere(m.Config.StateDir) }},
		{ID: "journal", Run: m.journal},
		{ID: "store", Run: m.store},
		{ID: "programs", Run: func(context.Context) []Finding { return m.programs() }},
		{ID: "hooks", Run: func(context.Context) []Finding { return m.hooks(env()) }},
		{ID: "env", Run: func(context.Context) []Finding { return m.environment(env()) }},
		{ID: "backends", Run: func(context.Context) []Finding { return m.backends(env()) }},
		one("sandbox", m.sandbox),
		{ID: "limits", Run: func(context.Context) []Finding { return m.limits() }},
		{ID: "clients", Run: clients.clients},
	}...)
	return append(checks, clients.handshakes()...)
}

// commandEnv is what commands get of the environment.
func (m Machine) commandEnv() []string {
	return sandbox.Environ(sandbox.EnvOptions{Roots: m.Config.Roots, Allow: m.Config.Shell.EnvAllow,
		AllowSecret: m.Config.Shell.EnvAllowSecret, Withhold: m.Config.KeyEnvs(), Personal: true})
}

// getenv is the value of a variable of this process.
func (m Machine) getenv(name string) string { return valueOf(m.Env, name) }

// valueOf is the value of a variable in an environment; the last one counts. "": it is not there.
func valueOf(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		key, value, _ := strings.Cut(entry, "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

func (m Machine) binary(ctx context.Context) Finding {
	if m.Program == "" {
		return Finding{Level: Warn, Text: "the path of this program is not known", Fix: "start it by its absolute path"}
	}
	f := Finding{Level: OK, Text: fmt.Sprintf("%s, version %s", m.Program, m.Version)}
	if m.Revision != "" {
		f.Text += ", commit " + m.Revision[:min(12, len(m.Revision))]
	}
	other := programIn(m.getenv("PATH"), "codehand")
	if other == "" || same(m.Program, other) {
		return f
	}
	if why := m.distrust(other, ""); why != "" {
		return Finding{Level: Warn, Text: fmt.Sprintf("%s; PATH finds another one first: %s, not started: %s", f.Text,
			other, why), Fix: fmt.Sprintf("remove %s, or put %s before it in PATH", other, filepath.Dir(m.Program))}
	}
	version := versionOf(ctx, other, m.Env)
	if version == m.Version {
		f.Text += "; PATH finds another file of this version first: " + other
		return f
	}
	if version == "" {
		version = "unknown"
	}
	return Finding{Level: Warn, Text: fmt.Sprintf("%s; PATH finds another one first: %s, version %s", f.Text, other,
		version), Fix: fmt.Sprintf("remove %s, or put %s before it in PATH", other, filepath.Dir(m.Program))}
}

// versionOf asks a program that is called codehand for its version; "": it does not say.
func versionOf(ctx context.Context, path string, env []string) string {
	out, err := output(ctx, path, []string{"--version"}, env)
	if err != nil {
		return ""
	}
	words := strings.Fields(out)
	if len(words) < 2 || words[0] != "codehand" {
		return ""
	}
	return words[1]
}

func (m Machine) config() []Finding {
	text := strings.TrimSpace("defaults; there is no configuration file " + m.Config.Permissions.UserFile)
	if len(m.Config.Files) > 0 {
		text = "read " + strings.Join(m.Config.Files, ", ")
	}
	out := []Finding{{"config", OK, text, ""}}
	for _, w := range m.Warnings {
		if w.NoRoot != "" && !m.Serve {
			continue // roots says it
		}
		fix := "codehand help settings explains the settings"
		if m.Config.OfProject(w.Origin) {
			fix = "remove it there: a project file may only narrow what the user's file and flags allow"
		}
		out = append(out, Finding{"config", Warn, w.String(), fix})
	}
	return out
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// shellDirs are where tools look for a shell, and for git: not on PATH, where a workspace may come first.
var shellDirs = []string{"/usr/bin", "/bin", "/usr/local/bin"}

// programs looks for the programs that tools start.
func (m Machine) programs() []Finding {
	wanted := []struct {
		names []string
		dirs  []string
		level Level
		fix   string
	}{
		{[]string{"bash"}, m.system().programs, Warn, "install bash: without it commands run in sh"},
		{[]string{"git"}, m.system().programs, Note, "install git if the workspace is a repository"},
	}
	if runtime.GOOS == "windows" {
		git, _ := sandbox.WindowsDirs()
		wanted[0].dirs, wanted[0].fix = []string{git + `\Git\bin`}, "install Git for Windows: commands run in its "+
			"bash, else in PowerShell"
		wanted[1].dirs = []string{git + `\Git\cmd`}
	}
	if m.Config.Read.PDF {
		install := "install poppler-utils: without it read_file shows no PDF files"
		if runtime.GOOS == "darwin" {
			install = strings.Replace(install, "poppler-utils", "poppler", 1)
		}
		wanted = append(wanted, wanted[1])
		wanted[2].names, wanted[2].dirs = []string{"pdfinfo", "pdftotext", "pdftoppm"}, m.system().poppler
		wanted[2].fix = install
	}
	var out []Finding
	for _, p := range wanted {
		var found, missing []string
		for _, name := range p.names {
			if path := programIn(strings.Join(p.dirs, string(filepath.ListSeparator)), name); path != "" {
				found = append(found, path)
			} else {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			out = append(out, Finding{"programs", p.level,
				strings.Join(missing, ", ") + " not found in " + strings.Join(p.dirs, ", "), p.fix})
			continue
		}
		out = append(out, Finding{"programs", OK, strings.Join(found, ", "), ""})
	}
	return append(out, Finding{"programs", OK, "PATH of commands: " + valueOf(m.commandEnv(), "PATH"), ""})
}

// programIn finds a program in the directories of a PATH; "": it is in none. Relative directories do not count.
func programIn(path, name string) string {
	names := []string{name}
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		names = []string{name + ".exe", name + ".cmd", name + ".bat"}
	}
	for _, dir := range filepath.SplitList(path) {
		for _, n := range names {
			if at := filepath.Join(dir, n); filepath.IsAbs(dir) && runnable(at) {
				return at
			}
		}
	}
	return ""
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0)
}

// environment lists what commands get of this environment, and what they do not: a program that finds no login there
// says anything but that.
func (m Machine) environment(env []string) []Finding {
	var out []Finding
	if names := sandbox.Passed(env); len(names) > 0 {
		out = append(out, Finding{"env", OK, "commands get: " + strings.Join(names, ", "), ""})
	}
	var settable, never []string
	for _, name := range sandbox.Withheld(env) {
		if slices.Contains(m.Config.KeyEnvs(), name) {
			continue // that is what the operator wants
		}
		if sandbox.Never(name) {
			never = append(never, name)
		} else {
			settable = append(settable, name)
		}
	}
	if len(settable) > 0 {
		out = append(out, Finding{"env", Note, "commands do not get: " + strings.Join(settable, ", "),
			`to pass one on: shell.env_allow = ["NAME"], or shell.env_allow_secret for one that holds a secret`})
	}
	if len(never) > 0 {
		out = append(out, Finding{"env", Note, "commands never get: " + strings.Join(never, ", "),
			"set what you need of them in shell.init_file"})
	}
	return out
}

// hooks looks for the programs of hooks, as they are looked for when they run.
func (m Machine) hooks(env []string) []Finding {
	var out []Finding
	for _, h := range m.Config.Hooks.Entries {
		if f, ok := backend("hooks", "the hook "+h.Event, h.Origin, h.Command, env); !ok {
			out = append(out, f)
		}
	}
	if n := len(m.Config.Hooks.Entries); n > 0 && len(out) == 0 {
		out = append(out, Finding{"hooks", OK, fmt.Sprintf("the programs of %d hooks are there", n), ""})
	}
	return out
}

// backends looks at what answers for codehand where it does not itself: the classifier, the
// endpoint of web_search, and who executes sub-agents.
func (m Machine) backends(env []string) []Finding {
	return append(append(m.classifier(env), m.webSearch()...), m.agents(env))
}

// agents says who executes sub-agents, and what keeps it from that.
func (m Machine) agents(env []string) Finding {
	a := m.Config.Tools.Agent
	only := func(backend string) bool { return a.Backend == config.AgentAuto || a.Backend == backend }
	switch {
	case a.API.Configured() && only("api"):
		if _, err := a.API.Key(); err != nil {
			return Finding{"backends", Fail, "sub-agents: " + err.Error(),
				"correct agent.api.key_env or agent.api.key_file"}
		}
		return Finding{"backends", OK, "sub-agents: the model " + a.API.Model + " behind the API " +
			cmp.Or(a.API.BaseURL, "of "+a.API.Provider), ""}
	case len(a.Command.Argv) > 0 && only("command"):
		const key = "agent.command.argv"
		f, ok := backend("backends", key, m.Config.Origin(key), a.Command.Argv, env)
		if ok && !ignoresWorkspace(a.Command.Argv) {
			return Finding{"backends", Note, "sub-agents: " + a.Command.Argv[0] + ", outside of the sandbox; " +
				"files of a workspace (settings, hooks, MCP servers, plugins) may make it run their programs there",
				"use a line of docs/agents.md, or make sure that it obeys no files of the directory it works in"}
		}
		if ok {
			f = Finding{"backends", OK, "sub-agents: " + a.Command.Argv[0] + ", outside of the sandbox", ""}
		}
		return f
	case a.Sampling && only("sampling"):
		return Finding{"backends", OK,
			"sub-agents: the client's model, where the client offers it (sampling.tools)", ""}
	}
	return Finding{"backends", Note, "sub-agents: nobody executes them, so agent answers with a brief",
		"set agent.api or agent.command if you want them"}
}

// webSearch says which endpoint web_search asks, and whether its key is there. It asks nothing: a search costs.
func (m Machine) webSearch() []Finding {
	if !m.Config.Web.Search.On() {
		return []Finding{{"backends", Note, "web_search: no endpoint is configured, so there is no such tool",
			"set web.search.kind if you want it"}}
	}
	o, err := m.Config.SearchEndpoint()
	if err != nil {
		return []Finding{{"backends", Fail, "web_search: " + err.Error(), "name a file of certificates in PEM form"}}
	}
	e, err := search.New(o)
	if err != nil { // only of a Config that Load did not make
		return []Finding{{"backends", Fail, "web_search: " + err.Error(), "see codehand help settings, web.search"}}
	}
	if err := e.Key(); err != nil {
		return []Finding{{"backends", Fail, "web_search cannot ask " + e.Name() + ": " + err.Error(),
			"put the key there, for this user alone (chmod 600), or name another place with web.search.key_env or " +
				"web.search.key_file"}}
	}
	return []Finding{{"backends", OK, "web_search asks " + e.Name(), ""}}
}

// classifier looks at what decides in mode auto.
func (m Machine) classifier(env []string) []Finding {
	const key = "permissions.classifier"
	command := m.Config.Permissions.Classifier
	if len(command) == 0 {
		return []Finding{{"backends", Note, key + " is not configured, so there is no mode auto", "set " + key +
			" to the command that decides, if you want that mode"}}
	}
	f, ok := backend("backends", key, m.Config.Origin(key), command, env)
	if ok {
		f = Finding{"backends", OK, key + ": " + command[0], ""}
	}
	return []Finding{f}
}

// backend says whether the program of a command can be run; if not, what is wrong.
func backend(id, what, origin string, command, env []string) (f Finding, ok bool) {
	if len(command) == 0 {
		return Finding{}, true
	}
	found := programIn(valueOf(env, "PATH"), command[0])
	if filepath.IsAbs(command[0]) && runnable(command[0]) {
		found = command[0]
	}
	if found != "" {
		return Finding{}, true
	}
	return Finding{id, Fail, fmt.Sprintf("%s: the program of %s cannot be run: %s", origin, what, command[0]),
		"give the absolute path of a program, and make it executable"}, false
}

// desktop names what commands on stdio reach of the person who runs doctor.
func desktop(cfg config.Config, r sandbox.Report) []string {
	if cfg.Sandbox.Network != config.NetworkOn || r.Level < sandbox.LevelKernel {
		return nil
	}
	gaps := confine.DesktopGaps(cfg.Home,
		sandbox.Environ(sandbox.EnvOptions{Personal: true, Display: cfg.Sandbox.Display}))
	if cfg.Sandbox.Git == config.GitOn && r.Level == sandbox.LevelFull {
		gaps = append(gaps, confine.CredentialsGap)
	}
	return gaps
}

// sandbox probes how far commands are confined here, and says what is missing.
func (m Machine) sandbox(ctx context.Context) Finding {
	cfg := m.Config
	if cfg.Sandbox.Policy == config.SandboxOff {
		return Finding{Level: Warn,
			Text: "level 0: sandbox.policy is off, and commands run with all rights of your user",
			Fix:  "remove sandbox.policy = \"off\", or use only roots whose programs you would run yourself"}
	}
	dir, err := config.OpenState(cfg.StateDir)
	if err != nil {
		return Finding{Level: Warn, Text: "not probed, since the state directory cannot be used",
			Fix: "see the finding about state"}
	}
	r := m.system().probe(ctx, dir)
	f := Finding{Level: OK, Text: fmt.Sprintf("level %d: %s", r.Level, LevelText(r.Level))}
	if len(r.Gaps) > 0 || r.Ungrouped != "" {
		f.Level = Note
	}
	if len(r.Gaps) > 0 {
		f.Text += "; not kept: " + strings.Join(r.Gaps, ", ")
	}
	if open := desktop(m.Config, r); len(open) > 0 {
		f.Text += "; open to commands on stdio while sandbox.network is on: " + strings.Join(open, ", ")
	}
	if r.Ungrouped != "" {
		f.Text += "; memory is not limited: " + r.Ungrouped
	}
	if r.Failed != nil {
		f.Level, f.Fix = Note, r.Failed.Remedy
		f.Text += fmt.Sprintf("; level %d failed: %s", r.Failed.Level, r.Failed.Probe)
	}
	if r.Level < sandbox.LevelKernel || int(r.Level) < cfg.Sandbox.MinLevel {
		if f.Level = Warn; cfg.Sandbox.Policy == config.SandboxRequired {
			f.Level = Fail
		}
	}
	return f
}

// LevelText says what a level means for commands.
func LevelText(l sandbox.Level) string {
	switch l {
	case sandbox.LevelFull:
		return "a command sees the roots, the system's programs and nothing else"
	case sandbox.LevelKernel:
		return "a command changes files in the roots only, and reaches no other process"
	case sandbox.LevelLimits:
		return "commands run with the rights of your user account; codehand filters their environment and ends their " +
			"whole process tree, and no kernel sandbox confines them"
	}
	return "commands run with the rights of your user account, and nothing confines them"
}

// leastFiles is how many open files a server of one client can need: a search alone opens some hundred.
const leastFiles = 1024

// limits are those that the system sets this process, and the processes that it starts.
func (m Machine) limits() []Finding {
	files, ok := m.system().openFiles()
	if !ok {
		return nil
	}
	f := Finding{"limits", OK, fmt.Sprintf("%d open files", files), ""}
	if files < leastFiles {
		f.Level = Warn
		f.Fix = fmt.Sprintf("raise it where the client starts: ulimit -n %d, or LimitNOFILE= in a systemd unit",
			4*leastFiles)
	}
	for _, l := range []struct{ path, text string }{
		{"/proc/sys/fs/inotify/max_user_watches", "watches"},
		{"/proc/sys/user/max_user_namespaces", "user namespaces"},
	} {
		if text, err := m.system().readFile(l.path); err == nil {
			f.Text += fmt.Sprintf(", %s %s", strings.TrimSpace(string(text)), l.text)
		}
	}
	return []Finding{f}
}

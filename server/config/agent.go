package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"codehand/tools/agent"
	"codehand/tools/keys"
)

// Agent is how sub-agents are executed.
type Agent struct {
	Backend     string   // brief, sampling, command, api, auto
	Dirs        []string // of types of the operator, absolute
	MaxDepth    int
	MaxParallel int // of one principal
	MaxPerHour  int // likewise, in serve; 0: no limit
	MaxTurns    int
	MaxTokens   int
	MaxTime     time.Duration
	TurnTokens  int  // of one answer of the model
	MaxOutput   int  // characters of a report
	Sampling    bool // the client's model may be used
	API         AgentAPI
	Command     AgentCommand
	Depth       int // of this process below other agents, by the environment
}

// AgentAPI is the model behind an API. It is configured if it has a provider and a model.
type AgentAPI struct {
	Provider string // anthropic, openai; "": there is none
	BaseURL  string // without a slash at its end; "": the provider's own
	Model    string
	Models   []string // others that a call may name
	KeyEnv   string   // the variable that holds the key; "": none does
	KeyFile  string   // absolute; the file that holds it; "": none does

	lookup func(name string) string // of the environment that the settings were made from
}

// AgentCommand is the command line of another agent.
type AgentCommand struct {
	Argv, Resume []string // the program is absolute; empty: there is none
	EnvAllow     []string // variables that it gets besides the usual ones
}

// The values of agent.backend.
const (
	AgentAuto     = "auto"
	agentBrief    = "brief"
	agentSampling = "sampling"
	agentCommand  = "command"
	agentAPI      = "api"
)

// agentTable is about sub-agents.
func agentTable(c *Config) []setting {
	a := &c.Tools.Agent
	return []setting{
		{"agent.backend",
			"who executes sub-agents: auto (the first that is configured), api, command, sampling or brief (nobody: " +
				"the answer is the task, to be done by the caller)", operatorOnly,
			choice{&a.Backend, []string{agentBrief, agentSampling, agentCommand, agentAPI, AgentAuto}}},
		{"agent.dirs", "directories of agent types (NAME.md); they win over those of the user and of projects",
			operatorOnly, dirs{&a.Dirs}},
		{"agent.max_depth", "how deep sub-agents may start others, 0: none may be started", narrower,
			number{&a.MaxDepth, 0, 3, false}},
		{"agent.max_parallel", "most sub-agents of one person at once; 16 more wait", narrower,
			number{&a.MaxParallel, 1, 16, false}},
		{"agent.max_per_hour", "most sub-agents that one person starts within an hour in serve, 0 for no limit",
			operatorOnly, number{&a.MaxPerHour, 0, 100_000, true}},
		{"agent.max_turns", "most answers of the model for one task", narrower, number{&a.MaxTurns, 1, 1000, false}},
		{"agent.max_tokens", "most tokens for one task", narrower, number{&a.MaxTokens, 1000, 100_000_000, false}},
		{"agent.turn_tokens", "most tokens of one answer of the model", narrower,
			number{&a.TurnTokens, 256, 200_000, false}},
		{"agent.max_output",
			"most characters of the report of sub-agents; a longer one is kept in a file and shown in part", narrower,
			number{&a.MaxOutput, 1000, 160_000, false}},
		{"agent.max_time", "most time for one task", operatorOnly,
			period{&a.MaxTime, time.Second, 24 * time.Hour, nil}},
		{"agent.sampling", "whether the client's own model may execute sub-agents, if the client offers it (sampling)",
			operatorOnly, toggle{&a.Sampling}},
		{"agent.api.provider", "format of the model's API: anthropic or openai; empty: there is none", operatorOnly,
			term{&a.API.Provider, provider}},
		{"agent.api.base_url", "URL of a compatible API; empty: the provider's own", operatorOnly,
			term{&a.API.BaseURL, baseURL}},
		{"agent.api.model", "the model", operatorOnly, text{&a.API.Model}},
		{"agent.api.models", "other models that a call may name", operatorOnly, list{&a.API.Models, checkModel}},
		{"agent.api.key_env", "environment variable that holds the key; commands and agents never get it",
			operatorOnly, term{&a.API.KeyEnv, envName}},
		{"agent.api.key_file", "file that holds the key, readable by its owner alone", operatorOnly,
			file{&a.API.KeyFile}},
		{"agent.command.argv",
			"program and arguments of another agent; {prompt}, {model}, {cwd}, {empty}, {mcp_config} and {mcp_toml} " +
				"are filled in, without {prompt} the task is its input", operatorOnly, command{&a.Command.Argv}},
		{"agent.command.argv_resume", "likewise, for a message to a sub-agent that has ended; empty: there is no way",
			operatorOnly, command{&a.Command.Resume}},
		{"agent.command.env_allow", "environment variables that this agent gets besides the usual ones, also secrets",
			operatorOnly, list{&a.Command.EnvAllow, checkEnvPattern}},
	}
}

// defaultAgent is what holds if nothing is said.
func defaultAgent() Agent {
	return Agent{
		Backend: AgentAuto, MaxDepth: 1, MaxParallel: 4, MaxPerHour: 40, MaxTurns: 50, MaxTokens: 500_000,
		MaxTime: time.Hour, TurnTokens: 8192, MaxOutput: 32_000,
	}
}

func provider(s string, _ input) (string, error) {
	if s != "anthropic" && s != "openai" {
		return "", errors.New("must be anthropic or openai")
	}
	return s, nil
}

// baseURL reads the address of an API. A key goes there, so it is https but on this machine.
func baseURL(s string, _ input) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must be a URL with scheme and host, without user, query and fragment")
	case u.Scheme == "https", u.Scheme == "http" && loopbackHost(u.Hostname()):
		return strings.TrimRight(s, "/"), nil
	}
	return "", errors.New("must begin with https://, or be http:// on this machine (localhost)")
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

func envName(s string, _ input) (string, error) {
	if !variableName().MatchString(s) {
		return "", errors.New("must be the name of an environment variable, not the key itself")
	}
	return s, nil
}

func checkModel(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' }) {
		return errors.New("must be the name of a model")
	}
	return nil
}

// checkAgent finds what does not go together. It runs when all sources were read.
func checkAgent(l *loader) {
	a := &l.config.Tools.Agent
	for key, argv := range map[string][]string{
		"agent.command.argv": a.Command.Argv, "agent.command.argv_resume": a.Command.Resume,
	} {
		if flag := agent.UnsafeFlag(argv); flag != "" {
			l.problems.add(l.config.Origin(key), fmt.Sprintf(
				"%s: %s lets the agent act without asking anybody; codehand starts no such agent: take it out, and "+
					"let the agent work through the tools of codehand", key, flag))
		}
	}
	switch {
	case a.API.KeyEnv != "" && a.API.KeyFile != "":
		l.problems.add(l.config.Origin("agent.api.key_file"), "agent.api: give key_env or key_file, not both")
	case (a.API.Provider == "") != (a.API.Model == ""):
		l.problems.add(l.config.Origin("agent.api.provider"), "agent.api: needs both provider and model")
	case a.Backend == agentAPI && a.API.Provider == "":
		l.problems.add(l.config.Origin("agent.backend"),
			"agent.backend: api needs agent.api.provider and agent.api.model")
	case a.Backend == agentCommand && len(a.Command.Argv) == 0:
		l.problems.add(l.config.Origin("agent.backend"), "agent.backend: command needs agent.command.argv")
	case a.Backend == agentSampling && !a.Sampling:
		l.problems.add(l.config.Origin("agent.backend"), "agent.backend: sampling needs agent.sampling = true")
	}
	if n, ok := l.env[agent.DepthVariable]; ok && n != "" {
		a.Depth = 1000 // an unreadable depth starts no sub-agent
		if d, err := parseDepth(n); err == nil {
			a.Depth = d
		}
	}
}

func parseDepth(s string) (int, error) {
	if len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("no depth")
	}
	n := 0
	for _, r := range s {
		n = 10*n + int(r-'0')
	}
	return n, nil
}

// Configured says whether there is a model behind an API.
func (a AgentAPI) Configured() bool { return a.Provider != "" && a.Model != "" }

// Key returns the key; "" and no error: there is none. Errors never hold any of it.
func (a AgentAPI) Key() (string, error) {
	key, err := keys.Source{Env: a.KeyEnv, Lookup: a.lookup, File: a.KeyFile}.Read()
	if err != nil {
		return "", fmt.Errorf("agent.api: %w", err)
	}
	return key, nil
}

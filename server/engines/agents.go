package engines

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/config"
	"codehand/server/listen"
	"codehand/tools/agent"
	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
	"codehand/tools/keys"
	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// agentQueue is how many sub-agents of a principal wait for others at most.
const agentQueue = 16

// handed is what sub-agents get of the server.
type handed struct {
	model loop.Model         // takes the place of that of agent.api, for tests; nil: none does
	tools func() []tool.Tool // those that there are, when an agent starts
	roots func() []string    // of the person whose process this is, for the command line of another agent
}

// agents makes what runs the sub-agents of this process. A command line of another agent gets the tools of this server,
// so it is used only where it may have all of this process's rights.
func (o Options) agents(h handed) (*agent.Runner, error) {
	c := o.Config.Tools.Agent
	r := agent.Options{
		Auto: c.Backend == config.AgentAuto, Backend: agent.Backend(c.Backend), Sampling: c.Sampling, Depth: c.Depth,
		Limits: agent.Limits{
			Depth: c.MaxDepth, Parallel: c.MaxParallel, Queue: agentQueue, Turns: c.MaxTurns, Tokens: c.MaxTokens,
			Time: c.MaxTime, MaxOutput: c.TurnTokens,
		},
	}
	if o.Serve {
		r.PerHour = c.MaxPerHour
	}
	r.Tools = func() []agent.Offered { return offered(h.tools()) }
	if err := agentModels(&r, h.model, o); err != nil {
		return nil, err
	}
	if why := noAgentCommand(o); len(c.Command.Argv) > 0 && why != "" {
		o.Log.Warn("agent.command is not used", "reason", why)
	} else if len(c.Command.Argv) > 0 {
		r.Command = agentCommand(h, o)
	}
	return agent.New(r), nil
}

// offered are the tools as sub-agents are given them. A dispatcher only leads to the others.
func offered(all []tool.Tool) []agent.Offered {
	var offers []agent.Offered
	for _, t := range all {
		if !t.Dispatches() {
			offers = append(offers, t.Offered())
		}
	}
	return offers
}

// agentModels opens the models behind an API. A key that cannot be had is no reason not to start: each task says so.
func agentModels(r *agent.Options, instead loop.Model, o Options) error {
	c := o.Config.Tools.Agent.API
	switch {
	case instead != nil:
		r.Model, r.Models = instead, []string{"test"}
		return nil
	case !c.Configured():
		return nil
	}
	r.Models = append([]string{c.Model}, c.Models...)
	if _, err := c.Key(); err != nil {
		o.Log.Warn("sub-agents have no model", "error", err)
	}
	others := map[string]loop.Model{}
	var idle []func()
	for _, name := range r.Models {
		m, release, err := openModel(c, name)
		if err != nil {
			return fmt.Errorf("agent.api: %w", err)
		}
		others[name], idle = m, append(idle, release)
	}
	r.Model, r.Pick = others[c.Model], func(name string) loop.Model { return others[name] }
	r.Release = func() {
		for _, release := range idle {
			release()
		}
	}
	return nil
}

// noAgentCommand says why the command line of another agent is not started; "": it may be. It runs with the rights of
// this process, so it is for the one person whose process this is.
func noAgentCommand(o Options) string {
	if o.Serve {
		if why := listen.WhyShared(o.Config); why != "" {
			return "it runs with all rights of this server, and others can connect: " + why
		}
	}
	return ""
}

// shortestKey is how long a value is at least that is taken for a key: "none" and the like are words.
const shortestKey = 8

// agentCommand is the command line of another agent, with this server for its tools.
func agentCommand(h handed, o Options) agent.Command {
	c := o.Config.Tools.Agent.Command
	env := func() []string {
		return sandbox.Environ(sandbox.EnvOptions{
			Roots:       slices.Concat(h.roots(), o.Config.Sandbox.Writable),
			Allow:       slices.Concat(o.Config.Shell.EnvAllow, c.EnvAllow),
			AllowSecret: c.EnvAllow, Withhold: o.Config.KeyEnvs(), Personal: true,
		})
	}
	return agent.Command{
		Argv: c.Argv, Resume: c.Resume, Dir: filepath.Join(o.Config.StateDir, "agents"), Env: env,
		Hide: func(text string) string {
			for _, entry := range env() {
				name, value, _ := strings.Cut(entry, "=")
				if len(value) >= shortestKey && sandbox.SoundsSecret(name) && sandbox.Matches(c.EnvAllow, name) {
					text = keys.Redact(text, value)
				}
			}
			return text
		},
		Server: func(p agent.Parent, without []string) []string {
			own, err := os.Executable()
			if err != nil {
				own = "codehand"
			}
			if o.Serve {
				people := o.Config.Principals
				without = slices.Concat(without, people.Default.Deny, people.Named[p.Principal].Deny)
			}
			argv := append([]string{own, "stdio"}, o.Config.Handed(without)...)
			// The other agent runs without a person, so its own dialog is nobody's word.
			argv = append(argv, "--permissions-mode="+p.Mode.String(), "--permissions-ask-fallback=deny")
			return append(argv, p.Roots...)
		},
	}
}

// openModel makes the client of a model behind an API. The key is read at each request, so that it may change. release
// closes its idle connections.
func openModel(c config.AgentAPI, name string) (m loop.Model, release func(), err error) {
	client, err := models.New(models.Options{
		Provider: c.Provider, BaseURL: c.BaseURL, Model: name,
		Key: c.Key,
	})
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}

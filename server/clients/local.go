package clients

import (
	"cmp"
	"maps"
	"slices"
)

// This file has what clients are told that start codehand themselves.

// start is the entry of a server that the client starts.
func start(l Launch) entry {
	return entry{Command: cmp.Or(l.Command, ours), Args: localArgs(l), Env: environment(l)}
}

func localArgs(l Launch) []string { return append([]string{"stdio"}, l.Roots...) }

// environment is never nil, since some clients demand the key.
func environment(l Launch) map[string]string {
	env := map[string]string{}
	maps.Copy(env, l.Env)
	return env
}

// vscodeLocal is told the type of each server.
func vscodeLocal(l Launch) string {
	return servers("servers", func(l Launch) entry {
		e := start(l)
		e.Type = "stdio"
		return e
	})(l)
}

// opencodeLocal has the program and its arguments in one list.
func opencodeLocal(l Launch) string {
	type entry struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment"`
		Enabled     bool              `json:"enabled"`
	}
	e := entry{"local", append([]string{cmp.Or(l.Command, ours)}, localArgs(l)...), environment(l), true}
	return text(map[string]map[string]entry{"mcp": {ours: e}})
}

func codexLocal(l Launch) string {
	out := "[mcp_servers.codehand]\ncommand = " + quoted(cmp.Or(l.Command, ours)) + "\nargs = " + line(localArgs(l)) +
		"\n" + codexTimes
	if len(l.Env) > 0 {
		out += "\n[mcp_servers.codehand.env]\n"
		for _, name := range slices.Sorted(maps.Keys(l.Env)) {
			out += quoted(name) + " = " + quoted(l.Env[name]) + "\n"
		}
	}
	return out
}

func continueLocal(l Launch) string {
	out := continueHead + "mcpServers:\n  - name: codehand\n    command: " + quoted(cmp.Or(l.Command, ours)) +
		"\n    args: " + line(localArgs(l)) + "\n"
	if len(l.Env) > 0 {
		out += "    env: " + line(l.Env) + "\n"
	}
	return out
}

func gooseLocal(l Launch) string {
	return "extensions:\n  codehand:\n    name: codehand\n    type: stdio\n    cmd: " +
		quoted(cmp.Or(l.Command, ours)) + "\n    args: " + line(localArgs(l)) + "\n    envs: " +
		line(environment(l)) + "\n    enabled: true\n    timeout: 300\n"
}

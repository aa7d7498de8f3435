package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// An Endpoint is what clients are to be connected with over HTTP.
type Endpoint struct {
	URL      string // of /mcp
	TokenEnv string // variable that holds the token where the client runs; "": none is needed
	Command  string // absolute path of codehand, for clients that are told a program; "": its name, to be found on PATH
}

// A Launch is how clients are to start codehand over stdio.
type Launch struct {
	Command string            // absolute path of codehand; "": its name, to be found on PATH
	Roots   []string          // directories to work in, absolute or a variable of the client
	Env     map[string]string // for every client; nil: none
	Path    string            // PATH for clients with windows, which have none of use; "": not told
}

// A Snippet is what a person pastes into a file of one client, and what codehand install writes there.
type Snippet struct {
	Client string // id: claude-code
	Files  Files
	Other  []Files // where the file also may be; what a system does not have is ""
	Twin   Files   // a second file that must say the same, if its directory is there; zero: none
	Roots  Rooting
	Text   string // the whole file if it was empty, else to be merged into it; ends in a line feed
	Note   string // what else must be known; "": nothing
}

// A Rooting is where a client's server finds the directories that it works in.
type Rooting int

// The ways. The zero value is the one that asks for most.
const (
	RootNeeded   Rooting = iota // it is started anywhere, so its arguments must name one
	RootOptional                // it says where it works only sometimes
	RootVariable                // WorkspaceFolder in its arguments stands for the open project
	RootProject                 // it is started in the project
)

// WorkspaceFolder is how clients of RootVariable write the open project.
const WorkspaceFolder = "${workspaceFolder}"

// Files are the places of a client's file, as people write them.
type Files struct {
	Linux, MacOS, Windows string
	Project               string // below a project; "": there is none
}

// On returns the place for an operating system as Go names it. All but darwin and windows are as Linux.
func (f Files) On(goos string) string {
	switch goos {
	case "darwin":
		return f.MacOS
	case "windows":
		return f.Windows
	}
	return f.Linux
}

// Snippets returns one for each client that reads a file, in a fixed order.
func Snippets(e Endpoint) []Snippet {
	var out []Snippet
	for _, r := range tellable {
		s := r.snippet()
		s.Note = r.note
		if r.always || r.bridge != nil && e.TokenEnv != "" {
			s.Text = r.bridge(e)
		} else {
			s.Text = r.text(e)
		}
		out = append(out, s)
	}
	return out
}

// Local returns the snippets of clients that start codehand themselves, in the order of Snippets.
func Local(l Launch) []Snippet {
	var out []Snippet
	for _, r := range tellable {
		s, its := r.snippet(), l
		if !r.always {
			s.Note = r.note // the others have none but about remote servers
		}
		if r.gui && l.Path != "" {
			its.Env = map[string]string{"PATH": l.Path}
			maps.Copy(its.Env, l.Env)
		}
		s.Text = r.local(its)
		out = append(out, s)
	}
	return out
}

// snippet is what does not depend on the server.
func (r told) snippet() Snippet {
	return Snippet{Client: r.id, Files: r.files, Other: r.other, Twin: r.twin, Roots: r.roots}
}

// An entry is one server in a client's JSON. The fields stand in the order in which people write them.
type entry struct {
	Source      string            `json:"source,omitzero"`
	Type        string            `json:"type,omitzero"`
	URL         string            `json:"url,omitzero"`
	ServerURL   string            `json:"serverUrl,omitzero"`
	HTTPURL     string            `json:"httpUrl,omitzero"`
	Command     string            `json:"command,omitzero"`
	Args        []string          `json:"args,omitzero"`
	Tools       []string          `json:"tools,omitzero"`
	Headers     map[string]string `json:"headers,omitzero"`
	Env         map[string]string `json:"env,omitzero"`
	Enabled     *bool             `json:"enabled,omitzero"`
	Disabled    *bool             `json:"disabled,omitzero"`
	AutoApprove []string          `json:"autoApprove,omitzero"`
	Timeout     int               `json:"timeout,omitzero"` // seconds
}

func plain(e Endpoint) entry { return entry{URL: e.URL} }

// command is the entry of our bridge.
func command(e Endpoint) entry {
	return entry{Command: program(e), Args: bridgeArgs(e), Env: map[string]string{}}
}

// program is what starts our bridge. Programs with windows have no PATH of use, so it is a path where that is known.
func program(e Endpoint) string { return cmp.Or(e.Command, ours) }

func bridgeArgs(e Endpoint) []string {
	args := []string{"connect", e.URL}
	if e.TokenEnv != "" {
		args = append(args, "--token-env", e.TokenEnv)
	}
	return args
}

// bearer is the header with the client's own way to name a variable; nil: no token is needed.
func bearer(e Endpoint, variable string) map[string]string {
	if e.TokenEnv == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + fmt.Sprintf(variable, e.TokenEnv)}
}

// ours is the name of our program, and of our entry in every file.
const ours = "codehand"

// servers is a file with our entry below key.
func servers[T Launch | Endpoint](key string, make func(T) entry) func(T) string {
	return func(to T) string {
		return text(map[string]map[string]entry{key: {ours: make(to)}})
	}
}

// vscode asks for the token at the first use and keeps it itself.
func vscode(e Endpoint) string {
	type input struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		Description string `json:"description"`
		Password    bool   `json:"password"`
	}
	var file struct {
		Servers map[string]entry `json:"servers"`
		Inputs  []input          `json:"inputs,omitzero"`
	}
	ours := entry{Type: "http", URL: e.URL}
	if e.TokenEnv != "" {
		ours.Headers = map[string]string{"Authorization": "Bearer ${input:codehand}"}
		file.Inputs = []input{{"promptString", "codehand", "codehand token", true}}
	}
	file.Servers = map[string]entry{"codehand": ours}
	return text(file)
}

// text is v as JSON in one line. What comes here holds nothing that JSON cannot say.
func text[T any](v T) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // an & in an address stays readable
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return b.String()
}

// quoted is s in double quotes, as JSON, TOML and YAML read it.
func quoted(s string) string { return line(s) }

// line is v as JSON without the end of the line.
func line[T any](v T) string { return strings.TrimSuffix(text(v), "\n") }

// codex waits longer than it usually does, because a call may run for minutes.
func codex(e Endpoint) string {
	out := "[mcp_servers.codehand]\nurl = " + quoted(e.URL) + "\n"
	if e.TokenEnv != "" {
		out += "bearer_token_env_var = " + quoted(e.TokenEnv) + "\n"
	}
	return out + codexTimes
}

const codexTimes = "tool_timeout_sec = 600\nstartup_timeout_sec = 20\n"

// continueHead is without what Continue refuses a file.
const continueHead = "name: codehand\nversion: \"1.0.0\"\nschema: \"v1\"\n"

func continueYAML(e Endpoint) string {
	return continueHead + "mcpServers:\n  - name: codehand\n    type: streamable-http\n    url: " + quoted(e.URL) + "\n"
}

func continueBridge(e Endpoint) string {
	return continueHead + "mcpServers:\n  - name: codehand\n    command: " + quoted(program(e)) + "\n    args: " +
		line(bridgeArgs(e)) + "\n"
}

// goose replaces the names in headers that stand in env_keys.
func goose(e Endpoint) string {
	out := "extensions:\n  codehand:\n    name: codehand\n    type: streamable_http\n    uri: " + quoted(e.URL) + "\n"
	if e.TokenEnv != "" {
		out += "    env_keys: [" + quoted(e.TokenEnv) + "]\n    headers:\n      Authorization: " +
			quoted("Bearer ${"+e.TokenEnv+"}") + "\n"
	}
	return out + "    enabled: true\n    timeout: 300\n"
}

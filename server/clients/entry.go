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

// Texts are what a client's file says of codehand. Each text is the whole file if it was empty, else it is merged
// into what is there; it ends in a line feed. A token's value is never part of it: where a header cannot name a
// variable, our bridge reads it instead.
type Texts struct {
	Local func(Launch) string // the client starts codehand itself; every client with Files has it
	// Remote is for a server that runs already; nil: the client reaches it only through Bridge.
	Remote func(Endpoint) string
	Bridge func(Endpoint) string // likewise through `codehand connect`, for tokens; nil: Remote names the variable, too
	// Link is an address that makes the client add codehand, once a person has opened it and agreed. entry is that of
	// Local or Remote, by its keys. nil: there is none.
	Link func(name string, entry map[string]any) string

	Note       string // what else must be known; "": nothing
	RemoteNote string // likewise of a server that runs already, besides Note
}

// A Snippet is what a person pastes into the file of one client, and what codehand install writes there.
type Snippet struct {
	Client
	Text string // as Texts says it
	Note string // what else must be known; "": nothing
	Adds string // the address of Link for a server that runs already; "": none, or the client is to send a token
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

// Snippets returns one for each client that reads a file, in the order of WithFiles.
func Snippets(e Endpoint) []Snippet {
	var out []Snippet
	for _, c := range WithFiles() {
		s := Snippet{Client: c, Note: cmp.Or(c.Texts.RemoteNote, c.Texts.Note)}
		if c.Texts.Remote == nil || c.Texts.Bridge != nil && e.TokenEnv != "" {
			s.Text = c.Texts.Bridge(e)
		} else {
			s.Text = c.Texts.Remote(e)
			if c.Texts.Link != nil && e.TokenEnv == "" {
				s.Adds = c.Texts.Link("codehand", entryOf(s.Text))
			}
		}
		out = append(out, s)
	}
	return out
}

// entryOf is our entry in the text of a client's file, by its keys. It must be JSON with one table of servers.
func entryOf(text string) map[string]any {
	var file map[string]map[string]map[string]any
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		panic(err) // it was just written by the client's own row
	}
	for _, servers := range file {
		return servers["codehand"]
	}
	return nil
}

// Local returns the snippets of clients that start codehand themselves, in the order of WithFiles.
func Local(l Launch) []Snippet {
	var out []Snippet
	for _, c := range WithFiles() {
		its := l
		if c.Start.NoPATH && l.Path != "" {
			its.Env = map[string]string{"PATH": l.Path}
			maps.Copy(its.Env, l.Env)
		}
		out = append(out, Snippet{Client: c, Text: c.Texts.Local(its), Note: c.Texts.Note})
	}
	return out
}

// home returns the places of a file that lies in the same directory below each user's home.
func home(path, project string) Files {
	return Files{"~/" + path, "~/" + path, `%USERPROFILE%\` + strings.ReplaceAll(path, "/", `\`), project}
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

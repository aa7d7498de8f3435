// Package clients has what we know of each MCP client: its profile, what people paste into its file, how it starts
// servers. A client is one file that bears its name and one line in all.
//
// A profile changes form only: limits, the tool list, timing. It never changes a permission, because it is found by the
// name that the client gives itself.
package clients

import "slices"

// all are the clients that have a page in docs/clients, in the order of its index, of install and of doctor. It never
// changes.
var all = []Client{
	claudeCode,
	claudeDesktop,
	vscode,
	vscodeInsiders,
	cursor,
	windsurf,
	zed,
	codex,
	gemini,
	copilot,
	opencode,
	cline,
	continueCLI,
	goose,
	lmStudio,
	junie,
	kiro,
	jetbrains,
	crush,
	claudeWeb,
	chatgpt,
	grok,
	leChat,
}

// A Client is what we know of one client. A zero column says that we know nothing of it, and what we do then is safe
// with every client.
type Client struct {
	// ID is what people write: claude-code. Its file here is claude_code.go, its page docs/clients/claude-code.md.
	ID    string
	Title string // its name for people
	Known string // how we know what stands here: "documented", or "measured, " and the version

	// Names are how it calls itself (clientInfo.name), in any case, by which its Profile is found. A trailing `*` makes
	// a name a prefix.
	Names   []string
	Profile Profile // zero: that of unknown clients

	Programs []string // by which it is known on PATH
	Schemes  []string // without a dot, in lower case, in the redirect URIs of its sign-in
	// Protects are names of files that decide what it runs, as tools/guarded reads them: a person allows each change.
	Protects []string

	Files Files   // where its file is; zero: it has none, and install and doctor do not know it
	Other []Files // where the file also may be; what a system does not have is ""
	Twin  Files   // a second file that must say the same, if its directory is there; zero: none
	Moved string  // the variable that moves the directory of Files; "": none
	Texts Texts   // what its file says of codehand

	Start     Start
	Expansion Expansion // how it replaces variables in its file; nil: we do not know
}

// WithFiles returns the clients that read a file, in a fixed order. What it holds is not to be changed.
func WithFiles() []Client {
	return slices.DeleteFunc(slices.Clone(all), func(c Client) bool { return c.Files == Files{} })
}

// MustRoot says whether codehand's entry must name a directory to work in.
func (c Client) MustRoot() bool { return c.Files != Files{} && c.Start.Roots == RootNeeded }

// TakesRoots says whether a client starts servers somewhere else than in the project, so that directories are named in
// its file.
func (c Client) TakesRoots() bool {
	return c.MustRoot() || c.Start.Roots == RootOptional
}

// Of returns the client of that ID. ok is false if there is none.
func Of(id string) (c Client, ok bool) {
	i := slices.IndexFunc(all, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// otherSchemes are those of clients of which we know nothing else.
var otherSchemes = []string{"raycast", "trae", "warp"}

// IsScheme says whether a scheme without a dot, in lower case, is one that a client has for itself.
func IsScheme(scheme string) bool {
	return slices.Contains(otherSchemes, scheme) ||
		slices.ContainsFunc(all, func(c Client) bool { return slices.Contains(c.Schemes, scheme) })
}

// A Start is how a client starts servers. The zero Start hands on all of the environment, in the project, and does not
// rely on that.
type Start struct {
	Roots  Rooting
	NoPATH bool                   // it has windows, so its own PATH is of no use
	Dir    string                 // "": the project
	InHome bool                   // an entry that is not the project's is started in the home directory, not in Dir
	Keeps  []string               // variables, in upper case; nil: all
	Drops  func(name string) bool // of a variable in upper case; nil: none
}

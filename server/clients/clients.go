// Package clients has a profile of each known MCP client, what people paste into its file, and what they pasted there.
//
// A profile changes form only: limits, the tool list, timing. It never changes a permission, because it is found by the
// name that the client gives itself.
package clients

import (
	"slices"
	"strings"
	"time"
)

// An ImagePolicy says what a client can do with images in a result. The zero value shows none.
type ImagePolicy int

// The policies.
const (
	ImagesAsText ImagePolicy = iota // a line with type, size, dimensions and path
	FirstImage                      // the first one only
	AllImages
)

// A Profile is what one client needs. The zero Profile is not usable; Find and Named never return it with ok.
type Profile struct {
	Name   string // of the profile: claude-code
	Runes  int    // most characters of one result; a tool's own cap counts when it is smaller
	Bytes  int    // likewise in bytes; 0: no limit of its own
	Lines  int    // likewise in lines; 0: no limit of its own
	Images ImagePolicy

	// DeferAll says that this client defers all tools by itself, so all of them are listed.
	DeferAll bool
	// Beat is how long a call stays silent before a heartbeat is sent.
	Beat time.Duration
	// Background is after what time a call with a progress token moves to the background; 0: the general setting.
	Background time.Duration
}

// usualBeat is the heartbeat of every profile so far: the shortest limit that we measured on a silent call is 60 s.
const usualBeat = 10 * time.Second

// short is for clients that give up on a call after 60 s, whatever we send.
const short = 45 * time.Second

// A row is a profile with the names of the clients that it is for. A trailing `*` makes a name a prefix.
type row struct {
	Profile
	names []string
}

// table is what was measured of the clients, and the safe guess for the rest. Limits keep a margin below the client's
// own, since its cut would remove our first line. The last row is for everybody else. It never changes.
var table = []row{
	{Profile{"claude-code", 50_000, 0, 0, AllImages, true, usualBeat, 0}, []string{"claude-code"}},
	{Profile{"codex", 10_000, 0, 0, AllImages, false, usualBeat, 0}, []string{"codex-mcp-client", "Codex"}},
	{Profile{"copilot-cli", 18_000, 19_000, 0, AllImages, false, usualBeat, 0},
		[]string{"copilot-cli", "github-copilot-developer"}},
	{Profile{"gemini", 38_000, 0, 0, AllImages, false, usualBeat, 0}, []string{"gemini-cli-mcp-client"}},
	{Profile{"opencode", 45_000, 48_000, 1_900, AllImages, false, usualBeat, 0}, []string{"opencode"}},
	{Profile{"cline", 7_500, 0, 0, ImagesAsText, false, usualBeat, short},
		[]string{"@cline/core", "Cline", "Roo-Code", "Kilo-Code"}},
	{Profile{"continue", 20_000, 0, 0, ImagesAsText, false, usualBeat, short},
		[]string{"continue-cli-client", "continue-client"}},
	{Profile{"claude-desktop", 20_000, 0, 0, AllImages, false, usualBeat, short}, []string{"claude-ai"}},
	{Profile{"vscode", 20_000, 0, 0, AllImages, false, usualBeat, 0},
		[]string{"Visual Studio Code*", "Visual-Studio-Code*"}},
	{Profile{"cursor", 20_000, 0, 0, AllImages, false, usualBeat, short}, []string{"cursor-vscode"}},
	{Profile{"windsurf", 20_000, 0, 0, AllImages, false, usualBeat, short}, []string{"windsurf*"}},
	{Profile{"zed", 20_000, 0, 0, AllImages, false, usualBeat, short}, []string{"Zed"}},
	{Profile{"jetbrains", 20_000, 0, 0, FirstImage, false, usualBeat, short}, []string{"JetBrains*"}},
	{Profile{"goose", 20_000, 0, 0, AllImages, false, usualBeat, 240 * time.Second}, []string{"goose"}},
	{Profile{"crush", 20_000, 0, 0, FirstImage, false, usualBeat, short}, []string{"crush"}},
	{Profile{"lm-studio", 8_000, 0, 0, AllImages, false, usualBeat, short}, []string{"lmstudio*"}},
	{Profile{"chatgpt", 20_000, 0, 0, AllImages, false, usualBeat, short}, []string{"ChatGPT"}},
	{Profile{"builder", 50_000, 0, 0, AllImages, false, usualBeat, 0},
		[]string{"inspector*", "mcp-inspector*", "codehand-call"}},
	{Profile{"default", 20_000, 0, 0, FirstImage, false, usualBeat, short}, nil},
}

// Find returns the profile for a client that calls itself name (clientInfo.name), in any case. An exact name goes
// before a prefix, and the longest prefix before shorter ones. Unknown or empty: the profile `default`, which is safe
// everywhere.
func Find(name string) Profile {
	best, length := table[len(table)-1].Profile, -1
	for _, r := range table {
		for _, n := range r.names {
			if fits, exact := match(n, name); exact {
				return r.Profile
			} else if fits && len(n) > length {
				best, length = r.Profile, len(n)
			}
		}
	}
	return best
}

func match(pattern, name string) (fits, exact bool) {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if !isPrefix {
		same := strings.EqualFold(pattern, name)
		return same, same
	}
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix), false
}

// Named returns the profile of that name (client.profile in the configuration). ok is false if there is none.
func Named(name string) (p Profile, ok bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return table[i].Profile, true
}

// Names lists the names that Named takes, in the order of the table.
func Names() []string {
	var names []string
	for _, r := range table {
		names = append(names, r.Name)
	}
	return names
}

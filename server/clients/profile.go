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

// A Profile is what one client needs. The zero Profile is not usable; Find never returns it, nor does Named with ok.
type Profile struct {
	Name   string // of the profile: claude-code
	Runes  int    // most characters of one result; a tool's own cap counts when it is smaller
	Bytes  int    // likewise in bytes; 0: no limit of its own
	Lines  int    // likewise in lines; 0: no limit of its own
	JSON   int    // likewise as a string of JSON, as results.Form counts it; 0: no limit of its own
	Images ImagePolicy

	// NoMeta says that this client hands the model the _meta of results, too, so they have none.
	NoMeta bool
	// DeferAll says that this client defers all tools by itself, so all of them are listed.
	DeferAll bool
	// Hints says that what it searches then is names and descriptions, so descriptions have the words of the hint.
	Hints bool
	// NoTextFields says that a person cannot send a form of this client in which a text is empty.
	NoTextFields bool
	// DeclinesAlone says that this client declines questions by itself when it runs without a person.
	DeclinesAlone bool
	// Marks says that it reads what the list of tools says to Claude Code in _meta.
	Marks bool
	// Numbers says that its own tool for reading shows each line with its number, so that its models are used to that.
	Numbers bool
	// Patches says that its models are trained to change files by patches.
	Patches bool
	// Reopens says that this client opens a transport session for each call, so none of them is a conversation.
	Reopens bool
	// Found is how its model calls a tool that tool_search found.
	Found Reach
	// Loads are the instructions of a project, by their names in tools/guidance and parted by blanks, that this client
	// reads by itself from the root in which it was started.
	Loads string
	// Background is after what time a call with a progress token moves to the background; 0: after 45 s, as for the
	// least patient clients; patient: when the general setting says so. Other rooms ask ToBackground.
	Background time.Duration
}

const (
	short   = 45 * time.Second // some clients give up on a call after 60 s, whatever we send
	patient = -1               // this client waits as long as a call runs
)

// ToBackground is after what time a call with a progress token moves to the background; 0: the general setting.
func (p Profile) ToBackground() time.Duration {
	switch p.Background {
	case 0:
		return short
	case patient:
		return 0
	}
	return p.Background
}

// A Reach is how a model calls a tool that was not listed when its client first read the list. The zero value says that
// we have not looked.
type Reach int

// The ways.
const (
	EitherWay     Reach = iota
	ByName              // its client reads the list again when that changes, or lists all
	ByDispatcher        // its client does not, so call_tool it is
	ByNameInOrder       // as ByName where answers come in order; over HTTP one may overtake the list
)

// Beat is how long a call stays silent before a heartbeat is sent: the shortest limit of a client that we measured on a
// silent call is 60 s.
const Beat = 10 * time.Second

// The instructions of a project that some client reads, by its documentation, in November 2026.
const (
	agentsMD    = "AGENTS.md"
	claudeMD    = "CLAUDE.md"
	geminiMD    = "GEMINI.md"
	cursorRules = ".cursor/rules"
	copilotMD   = ".github/copilot-instructions.md"
)

// unknown is the profile of clients of which we know nothing: 50,000 characters and 2,000 lines, and ten for what
// stands around them. Limits of the others keep a margin below the client's own, since its cut would remove our first
// line. It never changes.
var unknown = Profile{Name: "default", Runes: 50_000, Lines: 2_010, Images: FirstImage}

// builder is for people who try servers by hand, and count lines. It never changes.
var builder = Client{
	Names:   []string{"inspector*", "mcp-inspector*", "codehand-call"},
	Profile: Profile{Name: "builder", Runes: 50_000, Images: AllImages, Numbers: true, Background: patient},
}

// callers are all that call themselves something that we know. It never changes.
var callers = append(slices.Clone(all), builder)

// Find returns the profile for a client that calls itself name (clientInfo.name), in any case. An exact name goes
// before a prefix, and the longest prefix before shorter ones. Unknown or empty: the profile `default`, which is safe
// everywhere.
func Find(name string) Profile {
	best, length := unknown, -1
	for i := range callers {
		for _, n := range callers[i].Names {
			if fits, exact := match(n, name); exact {
				return callers[i].profile()
			} else if fits && len(n) > length {
				best, length = callers[i].profile(), len(n)
			}
		}
	}
	return best
}

// profile is the client's own profile, or that of unknown clients.
func (c *Client) profile() Profile {
	if c.Profile == (Profile{}) {
		return unknown
	}
	return c.Profile
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
	for i := range callers {
		if p := callers[i].Profile; p.Name == name && name != "" {
			return p, true
		}
	}
	if name == unknown.Name {
		return unknown, true
	}
	return Profile{}, false
}

// Names lists the names that Named takes: in the order of the clients, then of the profiles that belong to no client.
func Names() []string {
	var names []string
	for i := range callers {
		if name := callers[i].Profile.Name; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return append(names, unknown.Name)
}

// NamesOf returns the names by which Find finds a profile, as Client.Names has them. The profile of unknown clients has
// none.
func NamesOf(profile string) []string {
	var names []string
	for i := range callers {
		if callers[i].Profile.Name == profile {
			names = append(names, callers[i].Names...)
		}
	}
	return names
}

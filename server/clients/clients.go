// Package clients has a profile of each known MCP client, and what people paste into its file.
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
	// Reopens says that this client opens a transport session for each call, so none of them is a conversation.
	Reopens bool
	// Found is how its model calls a tool that tool_search found.
	Found Reach
	// Loads are the instructions of a project, by their names in tools/guidance and parted by blanks, that this client
	// reads by itself from the root in which it was started.
	Loads string
	// Background is after what time a call with a progress token moves to the background; 0: the general setting.
	Background time.Duration
}

// A Reach is how a model calls a tool that was not listed when its client first read the list. The zero value says that
// nobody has looked.
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

// short is for clients that give up on a call after 60 s, whatever we send.
const short = 45 * time.Second

// The instructions of a project that some client reads, by its documentation, in November 2026: Claude Code
// (code.claude.com/docs/en/memory), Codex (developers.openai.com/codex/guides/agents-md), Gemini CLI
// (geminicli.com/docs/cli/gemini-md), Cursor (cursor.com/docs/context/rules), VS Code
// (code.visualstudio.com/docs/agent-customization/custom-instructions), Copilot CLI
// (docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-custom-instructions), opencode
// (opencode.ai/docs/rules).
const (
	agentsMD    = "AGENTS.md"
	claudeMD    = "CLAUDE.md"
	geminiMD    = "GEMINI.md"
	cursorRules = ".cursor/rules"
	copilotMD   = ".github/copilot-instructions.md"
)

// A row is a profile with the names of the clients that it is for. A trailing `*` makes a name a prefix.
type row struct {
	Profile
	names []string
}

// table is what was measured of the clients, and the safe guess for the rest. Limits keep a margin below the client's
// own, since its cut would remove our first line. The last row is for everybody else: 50,000 characters and 2,000
// lines, and ten for what stands around them. It never changes.
var table = []row{
	{Profile{Name: "claude-code", Runes: 50_000, Images: AllImages, DeferAll: true, Found: ByName,
		Loads: claudeMD},
		[]string{"claude-code"}},
	{Profile{Name: "codex", Runes: codexUnknown, Bytes: codexUnknown, Images: AllImages, DeferAll: true, Hints: true,
		Found: ByDispatcher, NoTextFields: true, DeclinesAlone: true, Loads: agentsMD},
		[]string{"codex-mcp-client", "Codex"}},
	{Profile{Name: "copilot-cli", Runes: 18_000, Bytes: 19_000, Images: AllImages, Found: ByDispatcher,
		DeclinesAlone: true, Loads: agentsMD + " " + copilotMD},
		[]string{"copilot-cli", "github-copilot-developer"}},
	{Profile{Name: "gemini", Runes: 38_000, Images: AllImages, Found: ByName,
		Loads: geminiMD},
		[]string{"gemini-cli-mcp-client"}},
	{Profile{Name: "opencode", Runes: 45_000, Bytes: 48_000, Lines: 1_900, Images: AllImages,
		Found: ByNameInOrder, Loads: agentsMD},
		[]string{"opencode"}},
	// It hands the model the JSON of the whole result, cut to 8,000 characters.
	{Profile{Name: "cline", Runes: 7_900, JSON: 7_900, Images: ImagesAsText, NoMeta: true, Found: ByDispatcher,
		Background: short},
		[]string{"@cline/core", "Cline", "Roo-Code", "Kilo-Code"}},
	{Profile{Name: "continue", Runes: 20_000, Images: ImagesAsText, Found: ByDispatcher,
		Background: short},
		[]string{"continue-cli-client", "continue-client"}},
	// Over HTTP it is Claude on the web, too, which gives itself either name.
	{Profile{Name: "claude-desktop", Runes: 20_000, Images: AllImages, Reopens: true,
		Background: short},
		[]string{"claude-ai"}},
	{Profile{Name: "vscode", Runes: 20_000, Images: AllImages, Loads: agentsMD + " " + copilotMD},
		[]string{"Visual Studio Code*", "Visual-Studio-Code*"}},
	{Profile{Name: "cursor", Runes: 20_000, Images: AllImages, Loads: agentsMD + " " + cursorRules,
		Background: short},
		[]string{"cursor-vscode"}},
	{Profile{Name: "windsurf", Runes: 20_000, Images: AllImages, Background: short},
		[]string{"windsurf*"}},
	{Profile{Name: "zed", Runes: 20_000, Images: AllImages, Background: short}, []string{"Zed"}},
	{Profile{Name: "jetbrains", Runes: 20_000, Images: FirstImage, Background: short},
		[]string{"JetBrains*"}},
	{Profile{Name: "goose", Runes: 20_000, Images: AllImages, Background: 240 * time.Second},
		[]string{"goose"}},
	{Profile{Name: "crush", Runes: 20_000, Images: FirstImage, Background: short}, []string{"crush"}},
	{Profile{Name: "lm-studio", Runes: 8_000, Images: AllImages, Background: short},
		[]string{"lmstudio*"}},
	// The clients on the web keep no transport session: anthropics/claude-ai-mcp#583 and #975, and
	// openai/openai-apps-sdk-examples#165 and #201.
	{Profile{Name: "claude-web", Runes: 50_000, Images: AllImages, Reopens: true, Background: short},
		[]string{"Anthropic*"}},
	{Profile{Name: "chatgpt", Runes: 20_000, Images: AllImages, Reopens: true, Found: ByDispatcher,
		Background: short},
		[]string{"openai-mcp*", "ChatGPT"}},
	{Profile{Name: "builder", Runes: 50_000, Images: AllImages},
		[]string{"inspector*", "mcp-inspector*", "codehand-call"}},
	{Profile{Name: "default", Runes: 50_000, Lines: 2_010, Images: FirstImage,
		Background: short}, nil},
}

// Codex cuts the middle out of results by the model that it talks to. For one that it does not know the limit is 10,000
// bytes, for others 10,000 tokens of four bytes each; a result may have 1.2 times as much, with the lines that Codex
// puts before it. Models that call tools from JavaScript print them, and of what they print 10,000 tokens are shown.
const (
	codexUnknown = 11_900
	codexKnown   = 47_900
	codexPrinted = 39_500
)

// codexModels are how the names of the models begin that Codex 0.169.0 knows, with what it shows of a result; more of a
// name makes no difference to it. Those that a later version knows as well get less than they might. It never changes.
var codexModels = map[string]int{
	"gpt-5.5": codexKnown, "gpt-5.6-": codexPrinted, "gpt-6-": codexPrinted, "gpt-6.1-": codexPrinted,
	"gpt-daybreak-": codexPrinted, "codex-auto-review": codexPrinted,
}

// ForModel is the profile while the client talks to this model; "": it does not say to which.
func (p Profile) ForModel(model string) Profile {
	for prefix, limit := range codexModels {
		if p.Name == "codex" && strings.HasPrefix(model, prefix) {
			p.Runes, p.Bytes = limit, limit
		}
	}
	return p
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

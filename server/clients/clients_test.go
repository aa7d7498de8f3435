package clients

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"claude-code":                  "claude-code",
		"Claude-Code":                  "claude-code",
		"claude-code-router":           "default", // no prefix without a star
		"codex-mcp-client":             "codex",
		"Codex":                        "codex",
		"codex":                        "codex",
		"github-copilot-developer":     "copilot-cli",
		"gemini-cli-mcp-client":        "gemini",
		"@cline/core":                  "cline",
		"roo-code":                     "cline",
		"Visual Studio Code":           "vscode",
		"visual studio code - insider": "vscode",
		"Visual-Studio-Code":           "vscode",
		"windsurf-client":              "windsurf",
		"JetBrains-IU/2026.3":          "jetbrains",
		"inspector-client":             "builder",
		"mcp-inspector":                "builder",
		"zed":                          "zed",
		"ChatGPT":                      "chatgpt",
		"":                             "default",
		"*":                            "default",
		"Visual":                       "default",
		"somebody else":                "default",
	} {
		if got := Find(name).Name; got != want {
			t.Errorf("Find(%q) = %s, want %s", name, got, want)
		}
	}
}

// Each documented name finds its own row: no other row takes it away.
func TestEveryNameFindsItsRow(t *testing.T) {
	for _, r := range table {
		for _, name := range r.names {
			if got := Find(strings.TrimSuffix(name, "*")); got != r.Profile {
				t.Errorf("Find(%q) = %+v, want %+v", name, got, r.Profile)
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for _, name := range Names() {
		if p, ok := Named(name); !ok || p.Name != name {
			t.Errorf("Named(%q) = %+v, %v", name, p, ok)
		}
	}
	for _, name := range []string{"", "Claude-Code", "nobody"} {
		if p, ok := Named(name); ok {
			t.Errorf("Named(%q) = %+v, want none", name, p)
		}
	}
}

// What every profile owes: limits that leave room for an answer, a heartbeat well below the 60 s of the least patient
// clients, and a name that appears once.
func TestProfilesAreUsable(t *testing.T) {
	names := Names()
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
		t.Errorf("a name appears twice: %v", names)
	}
	for _, name := range names {
		p, _ := Named(name)
		if p.Runes < 5_000 || p.Bytes < 0 || p.Bytes > 0 && p.Bytes < p.Runes {
			t.Errorf("%s: limits %d runes, %d bytes", name, p.Runes, p.Bytes)
		}
		if p.Background < 0 || p.Background > 0 && p.Background <= Beat {
			t.Errorf("%s: background after %s", name, p.Background)
		}
	}
}

// The figures that the client would otherwise cut by itself.
func TestMeasuredLimits(t *testing.T) {
	for name, want := range map[string][4]int{
		"claude-code": {50_000, 0, 0, 0},
		"codex":       {11_900, 11_900, 0, 0},
		"copilot-cli": {18_000, 19_000, 0, 0},
		"gemini":      {38_000, 0, 0, 0},
		"opencode":    {45_000, 48_000, 1_900, 0},
		"cline":       {7_900, 0, 0, 7_900},
		"default":     {50_000, 0, 2_010, 0},
	} {
		p, _ := Named(name)
		if got := [4]int{p.Runes, p.Bytes, p.Lines, p.JSON}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if p := Find("claude-code"); !p.DeferAll || p.Images != AllImages {
		t.Errorf("claude-code: %+v", p)
	}
	if p := Find("codex"); !p.DeferAll || !p.Hints || p.ForModel("gpt-5.5").Runes != 47_900 || p.ForModel("gpt-5.5").Bytes != 47_900 || p.ForModel("gpt-6-sol").Bytes != 39_500 {
		t.Errorf("codex: %+v", p)
	}
	for _, model := range []string{"", "gpt-5", "gpt-5.4", "gpt-4.1", "o3", "my/gpt-6-sol"} {
		if p := Find("codex"); p.ForModel(model) != p {
			t.Errorf("codex with %q: %+v", model, p.ForModel(model))
		}
	}
	if p := Find("gemini"); p.ForModel("gpt-6-sol") != p {
		t.Error("another client is given what Codex gets")
	}
	if p := Find("cline"); !p.NoMeta || p.Images != ImagesAsText || p.Background != 45*time.Second {
		t.Errorf("cline: %+v", p)
	}
}

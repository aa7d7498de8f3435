package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
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
	for _, c := range callers {
		for _, name := range c.Names {
			if got := Find(strings.TrimSuffix(name, "*")); got != c.Profile {
				t.Errorf("Find(%q) = %+v, want %+v", name, got, c.Profile)
			}
		}
	}
}

// TestColumns: what each client owes. A file of a client that nothing in all names would be found by no room.
func TestColumns(t *testing.T) {
	t.Parallel()
	inAll := map[string]bool{}
	for _, c := range all {
		switch {
		case c.ID == "" || inAll[c.ID] || strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			t.Errorf("%q cannot be written as an argument, or is there twice", c.ID)
		case c.Title == "":
			t.Errorf("%s has no Title", c.ID)
		case c.Known != "documented" && !strings.HasPrefix(c.Known, "measured, "):
			t.Errorf("%s: Known is neither documented nor measured, VERSION", c.ID)
		case c.Profile != Profile{} && c.Profile.Name == "":
			t.Errorf("%s: its Profile has no Name", c.ID)
		case c.Profile == Profile{} && len(c.Names) > 0:
			t.Errorf("%s has Names, but no Profile that they find", c.ID)
		case c.Files != Files{} && (c.Texts.Local == nil || c.Texts.Remote == nil && c.Texts.Bridge == nil):
			t.Errorf("%s has Files, but no Texts: Local, and Remote or Bridge", c.ID)
		}
		inAll[c.ID] = true
		file := strings.ReplaceAll(c.ID, "-", "_") + ".go"
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), strconv.Quote(c.ID)) {
			t.Errorf("%s does not define the client %s: %v", file, c.ID, err)
		}
		for _, scheme := range c.Schemes {
			if scheme != strings.ToLower(scheme) || strings.Contains(scheme, ".") {
				t.Errorf("%s: the scheme %s is not in lower case, or has a dot and needs no row", c.ID, scheme)
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`(?m)^\tID: +"([^"]+)"|= Client\{ID: "([^"]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range id.FindAllStringSubmatch(string(text), -1) {
			if name := m[1] + m[2]; !inAll[name] {
				t.Errorf("%s: add the client %s to the list in clients.go", file, name)
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
		if p.Runes > 400_000/utf8.UTFMax {
			t.Errorf("%s: a result of %d characters may have more than 400,000 bytes, which no client was shown to take", name, p.Runes)
		}
		if after := p.ToBackground(); after < 0 || after > 0 && after <= Beat {
			t.Errorf("%s: background after %s", name, after)
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
	if p := Find("cline"); !p.NoMeta || p.Images != ImagesAsText || p.ToBackground() != 45*time.Second {
		t.Errorf("cline: %+v", p)
	}
}

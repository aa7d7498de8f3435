package seatbelt

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox/kernel"
)

var update = flag.Bool("update", false, "rewrite the profiles in testdata")

func TestMain(m *testing.M) { leaktest.Main(m) }

var profiles = map[string]kernel.Profile{
	"strictest": {},
	"readonly":  {Readable: []string{"/Users/jo/src", "/Users/jo/go"}, Hidden: []string{"/Users/jo/src/.env", "/Users/jo/.ssh"}},
	"workspace": {
		Writable: []string{"/Users/jo/src", "/tmp/build"}, Readable: []string{"/Users/jo/go"}, Hidden: []string{"/Users/jo/.ssh"},
		Protected: []string{"/Users/jo/src/.git/config", "/Users/jo/src/.git/hooks/", "/Users/jo/src/.mcp.json", "/tmp/build/.vscode/", "/Users/jo/.zshrc"},
		Temp:      "/var/folders/ab/T/codehand", Network: kernel.NetworkOn,
	},
	"list":  {Writable: []string{"/Users/jo/src"}, Network: kernel.NetworkList},
	"names": {Writable: []string{`/Users/jo/a "b" \c`}, Protected: []string{`/Users/jo/a "b" \c/x.(y)[z]^é"`}},
}

// What sandbox-exec is told, by profile: read the difference before you accept it.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for name, p := range profiles {
		file := filepath.Join("testdata", name+".sb")
		got := Text(p)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
}

// Whatever a path holds, the text stays one list of rules: quotes and parentheses close as often as they open, and no
// rule about paths is left without any, which would be one about all.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/a", `/a")(allow default)("`, `/a\`, `/a\")(allow default)`, "/a\n(allow default)", "/a;b", "/a(b", "/#"} {
		p := kernel.Profile{Writable: []string{name}, Readable: []string{name}, Hidden: []string{name}, Protected: []string{name + "/" + name[1:]}, Temp: name}
		text := Text(p)
		rest := regexp.MustCompile(`#"[^"]*"|"(\\.|[^"\\])*"`).ReplaceAllString(text, "")
		depth := 0
		for _, r := range rest {
			if depth += map[rune]int{'(': 1, ')': -1}[r]; depth < 0 {
				t.Fatalf("%q: closes too often:\n%s", name, text)
			}
		}
		if depth != 0 || strings.Contains(rest, `"`) || strings.Contains(rest, "allow default") || strings.Contains(rest, "file-write*)") {
			t.Errorf("%q: depth %d:\n%s", name, depth, text)
		}
	}
}

// A protected name cannot be made in another letter case, and no directory above it can be moved away.
func TestProtected(t *testing.T) {
	t.Parallel()
	text := Text(profiles["workspace"])
	_, after, _ := strings.Cut(text, "(deny file-write*\n")
	names, above, _ := strings.Cut(after, "(deny file-write-unlink\n")
	matches := func(rules, path string) bool {
		for _, m := range regexp.MustCompile(`#"([^"]*)"`).FindAllStringSubmatch(rules, -1) {
			if regexp.MustCompile(m[1]).MatchString(path) {
				return true
			}
		}
		return false
	}
	for path, want := range map[string]bool{
		"/Users/jo/src/.git/config": true, "/Users/jo/src/.GIT/Config": true, "/Users/jo/src/.git/hooks": true, "/Users/jo/src/.git/hooks/pre-commit": true,
		"/Users/jo/src/.Mcp.JSON": true, "/private/tmp/build/.vscode/tasks.json": true, "/Users/jo/src/.git/config.lock": false,
		"/Users/jo/src/xgit/config": false, "/Users/jo/src/.git/index": false, "/Users/jo/src/.mcp.json5": false, "/Users/jo/.zshrc": false,
	} {
		if got := matches(names, path); got != want {
			t.Errorf("%s is protected: %v", path, got)
		}
	}
	for path, want := range map[string]bool{"/Users/jo/src/.git": true, "/Users/jo/src/.Git": true, "/Users/jo/src": false, "/Users/jo/src/a": false} {
		if got := matches(above, path); got != want {
			t.Errorf("%s cannot be moved: %v", path, got)
		}
	}
}

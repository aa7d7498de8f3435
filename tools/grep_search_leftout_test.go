package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that a rule denies is found under none of its names; nor is one of a secret name, in any spelling.
func TestSearchesWithhold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Read(denied.txt)")
	for _, name := range []string{"denied.txt", "plain.txt", ".env", ".ENV.local", "several.txt"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte("needle\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"denied.txt": "other.txt", "several.txt": "names.txt"} {
		if err := os.Link(filepath.Join(r.dir, from), filepath.Join(r.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	r.Rules = r.Rules.At([]string{r.dir}, r.dir)
	const (
		once  = "(1 secret name left out: .env. To ask for one, give it as path.)"
		again = "(1 secret name left out, as told before)"
	)
	for i, call := range [][2]string{{"grep_search", `{"pattern":"needle"}`}, {"list_files", `{"pattern":"**"}`}} {
		_, text := r.do(call[0], call[1])
		for name, want := range map[string]bool{
			"denied.txt": false, "other.txt": false, ".ENV.local": false,
			"plain.txt": true, "several.txt": true, "names.txt": true, once: i == 0, again: i == 1,
		} {
			if strings.Contains(text, name) != want {
				t.Errorf("%s: %s is there: %v, want %v\n%s", call[0], name, !want, want, text)
			}
		}
	}
}

// TestSearchesSayWhere: after a cd, a search that finds nothing says that it looked only there.
func TestSearchesSayWhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("top.txt", "word\n")
	r.write("sub/x.txt", "x\n")
	for name, args := range map[string]string{"grep_search": `{"pattern":"word"}`, "list_files": `{"pattern":"top*"}`} {
		if text := r.ok(name, args); !strings.Contains(text, "top.txt") {
			t.Errorf("%s: %s", name, text)
		}
	}
	r.State.Space = r.State.Space.At(filepath.Join(r.dir, "sub")) // as a call that comes after cd
	const only = "\n(Only %s was searched, the session's current directory. Give path for another one.)"
	here := fmt.Sprintf(only, "$WORK/sub")
	for name, args := range map[string]string{"grep_search": `{"pattern":"word"}`, "list_files": `{"pattern":"top*"}`} {
		if text := r.ok(name, args); text != "No files found"+here {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := r.ok("grep_search", `{"pattern":"none","path":".."}`); text != "No files found" {
		t.Error(text)
	}
}

package tools

import (
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
	for _, call := range [][2]string{{"grep_search", `{"pattern":"needle"}`}, {"list_files", `{"pattern":"**"}`}} {
		_, text := r.do(call[0], call[1])
		for name, want := range map[string]bool{
			"denied.txt": false, "other.txt": false, ".ENV.local": false,
			"plain.txt": true, "several.txt": true, "names.txt": true, "(1 secret name left out: .env.": true,
		} {
			if strings.Contains(text, name) != want {
				t.Errorf("%s: %s is there: %v, want %v\n%s", call[0], name, !want, want, text)
			}
		}
	}
}

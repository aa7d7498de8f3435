package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A row is one line of a corpus of commands.
type row struct {
	class, command, why string
}

// corpus reads the rows of a file of testdata/corpus.
func corpus(t testing.TB, name string) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/corpus", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			t.Fatalf("%s:%d: want class, command and why, got %q", name, i+2, line)
		}
		r := row{class: fields[0], why: fields[2]}
		if err := json.Unmarshal([]byte(fields[1]), &r.command); err != nil {
			t.Fatalf("%s:%d: %v", name, i+2, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// inRoot is the root of the corpora.
func inRoot(path string) bool { return path == "/work" || strings.HasPrefix(path, "/work/") }

func TestDangerCorpora(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shell-commands.tsv", "shell-dangerous.tsv"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dangerous, falsely := 0, 0
			for _, r := range corpus(t, name) {
				why := newScript(r.command).danger(inRoot)
				switch {
				case r.class == "dangerous" && why == "":
					t.Errorf("not found to be dangerous: %q (%s)", r.command, r.why)
				case r.class == "dangerous":
					dangerous++
				case why != "":
					falsely++
					t.Errorf("%s, but dangerous: %q: %s", r.class, r.command, why)
				}
			}
			t.Logf("%d dangerous rows found, %d others taken for dangerous", dangerous, falsely)
		})
	}
}

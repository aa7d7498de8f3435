package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestGeneratedParts holds the parts of documents that are made from the code.
func TestGeneratedParts(t *testing.T) {
	for _, part := range []struct {
		file, mark string
		text       func(*testing.T) string
	}{
		{"../../README.md", "tools", toolTable},
		{"../../ARCHITECTURE.md", "imports", func(*testing.T) string { return importTable() }},
	} {
		t.Run(part.mark, func(t *testing.T) {
			b, err := os.ReadFile(part.file)
			if err != nil {
				t.Fatal(err)
			}
			begin, end := fmt.Sprintf("<!-- %s:begin -->\n", part.mark), fmt.Sprintf("<!-- %s:end -->", part.mark)
			head, rest, ok := strings.Cut(string(b), begin)
			old, tail, ok2 := strings.Cut(rest, end)
			if !ok || !ok2 {
				t.Fatalf("%s has no %s … %s", part.file, strings.TrimSpace(begin), end)
			}
			want := part.text(t)
			if old == want {
				return
			}
			if *update {
				if err := os.WriteFile(part.file, []byte(head+begin+want+end+tail), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("the generated part %q of %s has drifted: go test ./cmd/codehand -update", part.mark, part.file)
		})
	}
}

// toolTable is what `codehand tools --markdown` prints.
func toolTable(t *testing.T) string {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	if code := run([]string{"tools", "--markdown"}, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	return out.String()
}

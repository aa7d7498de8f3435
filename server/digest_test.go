package server

import (
	"os"
	"path/filepath"
	"testing"

	"codehand/server/instructions"
	"codehand/tools"
)

// TestDigest: a change of what every client is told is a change of a committed file, so it is seen. What each tool adds to
// it is in testdata/specs.
func TestDigest(t *testing.T) {
	t.Parallel()
	got, err := instructions.Digest(fixedTools(tools.Engines{}))
	must(t, err)
	path := filepath.Join("..", "testdata", "list.sha256")
	if *update {
		must(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != got+"\n" {
		t.Errorf("the tool list is %s, %s holds %q (%v): if the new words are right, go test ./server -run TestDigest -update", got, path, want, err)
	}
}

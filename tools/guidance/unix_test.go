//go:build unix

package guidance_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"codehand/tools/guidance"
	"codehand/tools/tooltest"
)

// TestFIFO: a FIFO under such a name blocks no call and appears in no answer.
func TestFIFO(t *testing.T) {
	t.Parallel()
	s := tooltest.New(t, nil)
	s.Write("a/x", "text\n")
	for _, name := range []string{"AGENTS.md", "a/AGENTS.md"} {
		must(t, syscall.Mkfifo(filepath.Join(s.Dir, name), 0o600))
	}
	same(t, guidance.Names(s.State, nil))
	same(t, told(t, s, "a/x"))
	if all := text(t, s); all != "" {
		t.Error(all)
	}
}

package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The refusal names what switches PDF files off: here a file of the project, which the built program reads. Such a file
// switches nothing on.
func TestProjectSwitchesPDFOff(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	for _, c := range []struct{ project, user, want string }{
		{"false", "true", "a project file switched that off (read.pdf)"},
		{"true", "false", "the operator switched that off (read.pdf)"},
	} {
		work := leaktest.Dir(t)
		must(t, os.WriteFile(filepath.Join(work, "a.pdf"), []byte("%PDF-1.4\n"), 0o600))
		must(t, os.Mkdir(filepath.Join(work, ".codehand"), 0o700))
		must(t, os.WriteFile(filepath.Join(work, ".codehand", "config.toml"), []byte("read.pdf = "+c.project+"\n"), 0o600))
		p := replaytest.Spawn(t, path, work, "mcp-inspector", false, map[string]string{"read.pdf": c.user})
		if text := p.Must(t, "read_file", `{"file_path":"a.pdf"}`); !strings.HasPrefix(text, "! PDF_UNAVAILABLE: ") || !strings.Contains(text, c.want) {
			t.Errorf("project %s, operator %s: %s", c.project, c.user, text)
		}
	}
}

package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestDeepPaths: a path of 1,900 components cost 12 to 35 s of processor time. At most 256 are taken, by every tool that
// takes a path; with fewer, all of them work.
func TestDeepPaths(t *testing.T) {
	t.Parallel()
	work := leaktest.Dir(t)
	p := replaytest.Spawn(t, replaytest.Program(t), work, "claude-code", false, nil)
	for _, tool := range []struct{ name, args string }{
		{"read_file", `{"file_path":%q}`},
		{"list_files", `{"pattern":"*","path":%q}`},
		{"grep_search", `{"pattern":"x","path":%q}`},
		{"write_file", `{"file_path":%q,"content":"x"}`},
		{"edit_file", `{"file_path":%q,"old_string":"a","new_string":"b"}`},
	} {
		for _, path := range []string{strings.Repeat("a/", 1_900) + "x", filepath.Join(work, strings.Repeat("b/", 300)), "/tmp/" + strings.Repeat("c/", 1_900)} {
			text := p.Must(t, tool.name, fmt.Sprintf(tool.args, path))
			if !strings.HasPrefix(text, "! INPUT_INVALID: ") || !strings.Contains(text, "256 components") {
				t.Errorf("%s: %.300s", tool.name, text)
			}
		}
	}
	if entries, err := os.ReadDir(work); err != nil || len(entries) > 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
	// A command is the shell's business; deciding about it takes no long walk.
	for _, dir := range []string{strings.Repeat("a/", 1_900), "/tmp/" + strings.Repeat("c/", 1_900)} {
		if text := p.Must(t, "run_readonly", fmt.Sprintf(`{"command":%q}`, "cat "+dir+"x")); !strings.Contains(text, "!") {
			t.Errorf("cat of what is not there: %.300s", text)
		}
	}

	depth := strings.Count(work, "/")
	deep := strings.Repeat("d/", 255-depth) + "x.txt" // 256 components with those of work
	if text := p.Must(t, "write_file", fmt.Sprintf(`{"file_path":%q,"content":"needle\n"}`, deep)); strings.HasPrefix(text, "!") {
		t.Fatalf("write_file at the limit: %.300s", text)
	}
	if text := p.Must(t, "read_file", fmt.Sprintf(`{"file_path":%q}`, deep)); !strings.Contains(text, "needle") {
		t.Errorf("read_file at the limit: %.300s", text)
	}
	if text := p.Must(t, "grep_search", `{"pattern":"needle"}`); !strings.Contains(text, "x.txt") {
		t.Errorf("grep_search: %.300s", text)
	}
	// What is deeper was made by a command; a walk says that it was left out.
	p.Must(t, "run_shell", fmt.Sprintf(`{"command":%q}`, "cd "+filepath.Dir(deep)+" && mkdir -p e/e/e && echo needle >e/e/e/y.txt"))
	if text := p.Must(t, "grep_search", `{"pattern":"needle"}`); !strings.Contains(text, "x.txt") || strings.Contains(text, "y.txt") || !strings.Contains(text, "could not be read") {
		t.Errorf("grep_search over what is too deep: %.1500s", text)
	}
}

package tools

import (
	"strings"
	"testing"

	"codehand/tools/tool"
)

// What was changed in a directory that is a link by now was not found by its path, though the journal has it under that.
func TestFileHistoryBehindLink(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"another": "other", "nothing": "none"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.ok("write_file", `{"file_path":"d/e","content":"e\n"}`)
			r.write("other/e", "e\n")
			r.remove("d")
			r.link("d", target)
			for _, input := range []string{`{"file_path":"d/e"}`, `{"file_path":"d"}`} {
				if text := r.ok("file_history", input); !strings.Contains(text, "write_file d/e +1 -0 (new file)") {
					t.Errorf("%s: %s", input, text)
				}
			}
			r.fails(tool.UndoConflict, "undo_change", `{"file_path":"d/e"}`)
		})
	}
}

package tools

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// Rules have let a file pass, and a link takes its place before the tool opens it: nothing of what the link leads to is
// shown or changed. A hard link is asked about again.
func TestFileSwappedWhenOpened(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs links")
	}
	const mark = "DENIED-MARKER"
	cell := func(text string) string {
		return `{"cells":[{"cell_type":"code","execution_count":null,"id":"a","metadata":{},"outputs":[],"source":["` + text +
			`"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}` + "\n"
	}
	for name, c := range map[string]struct{ tool, args, at string }{
		"text":      {"read_file", `{"file_path":"a.txt"}`, "a.txt"},
		"notebook":  {"read_file", `{"file_path":"n.ipynb"}`, "n.ipynb"},
		"search":    {"grep_search", `{"pattern":".","path":"a.txt","output_mode":"content"}`, "a.txt"},
		"overwrite": {"write_file", `{"file_path":"a.txt","content":"x"}`, "a.txt"},
		"edit":      {"edit_file", `{"file_path":"a.txt","old_string":"head","new_string":"x"}`, "a.txt"},
		"edits": {"multi_edit", `{"edits":[{"file_path":"b.txt","old_string":"head","new_string":"x"},` +
			`{"file_path":"a.txt","old_string":"head","new_string":"x"}]}`, "a.txt"},
		"dry run": {"multi_edit", `{"dry_run":true,"edits":[{"file_path":"a.txt","old_string":"head","new_string":"x"}]}`,
			"a.txt"},
		"cell": {"notebook_edit", `{"notebook_path":"n.ipynb","cell_id":"a","new_source":"x"}`, "n.ipynb"},
		"undo": {"undo_change", `{"file_path":"u.txt"}`, "u.txt"},

		"directory":        {"grep_search", `{"pattern":"head","path":"d","output_mode":"content"}`, "d"},
		"list":             {"list_files", `{"pattern":"**/*","path":"d"}`, "d"},
		"new":              {"write_file", `{"file_path":"d/new.txt","content":"x"}`, "d"},
		"new in a new one": {"write_file", `{"file_path":"d/new/f.txt","content":"x"}`, "d"},
	} {
		for _, hard := range []bool{false, true} {
			if hard && c.at == "d" {
				continue
			}
			t.Run(name+map[bool]string{true: " by a hard link"}[hard], func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "Read(denied/**)")
				for _, side := range [][2]string{{"", "plain"}, {"denied/", mark}} {
					for _, file := range []string{"a.txt", "b.txt", "u.txt", "d/a.txt"} {
						r.write(side[0]+file, "head "+side[1]+"\n")
					}
					r.write(side[0]+"n.ipynb", cell(side[1]))
				}
				r.write("denied/d/"+mark+".txt", mark)
				for _, file := range []string{"a.txt", "b.txt", "u.txt", "n.ipynb"} {
					r.ok("read_file", `{"file_path":"`+file+`"}`)
				}
				r.ok("edit_file", `{"file_path":"u.txt","old_string":"head","new_string":"changed"}`)
				before := r.tree()
				at, denied := filepath.Join(r.dir, c.at), filepath.Join(r.dir, "denied", c.at)
				put := func() error { return os.Symlink("denied/"+c.at, at) }
				if hard {
					put = func() error { return os.Link(denied, at) }
				}
				sprung := false
				r.Space = r.Space.Guarded(func(o workspace.Opened) error {
					if names, _ := o.Names(); strings.Contains(o.Path, "/denied/") || slices.Contains(names, denied) {
						return tool.Refuse(tool.PermissionDenied, "closed")
					}
					if sprung || !strings.HasPrefix(o.Path, at) {
						return nil
					}
					sprung = true
					if err := os.Rename(at, at+".away"); err != nil {
						return err
					}
					return put()
				})
				res, text := r.do(c.tool, c.args)
				if !sprung || strings.Contains(text, mark) {
					t.Errorf("sprung %v, got %s: %s", sprung, res.Failed, text)
				}
				isDenied := func(line string) bool { return strings.HasPrefix(line, "/denied/") }
				after := slices.DeleteFunc(r.tree(), func(line string) bool { return !isDenied(line) })
				before = slices.DeleteFunc(before, func(line string) bool { return !isDenied(line) })
				if !slices.Equal(after, before) {
					t.Errorf("denied was %q, is %q", before, after)
				}
			})
		}
	}
}

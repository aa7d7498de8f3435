package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/server/replaytest"
)

// deniedMark is in every file that a rule denies, and in the name of one.
const deniedMark = "DENIED-MARKER"

// A trap is a directory with an open and a denied directory, and `swap`, which leads to the open one until it is sprung.
type trap struct{ dir string }

// newTrap makes one in which swap is a link or the open directory itself.
func newTrap(t *testing.T, dir string, link bool) trap {
	t.Helper()
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 3))))
	open := "swap"
	if link {
		open = "open"
	}
	for _, side := range [][2]string{{open, "plain"}, {"denied", deniedMark}} {
		at := filepath.Join(dir, side[0])
		must(t, os.MkdirAll(at, 0o755))
		for name, text := range map[string]string{
			"a.txt": "head\n" + side[1] + "\n", "n.ipynb": strings.Replace(oneCell, "plain", side[1], 1),
			"p.png": picture.String(),
		} {
			must(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "denied", deniedMark+".txt"), []byte("head\n"), 0o644))
	if link {
		must(t, os.Symlink("open", filepath.Join(dir, "swap")))
	}
	return trap{dir}
}

const oneCell = `{"cells":[{"cell_type":"code","execution_count":null,"id":"a","metadata":{},"outputs":[],"source":["plain"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}` + "\n"

// springs are the ways in which swap, or a file in it, comes to lead to what is denied.
var springs = []struct {
	name  string
	link  bool // swap is a link before
	files bool // only the files that both have lead there
	do    func(dir string) error
}{
	{"another link", true, false, func(dir string) error {
		if err := os.Symlink("denied", filepath.Join(dir, "next")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "swap"))
	}},
	{"a link for the directory", false, false, func(dir string) error {
		if err := os.Rename(filepath.Join(dir, "swap"), filepath.Join(dir, "away")); err != nil {
			return err
		}
		return os.Symlink("denied", filepath.Join(dir, "swap"))
	}},
	{"links for the files", false, true, func(dir string) error {
		return eachDenied(dir, func(from, to string) error { return os.Symlink("../denied/"+filepath.Base(from), to) })
	}},
	{"hard links for the files", false, true, func(dir string) error { return eachDenied(dir, os.Link) }},
}

// eachDenied puts something in the place of each open file that a denied one has the name of.
func eachDenied(dir string, put func(from, to string) error) error {
	for _, name := range []string{"a.txt", "n.ipynb", "p.png"} {
		next := filepath.Join(dir, "next-"+name)
		if err := put(filepath.Join(dir, "denied", name), next); err != nil {
			return err
		}
		to := filepath.Join(dir, "swap", name)
		if err := os.Remove(to); err != nil {
			return err
		}
		if target, err := os.Readlink(next); err == nil {
			if err := os.Remove(next); err != nil {
				return err
			}
			if err := os.Symlink(target, to); err != nil {
				return err
			}
		} else if err := os.Rename(next, to); err != nil {
			return err
		}
	}
	return nil
}

// sprungCalls are calls through swap.
var sprungCalls = []struct {
	name, tool string
	args       []any  // paths begin with swap/
	whole      bool   // it is about the directory, and not about one of the files that both have
	before     string // a file that is read first; of an undo, that is changed first
}{
	{name: "text", tool: "read_file", args: []any{"file_path", "swap/a.txt"}},
	{name: "notebook", tool: "read_file", args: []any{"file_path", "swap/n.ipynb"}},
	{name: "picture", tool: "read_file", args: []any{"file_path", "swap/p.png"}},
	{name: "missing", tool: "read_file", args: []any{"file_path", "swap/" + deniedMark[1:] + ".txt"}, whole: true},
	{name: "directory", tool: "grep_search", args: []any{"pattern", "head", "path", "swap"}, whole: true},
	{name: "file", tool: "grep_search", args: []any{"pattern", ".", "path", "swap/a.txt", "output_mode", "content"}},
	{name: "all", tool: "list_files", args: []any{"pattern", "**/*", "path", "swap"}, whole: true},
	{name: "new", tool: "write_file", args: []any{"file_path", "swap/new.txt", "content", "x"}, whole: true},
	{name: "deep", tool: "write_file", args: []any{"file_path", "swap/new/deep.txt", "content", "x"}, whole: true},
	{name: "over", tool: "write_file", args: []any{"file_path", "swap/a.txt", "content", "x"}, before: "a.txt"},
	{name: "edit", tool: "edit_file", args: []any{"file_path", "swap/a.txt", "old_string", "head", "new_string", "x"}, before: "a.txt"},
	{name: "several", tool: "multi_edit", args: []any{"edits", []any{
		map[string]any{"file_path": "swap/a.txt", "old_string": "head", "new_string": "x"},
		map[string]any{"file_path": "swap/new.txt", "old_string": "", "new_string": "x"},
	}}, before: "a.txt"},
	{name: "dry run", tool: "multi_edit", args: []any{"dry_run", true, "edits", []any{
		map[string]any{"file_path": "swap/a.txt", "old_string": "head", "new_string": "x"},
	}}, before: "a.txt"},
	{name: "cell", tool: "notebook_edit", args: []any{"notebook_path", "swap/n.ipynb", "cell_id", "a", "new_source", "x"}, before: "n.ipynb"},
	{name: "undo", tool: "undo_change", args: []any{"file_path", "swap/a.txt"}, before: "a.txt"},
	{name: "dry run", tool: "undo_change", args: []any{"file_path", "swap/a.txt", "dry_run", true}, before: "a.txt"},
}

// A link is put in the way between the decision about a call and its work: nothing that a rule denies is shown, and
// nothing is changed there. What is refused by the rule is refused in the words in which the path itself would be.
func TestRulesHoldOnWhatIsOpened(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs links")
	}
	f := start(t, setup{settings: map[string]string{"permissions.deny": "Read(denied/**)"}})
	var spring atomic.Pointer[func() error]
	var asked atomic.Int64
	f.server.pipe.AuditReady = func() error { // it is asked when a call begins, and again between decision and work
		if do := spring.Load(); do != nil && asked.Add(1) == 2 {
			return (*do)()
		}
		return nil
	}
	n := 0
	for _, s := range springs {
		for _, c := range sprungCalls {
			if s.files && c.whole || s.link && c.tool == "undo_change" { // that is about the file itself
				continue
			}
			n++
			base := fmt.Sprintf("c%d", n)
			t.Run(s.name+"/"+c.tool+"/"+c.name, func(t *testing.T) {
				tr := newTrap(t, filepath.Join(f.work, base), s.link)
				args := strings.ReplaceAll(replaytest.AsJSON(t, c.args...), `"swap`, `"`+base+`/swap`)
				if c.before != "" {
					f.Must(t, "read_file", replaytest.AsJSON(t, "file_path", base+"/swap/"+c.before))
				}
				if c.tool == "undo_change" {
					f.Must(t, "edit_file", replaytest.AsJSON(t, "file_path", base+"/swap/"+c.before, "old_string", "head",
						"new_string", "changed"))
				}
				before := treeText(t, filepath.Join(tr.dir, "denied"))
				do := func() error { return s.do(tr.dir) }
				asked.Store(0)
				spring.Store(&do)
				got := f.Must(t, c.tool, args)
				spring.Store(nil)
				if asked.Load() != 2 {
					t.Fatalf("the trap was not sprung: %s", got)
				}
				named := f.Must(t, c.tool, args) // the same now that everything stands still
				if strings.Contains(got+named, deniedMark) || got != named {
					t.Errorf("got   %s\nnamed %s", got, named)
				}
				if after := treeText(t, filepath.Join(tr.dir, "denied")); after != before {
					t.Errorf("denied was\n%sis\n%s", before, after)
				}
			})
		}
	}
}

// BenchmarkReadFile reads a small file, with and without a rule about paths.
func BenchmarkReadFile(b *testing.B) {
	for name, rule := range map[string]string{"rule": "Read(denied/**)", "no rule": ""} {
		b.Run(name, func(b *testing.B) {
			f := start(b, setup{settings: map[string]string{"permissions.deny": rule}})
			must(b, os.MkdirAll(filepath.Join(f.work, "a/b"), 0o755))
			must(b, os.WriteFile(filepath.Join(f.work, "a/b/c.txt"), []byte("head\n"), 0o644))
			args := json.RawMessage(`{"file_path":"a/b/c.txt"}`)
			for b.Loop() {
				if text, err := f.Call("read_file", args); err != nil || strings.HasPrefix(text, "!") {
					b.Fatal(text, err)
				}
			}
		})
	}
}

// treeText is what is below a directory.
func treeText(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %q\n", path, text)
		return err
	}))
	return b.String()
}

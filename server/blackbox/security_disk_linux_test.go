package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// unmounted ends a test for which nothing could be mounted. In CI root can.
func unmounted(t *testing.T, err error) {
	t.Helper()
	if os.Geteuid() == 0 && os.Getenv("CI") != "" {
		t.Fatalf("mount: %v", err)
	}
	t.Skipf("a small file system cannot be mounted (%v): run the tests as root", err)
}

// mounted puts a small file system over the workspace. It is root's to do.
func (p *plot) mounted(size string) {
	p.Helper()
	err := syscall.Mount("tmpfs", p.work, "tmpfs", 0, "size="+size)
	if err != nil {
		unmounted(p.T, err)
	}
	p.Cleanup(func() { _ = syscall.Unmount(p.work, syscall.MNT_DETACH) })
}

// refusal calls a tool that cannot write: the answer has to name the cause and a file.
func (p *plot) refusal(s *replaytest.Spawned, cause string, name string, args ...any) {
	p.Helper()
	text, err := s.Call(name, []byte(replaytest.AsJSON(p.T, args...)))
	first, _, _ := strings.Cut(text, "\n")
	if err != nil || !strings.HasPrefix(text, "! WRITE_FAILED: Writing ") || !strings.Contains(first, cause) || !strings.Contains(first, p.work) {
		p.Errorf("%s: %v, %.300s", name, err, text)
	}
}

// A full disk of 200 KiB: whatever does not fit any more is refused with the cause, the files are as they were, and
// nothing is left. What fits is done (SEC-12).
func TestSEC12FullDisk(t *testing.T) {
	t.Parallel()
	p := newPlot(t, "--edit-guard=relaxed")
	p.mounted("200k")
	s := p.start()
	refused := 0
	for _, size := range []int{60 << 10, 90 << 10, 120 << 10, 150 << 10, 180 << 10, 196 << 10, 1 << 20} {
		must(t, os.RemoveAll(p.path("sub")))
		old := "old\n" + strings.Repeat("x", size/2) + "\n"
		if size > 200<<10 {
			old = "old\n"
		}
		p.lay("a.txt", old)
		p.lay("b.txt", "old\n")
		before := tree(t, p.work)
		grown := strings.Repeat("y", size)
		for _, c := range []struct {
			tool string
			args []any
		}{
			{"edit_file", []any{"file_path", "a.txt", "old_string", "old\n", "new_string", grown}},
			{"write_file", []any{"file_path", "sub/dir/c.txt", "content", grown}},
			{"multi_edit", []any{"edits", []any{
				map[string]any{"file_path": "b.txt", "old_string": "old\n", "new_string": "new\n"},
				map[string]any{"file_path": "a.txt", "old_string": "old\n", "new_string": grown},
			}}},
		} {
			text, err := s.Call(c.tool, []byte(replaytest.AsJSON(t, c.args...)))
			must(t, err)
			if !strings.HasPrefix(text, "!") {
				must(t, os.RemoveAll(p.path("sub")))
				p.lay("a.txt", old)
				p.lay("b.txt", "old\n")
				continue
			}
			refused++
			if first, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(text, "! WRITE_FAILED: Writing "+p.work) || !strings.Contains(first, syscall.ENOSPC.Error()) {
				t.Errorf("%s of %d bytes: %.300s", c.tool, size, text)
			}
			if after := tree(t, p.work); after != before {
				t.Fatalf("%s of %d bytes: the tree was\n%.600s\nand is\n%.600s", c.tool, size, before, after)
			}
		}
	}
	t.Logf("%d changes refused on a full disk, 0 files changed, 0 temporary files", refused)
	if refused < 6 {
		t.Errorf("only %d were refused", refused)
	}
	p.must(s, "write_file", "file_path", "small.txt", "content", "fits\n")
}

// A file system that becomes read-only while the program runs (SEC-12).
func TestSEC12ReadOnly(t *testing.T) {
	t.Parallel()
	p := newPlot(t, "--edit-guard=relaxed")
	p.mounted("1m")
	p.lay("a.txt", "old\n")
	p.lay("s/b.txt", "old\n")
	s := p.start()
	p.must(s, "edit_file", "file_path", "a.txt", "old_string", "old", "new_string", "new")
	before := tree(t, p.work)
	replaytest.Until(t, "the old file, which is kept open for what comes late, is closed", func() bool {
		return syscall.Mount("", p.work, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "") == nil
	})
	cause := syscall.EROFS.Error()
	p.refusal(s, cause, "edit_file", "file_path", "a.txt", "old_string", "new", "new_string", "newer")
	p.refusal(s, cause, "write_file", "file_path", "a.txt", "content", "newer\n")
	p.refusal(s, cause, "write_file", "file_path", "x/y.txt", "content", "newer\n")
	p.refusal(s, cause, "multi_edit", "edits", []any{
		map[string]any{"file_path": "a.txt", "old_string": "new", "new_string": "newer"},
		map[string]any{"file_path": "s/b.txt", "old_string": "old", "new_string": "newer"},
	})
	p.refusal(s, cause, "undo_change", "file_path", "a.txt")
	must(t, syscall.Mount("", p.work, "", syscall.MS_REMOUNT, ""))
	if after := tree(t, p.work); after != before {
		t.Errorf("the tree was\n%s\nand is\n%s", before, after)
	}
	if n := len(p.entries()); n != 1 {
		t.Errorf("%d changes are in the journal, want 1", n)
	}
	p.must(s, "undo_change", "file_path", "a.txt")
}

// A journal that cannot be written stops the change, since it could not be undone (SEC-12).
func TestSEC12JournalFull(t *testing.T) {
	t.Parallel()
	p := newPlot(t, "--edit-guard=relaxed")
	p.lay("a.txt", "old\n")
	s := p.start()
	p.must(s, "edit_file", "file_path", "a.txt", "old_string", "old", "new_string", "new")
	journals, err := filepath.Glob(filepath.Join(p.home, "codehand", "journal", "*", "*"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("the journal has %v, %v", journals, err)
	}
	if err := syscall.Mount("tmpfs", journals[0], "tmpfs", 0, "size=16k,mode=0700"); err != nil {
		unmounted(t, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(journals[0], syscall.MNT_DETACH) })
	var noise strings.Builder
	for i := range 20_000 { // which is not compressed to a page
		fmt.Fprintf(&noise, "%d\n", i*i*i)
	}
	before := tree(t, p.work)
	p.refusal(s, syscall.ENOSPC.Error(), "write_file", "file_path", "a.txt", "content", noise.String())
	if after := tree(t, p.work); after != before {
		t.Errorf("the tree was\n%s\nand is\n%s", before, after)
	}
	p.must(s, "edit_file", "file_path", "a.txt", "old_string", "new", "new_string", "newer")
}

package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
)

// A file with other names, also outside, is replaced and not written to: the others keep every byte, time and mode, and the
// answer says so. An undo breaks no hard link (SEC-07).
func TestSEC07HardLinks(t *testing.T) {
	onBoth(t, func(u *undoer) {
		outside := leaktest.Dir(u.T)
		changed := 0
		for _, c := range fileCalls {
			for _, names := range []int{1, 2} {
				far := filepath.Join(outside, fmt.Sprint(c.tool, names, c.suffix()))
				near := u.path(filepath.Base(far))
				u.lay(far, c.hereFor())
				must(u, os.Chmod(far, 0o640))
				must(u, os.Link(far, near))
				note := "[hard link broken: 1 other name keeps the old content]"
				if names == 2 {
					must(u, os.Link(far, u.path("inside-"+filepath.Base(far))))
					note = "[hard link broken: 2 other names keep the old content]"
				}
				before := inode(u.T, far)
				u.did("read_file", "file_path", near)
				if text := u.call(c, near); strings.HasPrefix(text, "!") || !strings.Contains(text, note) {
					u.Errorf("%s: %s, want %s", c.tool, text, note)
				}
				after := inode(u.T, far)
				if after.Ino != before.Ino || after.Mtim != before.Mtim || after.Mode != before.Mode || after.Size != before.Size || after.Nlink != before.Nlink-1 {
					u.Errorf("%s: the other name was %+v, is %+v", c.tool, before, after)
				}
				u.holds(far, c.hereFor())
				if now := inode(u.T, near); now.Ino == before.Ino || now.Mode != before.Mode || now.Nlink != 1 {
					u.Errorf("%s: the name that was changed was %+v, is %+v", c.tool, before, now)
				}
				if got, err := os.ReadFile(near); err != nil || !strings.Contains(string(got), "there") {
					u.Errorf("%s left %q, %v", c.tool, got, err)
				}
				changed++
			}
		}
		refused := u.hardUndo(outside)
		u.Logf("%d files with other names changed, all other names as they were; %d undos that would break a hard link refused", changed, refused)
	})
}

// hardUndo undoes a change of a file that has another name since.
func (u *undoer) hardUndo(outside string) (refused int) {
	u.Helper()
	for _, c := range fileCalls {
		name := "undo" + c.tool + c.suffix()
		far := filepath.Join(outside, name)
		u.lay(u.path(name), c.hereFor())
		u.did("read_file", "file_path", u.path(name))
		if text := u.call(c, u.path(name)); strings.HasPrefix(text, "!") {
			u.Errorf("%s: %s", c.tool, text)
		}
		must(u, os.Link(u.path(name), far))
		before, content := inode(u.T, far), u.read(far)
		u.refused("UNDO_CONFLICT", "change_id", u.last(name))
		u.refused("UNDO_CONFLICT", "file_path", u.path(name))
		if after := inode(u.T, far); after != before || u.read(far) != content {
			u.Errorf("the other name was %+v, is %+v", before, after)
		}
		must(u, os.Remove(far)) // a name less: it can be undone
		u.did("undo_change", "file_path", u.path(name))
		u.holds(u.path(name), c.hereFor())
		refused += 2
	}
	return refused
}

// read is the content of the file at an absolute path.
func (u *undoer) read(path string) string {
	u.Helper()
	b, err := os.ReadFile(path)
	must(u, err)
	return string(b)
}

// inode is what the system says of a name, without when it was read.
func inode(t *testing.T, path string) syscall.Stat_t {
	t.Helper()
	var st syscall.Stat_t
	must(t, syscall.Lstat(path, &st))
	st.Atim = syscall.Timespec{}
	return st
}

package skills_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/tools/skills"
)

// A disk is Files over one directory: what a link leads to outside of it does not exist.
type disk struct {
	root  *os.Root
	dir   string
	opens atomic.Int64 // files opened so far
	reads atomic.Int64 // bytes read so far
}

func newDisk(t testing.TB, dir string) *disk {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &disk{root: root, dir: dir}
}

// below is path as the root knows it.
func (d *disk) below(path string) (string, error) {
	rel, err := filepath.Rel(d.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return rel, nil
}

// ReadDir shows links as what they lead to.
func (d *disk) ReadDir(path string, limit int) ([]fs.FileInfo, error) {
	rel, err := d.below(path)
	if err != nil {
		return nil, err
	}
	dir, err := d.root.Open(rel)
	if err != nil {
		return nil, missing(err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []fs.FileInfo
	for _, name := range names[:min(limit, len(names))] {
		if info, err := d.root.Stat(filepath.Join(rel, name)); err == nil {
			out = append(out, info)
		}
	}
	return out, nil
}

var errKind = errors.New("not a regular file")

// Open opens a regular file. A pipe without a writer would block without O_NONBLOCK.
func (d *disk) Open(path string) (fs.File, error) {
	rel, err := d.below(path)
	if err != nil {
		return nil, err
	}
	d.opens.Add(1)
	file, err := d.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, missing(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errKind}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return counted{file, d}, nil
}

// missing is what a link out of the root is: nothing.
func missing(err error) error {
	if strings.Contains(err.Error(), "escapes") {
		return fs.ErrNotExist
	}
	return err
}

// A counted file counts what is read of it.
type counted struct {
	*os.File
	disk *disk
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.disk.reads.Add(int64(n))
	return n, err
}

// write makes a file, and the directories above it.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link.
func link(t testing.TB, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

// scan looks at dirs of a disk, all of the project.
func scan(t testing.TB, x *skills.Index, d *disk, dirs ...string) skills.Set {
	t.Helper()
	var list []skills.Dir
	for _, dir := range dirs {
		list = append(list, skills.Dir{Path: filepath.Join(d.dir, dir)})
	}
	set, err := x.Scan(t.Context(), d, list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// names lists the skills of a set.
func names(set skills.Set) string {
	var out []string
	for _, s := range set.Skills {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

// one makes a skill of a text and returns it.
func one(t testing.TB, text string) skills.Skill {
	t.Helper()
	d := newDisk(t, t.TempDir())
	write(t, filepath.Join(d.dir, "s", "SKILL.md"), text)
	set := scan(t, skills.New(), d, "")
	if len(set.Skills) != 1 {
		t.Fatalf("got no skill: %v", set.Dropped)
	}
	return set.Skills[0]
}

// dropped makes a file that is no skill and returns why.
func dropped(t testing.TB, text string) string {
	t.Helper()
	d := newDisk(t, t.TempDir())
	write(t, filepath.Join(d.dir, "s", "SKILL.md"), text)
	set := scan(t, skills.New(), d, "")
	if len(set.Skills) != 0 || len(set.Dropped) != 1 {
		t.Fatalf("got %+v, want one file dropped", set)
	}
	return set.Dropped[0].Reason
}

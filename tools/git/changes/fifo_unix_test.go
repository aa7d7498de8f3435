//go:build unix

package changes

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A FIFO, or a device without an end, in the place of a file with rules held up every command of the work tree. What
// attributes cannot be read is taken for a filter.
func TestFIFOs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		".git/info/attributes": "M a (a filter or an encoding of .gitattributes applies)",
		".git/info/exclude":    "M a one>two", ".git/index": "", ".gitignore": "M a one>two",
		".gitattributes": "M a (a filter or an encoding of .gitattributes applies)",
		"../attributes":  "M a (a filter or an encoding of .gitattributes applies)", "../excludes": "M a one>two",
	} {
		r := newRepo(t)
		r.write("a", "one")
		r.commit()
		tick()
		r.sh("touch -d '1 hour ago' a; git status")
		home := filepath.Dir(r.dir)
		(&repo{t, home}).write(".gitconfig", "[core]\n\tattributesFile = ~/attributes\n\texcludesFile = ~/excludes\n")
		r.sh("mkdir -p .git/info; rm -f " + name)
		if err := syscall.Mkfifo(filepath.Join(r.dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		trees := New(home, filepath.Join(home, ".config"))
		defer trees.Close()
		s := trees.Begin(t.Context(), r.dir)
		if s.Blind() {
			if want != "" {
				t.Errorf("%s: nothing is known", name)
			}
			continue
		}
		r.write("a", "two")
		if got := r.told(s.End(10, everything).Changes); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	r := newRepo(t)
	r.write("a", "one")
	r.commit()
	r.git("config", "core.attributesFile", "/dev/zero")
	trees := New("", "")
	defer trees.Close()
	s := trees.Begin(t.Context(), r.dir)
	r.write("a", "two")
	if found := s.End(10, everything); len(found.Changes) != 1 || found.Changes[0].Why == "" {
		t.Errorf("with attributes that cannot be read: %+v", found)
	}
}

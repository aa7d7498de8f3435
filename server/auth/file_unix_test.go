//go:build unix

package auth

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stranger is a user who is neither root nor who runs the tests.
const stranger = 54321

// asRoot skips a test that must give files away. CI runs the tests as root, too.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away; run the tests as root, too")
	}
}

// A server does not believe a stranger's file. Root's commands see to the file of a service: where the directory is
// the service's own, too.
func TestForeignTokens(t *testing.T) {
	t.Parallel()
	asRoot(t)
	f := tokenFile(t)
	f.add(t, Token{Principal: "ann"})
	if err := os.Chown(f.path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	want := f.path + ": belongs to another user"
	_, err := New(Options{Mode: "token", TokenFile: f.path})
	_, list := f.List()
	for _, err := range []error{err, list} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := os.Chown(filepath.Dir(f.path), stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Mode: "token", TokenFile: f.path}); err == nil {
		t.Error("a server of root believes the file of a service")
	}
	if tokens, err := f.List(); err != nil || len(tokens) != 1 {
		t.Errorf("got %v (%v)", tokens, err)
	}
}

// What root writes for a service belongs to the service, which could not read it otherwise.
func TestRootWritesForAService(t *testing.T) {
	t.Parallel()
	asRoot(t)
	f := tokenFile(t)
	if err := os.Chown(filepath.Dir(f.path), stranger, stranger); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a new file, and one that is there
		f.add(t, Token{Principal: "ann"})
		for _, name := range []string{f.path, f.path + ".lock"} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); st.Uid != stranger || st.Gid != stranger || info.Mode().Perm() != 0o600 {
				t.Errorf("%s belongs to %d:%d with mode %v", name, st.Uid, st.Gid, info.Mode())
			}
		}
	}
}

// A pipe is refused, not waited for.
func TestTokenPipe(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	if err := syscall.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.List(); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("got %v", err)
	}
}

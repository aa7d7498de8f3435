package leaktest

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Public returns a new directory that other users of this machine can enter; it is removed when the test is over. Its
// path is so short that it can hold a Unix socket. Usually it lies in TMPDIR. If that is deep, or private, or lies in a
// directory that is, Public takes the place where all users have their temporary files. It skips the test if there is
// none. It is safe for concurrent use.
func Public(t testing.TB) string {
	t.Helper()
	if len(os.TempDir()) < maxPublic && entered(os.TempDir()) {
		dir, err := os.MkdirTemp("", "public") //nolint:usetesting // others cannot enter t.TempDir
		if err == nil {
			t.Cleanup(func() { removeAll(dir) })
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir := away.take(t)
	if dir == "" {
		t.Skip("it needs a directory that other users can enter: TMPDIR, /tmp and /var/tmp are private")
	}
	return dir
}

// away is the run directory of this process outside of TMPDIR, while tests use it. The reaper looks into TMPDIR only:
// if this process is killed, the next one that needs such a directory sweeps there.
var away outside

type outside struct {
	mu    sync.Mutex
	run   *runDir // nil: no test uses it
	users int
}

// take makes a directory for a test; "": there is no place for it.
func (o *outside) take(t testing.TB) string {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.run == nil {
		for _, place := range []string{"/tmp", "/var/tmp"} {
			if !entered(place) {
				continue
			}
			if run, err := makeRun(parentDir(place)); err == nil {
				o.run = run
				sweep(parentDir(place))
				break
			}
		}
	}
	if o.run == nil {
		return ""
	}
	dir, err := os.MkdirTemp(o.run.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	o.users++
	t.Cleanup(func() { o.give(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others enter it
		t.Fatal(err)
	}
	return dir
}

// give removes a test's directory, and with the last one the place of all.
func (o *outside) give(dir string) {
	removeAll(dir)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.users--; o.users == 0 {
		o.run.remove()
		o.run = nil
	}
}

// maxPublic is the longest TMPDIR for Public, in bytes. The address of a Unix socket has at most 103 on macOS.
const maxPublic = 70

// entered says whether all users can enter a directory.
func entered(dir string) bool {
	at, err := filepath.EvalSymlinks(dir)
	for err == nil {
		var info os.FileInfo
		if info, err = os.Stat(at); err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
		at = filepath.Dir(at)
	}
	return false
}

// Dir returns a new directory, named without links; it is removed when the test is over. Its path is at most maxDir
// bytes long, however deep TMPDIR is, so that an answer which is compared with a text does not shorten it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil && len(dir) > maxDir {
		dir, err = filepath.EvalSymlinks(Public(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// maxDir is the longest path of Dir, in bytes. Answers shorten a path at about 200.
const maxDir = 120

// Socket makes a Unix socket at a path of any length: one that is too long for an address is made elsewhere and moved
// there. It skips the test where that is another file system. The socket is open until the test is over.
func Socket(t testing.TB, path string) {
	t.Helper()
	at := filepath.Join(Public(t), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Rename(at, path); err != nil {
		t.Skipf("a socket cannot be moved to where it is needed: %v", err)
	}
}

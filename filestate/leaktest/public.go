package leaktest

import (
	"os"
	"path/filepath"
	"testing"
)

// Public returns a new directory that other users of this machine can enter; it is removed when the test is over. Its
// path is so short that it can hold a Unix socket. Usually it lies in TMPDIR. If that is deep, or private, or lies in a
// directory that is, Public takes the place where all users have their temporary files. It skips the test if there is
// none.
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
	for _, place := range []string{"/tmp", "/var/tmp"} {
		if !entered(place) {
			continue
		}
		// A run directory, since the reaper looks into TMPDIR only: if this process is killed, the next one sweeps
		// there.
		if run, err := makeRun(parentDir(place)); err == nil {
			t.Cleanup(run.remove)
			sweep(parentDir(place))
			return run.dir
		}
	}
	t.Skip("it needs a directory that other users can enter: TMPDIR, /tmp and /var/tmp are private")
	return ""
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

package replaytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"

	"codehand/filestate/leaktest"
)

// Program builds the program and returns its path. All packages that one run of `go test` tests share it.
func Program(t testing.TB) string {
	t.Helper()
	dir, err := Build("codehand", func(dir string) error { return GoBuild("", dir, "codehand/cmd/codehand") })
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "codehand")
}

// GoBuild builds packages into the directory to, without cgo as they are released, so that nothing is linked at their
// start. It leaves paths as they are, so that Go's cache has the packages already where there is no C compiler. It
// works in dir, which is in a module of its own; "": the current directory, which is in ours. args are packages, and
// flags before them. The error has what the compiler said.
func GoBuild(dir, to string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", to + string(filepath.Separator)},
		args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if dir != "" {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Build returns the directory of that name that fill has filled. fill runs once in a run of `go test`, whichever of its
// packages is first, or once in a process where the runs cannot be told apart. The directory lies in the user's cache
// directory and is removed by the next run; where there is none that can be written to, in the temporary directory of
// the process. It is safe for concurrent use.
func Build(name string, fill func(dir string) error) (string, error) {
	once, _ := builds.LoadOrStore(name, sync.OnceValues(func() (string, error) { return buildShared(name, fill) }))
	return once.(func() (string, error))()
}

// builds are what this process has asked for, by name.
var builds sync.Map

// cache is the cache directory before any test changed the environment.
var cache, _ = os.UserCacheDir()

// held are the locks of this process: while it lives no other run removes the directory of its run.
var held sync.Map

// ours opens the directory of this run and removes those of runs that are over.
var ours = sync.OnceValues(func() (string, error) {
	all := filepath.Join(cache, "codehand-test")
	id, _ := leaktest.RunID()
	run := filepath.Join(all, id)
	err := fmt.Errorf("there is no cache directory")
	if cache != "" {
		err = os.MkdirAll(run, 0o755)
	}
	if err != nil {
		return leaktest.Kept()
	}
	lock := flock.New(run + ".lock")
	if err := lock.RLock(); err != nil {
		return leaktest.Kept()
	}
	leaktest.KeepOpen(lock.Path())
	held.Store(run, lock)
	entries, _ := os.ReadDir(all)
	for _, e := range entries {
		old, ok := strings.CutSuffix(e.Name(), ".lock")
		if other := flock.New(filepath.Join(all, e.Name())); ok && old != id {
			// A run that is between two packages holds nothing; it builds again.
			if free, err := other.TryLock(); err == nil && free {
				_ = os.RemoveAll(filepath.Join(all, old))
				_ = os.Remove(other.Path())
				_ = other.Unlock()
			}
		}
	}
	return run, os.MkdirAll(run, 0o755) // it was removed by a run that began together with this one
})

func buildShared(name string, fill func(dir string) error) (string, error) {
	run, err := ours()
	if err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(run, name+".lock"))
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer func() { _ = lock.Unlock() }()
	dir, done := filepath.Join(run, name), filepath.Join(run, name+".done")
	if _, err := os.Stat(done); err == nil {
		if _, unique := leaktest.RunID(); unique {
			return dir, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := fill(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(done, nil, 0o600)
}

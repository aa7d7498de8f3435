package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	o := Options{Dir: filepath.Join(t.TempDir(), "made", "when missing"), Sync: time.Second}
	for _, url := range []string{"memory:", "embedded:"} {
		s, err := Open(t.Context(), url, o)
		must(t, err)
		must(t, s.Set(t.Context(), "sess.p.a", []byte("v")))
		if stats := s.(Stater).Stats(); stats.Keys != 1 || stats.Bytes != cost("sess.p.a", []byte("v")) || stats.MaxBytes != 4<<30 || stats.Down != nil {
			t.Errorf("%s: %+v", url, stats)
		}
		must(t, s.Close())
	}
	for _, url := range []string{"", "memory", "embedded", "nats:", "embedded:/x"} {
		if s, err := Open(t.Context(), url, o); s != nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", url)) {
			t.Errorf("%q: %v, %v", url, s, err)
		}
	}
	if s, err := Open(t.Context(), "embedded:", Options{Dir: "relative"}); s != nil || err == nil {
		t.Errorf("a relative directory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Open(ctx, "embedded:", o); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a start that was given up: %v, %v", s, err)
	}
	s := openReal(t, o) // the lock was let go
	wantValue(t, s, "sess.p.a", "v")
	must(t, s.Close())
}

// One Store has a directory: the first that opens it.
func TestInUse(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	first := openReal(t, o)
	second, err := Open(t.Context(), "embedded:", o)
	want := fmt.Sprintf("data dir %s is in use by pid %d", o.Dir, os.Getpid())
	if used, ok := errors.AsType[*InUseError](err); second != nil || !ok || used.PID != os.Getpid() || used.Dir != o.Dir || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if pid, used := InUse(o.Dir); pid != os.Getpid() || !used {
		t.Errorf("InUse: %d, %v", pid, used)
	}
	must(t, os.Remove(filepath.Join(o.Dir, "lock.pid")))
	if _, err := Open(t.Context(), "embedded:", o); err == nil || err.Error() != "data dir "+o.Dir+" is in use by another process" {
		t.Errorf("without a pid: %v", err)
	}
	must(t, first.Close())
	must(t, first.Close())
	if pid, used := InUse(o.Dir); pid != 0 || used {
		t.Errorf("InUse of what is closed: %d, %v", pid, used)
	}
	must(t, openReal(t, o).Close())
}

// Who else is on the machine can neither read the files nor say where they lead.
func TestFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes, and links need a right of their own")
	}
	o := Options{Dir: t.TempDir(), compact: 1000, Sync: time.Hour}
	s := openReal(t, o)
	store := filepath.Join(o.Dir, "store")
	for compacted := false; !compacted; { // until the first snapshot has its name
		must(t, s.Set(t.Context(), "token.a", make([]byte, 1000)))
		_, err := os.Stat(filepath.Join(store, snapshotName))
		compacted = err == nil
	}
	must(t, s.Close())
	var files []string
	for _, dir := range []string{o.Dir, store} {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			info, err := e.Info()
			must(t, err)
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", e.Name(), info.Mode())
			}
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) < 4 { // lock, store, snapshot, log
		t.Errorf("there are only %v", files)
	}
	for _, path := range files {
		aside := filepath.Join(t.TempDir(), "aside")
		must(t, os.Rename(path, aside))
		must(t, os.Symlink(aside, path))
		if _, err := Open(t.Context(), "embedded:", o); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("a link as %s: %v", path, err)
		}
		must(t, os.Remove(path))
		must(t, os.Rename(aside, path))
	}
	must(t, openReal(t, o).Close())
}

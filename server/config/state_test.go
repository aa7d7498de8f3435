package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOpenStateMakesIt(t *testing.T) {
	w := newWorld(t)
	if err := os.Symlink(w.path("home"), w.path("link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // made, then found
		dir, err := OpenState(w.path("link/.local/state/codehand"))
		if err != nil {
			t.Fatal(err)
		}
		if dir != w.path("home/.local/state/codehand") {
			t.Errorf("%s is not canonical", dir)
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

// Everything that SEC-46 plants is refused, and the refusal names the component.
func TestOpenStateRefuses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("mode bits mean nothing on Windows")
	}
	mkdir := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		arrange func(t *testing.T, w *world)
		names   string // component in the error; "": accepted
	}{
		"mode 0777":                 {func(t *testing.T, w *world) { mkdir(t, w.path("p/state"), 0o777) }, "p/state"},
		"mode 0750":                 {func(t *testing.T, w *world) { mkdir(t, w.path("p/state"), 0o750) }, "p/state"},
		"mode 0701":                 {func(t *testing.T, w *world) { mkdir(t, w.path("p/state"), 0o701) }, "p/state"},
		"group-writable parent":     {func(t *testing.T, w *world) { mkdir(t, w.path("p"), 0o770) }, "p"},
		"world-writable parent":     {func(t *testing.T, w *world) { mkdir(t, w.path("p"), 0o777) }, "p"},
		"sticky parent":             {func(t *testing.T, w *world) { mkdir(t, w.path("p"), 0o777|os.ModeSticky) }, ""},
		"world-writable above that": {func(t *testing.T, w *world) { mkdir(t, w.top, 0o777) }, ""},
		"a file":                    {func(t *testing.T, w *world) { w.write(t, "p/state", "") }, "p/state"},
		"a link": {func(t *testing.T, w *world) {
			mkdir(t, w.path("p"), 0o755)
			mkdir(t, w.path("target"), 0o700)
			if err := os.Symlink(w.path("target"), w.path("p/state")); err != nil {
				t.Fatal(err)
			}
		}, "p/state"},
		"a link inside": {func(t *testing.T, w *world) {
			mkdir(t, w.path("p/state"), 0o700)
			if err := os.Symlink(w.top, w.path("p/state/locks")); err != nil {
				t.Fatal(err)
			}
		}, "p/state/locks"},
		"a dangling link deep inside": {func(t *testing.T, w *world) {
			mkdir(t, w.path("p/state/sessions/a/b"), 0o700)
			mkdir(t, w.path("p/state"), 0o700)
			if err := os.Symlink("nowhere", w.path("p/state/sessions/a/b/jobs")); err != nil {
				t.Fatal(err)
			}
		}, "p/state/sessions/a/b/jobs"},
		"a link in somebody's workspace": {func(t *testing.T, w *world) {
			mkdir(t, w.path("p/state/workspaces/a"), 0o700)
			mkdir(t, w.path("p/state"), 0o700)
			if err := os.Symlink("nowhere", w.path("p/state/workspaces/a/link")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"a link that a command put into its caches": {func(t *testing.T, w *world) {
			mkdir(t, w.path("p/state/cache/a"), 0o700)
			mkdir(t, w.path("p/state"), 0o700)
			if err := os.Symlink(w.top, w.path("p/state/cache/a/bin")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"workspaces behind a link": {func(t *testing.T, w *world) {
			mkdir(t, w.path("p/state"), 0o700)
			if err := os.Symlink(w.top, w.path("p/state/workspaces")); err != nil {
				t.Fatal(err)
			}
		}, "p/state/workspaces"},
		"a parent behind a link in a bad place": {func(t *testing.T, w *world) {
			mkdir(t, w.path("bad/target"), 0o755)
			mkdir(t, w.path("bad"), 0o777)
			if err := os.Symlink(w.path("bad/target"), w.path("p")); err != nil {
				t.Fatal(err)
			}
		}, "bad"},
		"other owner": {func(t *testing.T, w *world) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			mkdir(t, w.path("p/state"), 0o700)
			if err := os.Chown(w.path("p/state"), 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}, "p/state"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.arrange(t, w)
			if name == "world-writable above that" {
				c.names = filepath.Base(w.top)
			}
			_, err := OpenState(w.path("p/state"))
			switch {
			case c.names == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)):
				t.Errorf("got %v, want a refusal that names %s", err, c.names)
			}
		})
	}
	if _, err := OpenState("relative"); err == nil {
		t.Error("a relative state directory was taken")
	}
}

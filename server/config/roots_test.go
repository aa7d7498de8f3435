package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
)

func TestRootsFromTheFirstThatNamesThem(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"a", "b", "c,d"} {
		w.write(t, dir+"/x", "")
	}
	check := func(want ...string) {
		t.Helper()
		if c, _ := w.load(t); !slices.Equal(c.Roots, want) {
			t.Errorf("roots %v, want %v", c.Roots, want)
		}
	}
	check(w.WorkDir)
	w.user(t, "roots = [\""+w.path("a")+"\"]\n")
	check(w.path("a"))
	w.Env = append(w.Env, "CODEHAND_ROOTS="+w.path("b")+string(filepath.ListSeparator)+w.path("c,d"))
	check(w.path("b"), w.path("c,d"))
	w.Roots = []string{"../a", w.path("b") + "/"}
	check(w.path("a"), w.path("b"))
}

// A directory where programs happen to be started never becomes a root by itself; by name, most of them may.
func TestNeverARootByAccident(t *testing.T) {
	dirs := []string{string(filepath.Separator)}
	if runtime.GOOS == "linux" {
		dirs = append(dirs, "/etc", "/proc/self", "/dev", "/sys")
	}
	// what macOS keeps for itself is none on any system, also where it does not exist
	for _, dir := range []string{"/System", "/Library/Preferences", "/private/etc"} {
		if (&loader{env: map[string]string{}}).byAccident(dir) == "" {
			t.Errorf("%s may become a root by itself", dir)
		}
	}
	w := newWorld(t)
	for _, dir := range append(dirs, w.Home) {
		w.WorkDir = dir
		c, warnings := w.load(t)
		if len(c.Roots) != 0 || len(warnings) != 1 || !strings.Contains(warnings[0].Text, dir) {
			t.Errorf("started in %s: roots %v, warnings %v", dir, c.Roots, warnings)
		}
	}
	link := w.path("link")
	if err := os.Symlink(w.Home, link); err != nil {
		t.Fatal(err)
	}
	w.WorkDir = link
	if c, _ := w.load(t); len(c.Roots) != 0 {
		t.Errorf("the home directory through a link: %v", c.Roots)
	}
	w.Env = append(w.Env, "SYSTEMROOT="+w.path("windows"))
	w.write(t, "windows/System32/x", "")
	w.WorkDir = w.path("windows/System32")
	if c, _ := w.load(t); len(c.Roots) != 0 {
		t.Errorf("System32: %v", c.Roots)
	}
}

func TestBadRoots(t *testing.T) {
	for arg, want := range map[string]string{"missing": "missing does not exist; make it, or name another directory", "file": "is not a directory", "": "must be a path"} {
		w := newWorld(t)
		w.write(t, "project/file", "")
		w.Roots = []string{arg}
		if got := w.refused(t).Error(); !strings.Contains(got, "argument ROOT: ") || !strings.Contains(got, want) {
			t.Errorf("%q: %s", arg, got)
		}
	}
}

// A client that a click starts went without tools when one of its folders was gone. The others are used, and a warning
// names what is left out.
func TestMissingRootBesideAnother(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/here/x", "")
	w.Roots = []string{"gone", "here"}
	c, warnings := w.load(t)
	if want := []string{w.path("project/here")}; !slices.Equal(c.Roots, want) {
		t.Errorf("roots: %v, want %v", c.Roots, want)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "gone") || !strings.Contains(warnings[0].String(), "left out") {
		t.Errorf("warnings: %v", warnings)
	}
	w.Roots = []string{"gone", "gone too"}
	if got := w.refused(t).Error(); !strings.Contains(got, "gone too") {
		t.Error(got)
	}
}

// The home directory by name is allowed, with a warning and a rule that keeps changes away from the state directory.
func TestHomeAsRoot(t *testing.T) {
	w := newWorld(t)
	w.Env = nil
	w.Roots = []string{w.Home}
	c, warnings := w.load(t)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "home directory") {
		t.Errorf("warnings: %v", warnings)
	}
	if !contains(w.Home, c.StateDir) {
		t.Fatalf("state %s is not below %s", c.StateDir, w.Home)
	}
	p, err := permission.New(permission.Options{Deny: c.Permissions.Deny, Home: c.Home})
	if err != nil {
		t.Fatal(err)
	}
	decide := func(tool, path string, reads bool) permission.Verdict {
		return p.Decide(permission.Request{
			Tool: tool, Family: map[bool]permission.Family{true: permission.FamilyRead, false: permission.FamilyEdit}[reads], Mode: permission.AcceptEdits, Own: permission.Allow, ReadOnly: reads, Cwd: w.Home,
			Targets: []permission.Target{{Kind: permission.Path, Value: path, Real: path, Inside: true}},
		}).Verdict
	}
	for _, c := range []struct {
		tool, path string
		reads      bool
		want       permission.Verdict
	}{
		{"write_file", filepath.Join(c.StateDir, "sessions/x"), false, permission.Deny},
		{"read_file", filepath.Join(c.StateDir, "sessions/x"), true, permission.Allow},
		{"write_file", filepath.Join(w.Home, "x"), false, permission.Allow},
	} {
		if got := decide(c.tool, c.path, c.reads); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.tool, c.path, got, c.want)
		}
	}
}

func TestStateAndRootsApart(t *testing.T) {
	for _, c := range []struct{ root, state, want string }{
		{"project", "project/state", "contains the state directory"},
		{"project", "project", "lies in the state directory"},
		{"state/inner", "state", "lies in the state directory"},
		{"project", "project-state", ""},
		{"project", "link/state", "contains the state directory"}, // link leads into project
	} {
		w := newWorld(t)
		w.write(t, "state/inner/x", "")
		if err := os.Symlink(w.path("project"), w.path("link")); err != nil {
			t.Fatal(err)
		}
		w.Roots = []string{w.path(c.root)}
		w.Flags["state-dir"] = w.path(c.state)
		if c.want == "" {
			w.load(t)
		} else if got := w.refused(t).Error(); !strings.Contains(got, c.want) {
			t.Errorf("root %s, state %s: %s, want %s", c.root, c.state, got, c.want)
		}
	}
}

func TestUsualStateDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the places differ; this is the Linux list")
	}
	w := newWorld(t)
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, w.path("home/.local/state/codehand")},
		{[]string{"XDG_STATE_HOME=relative"}, w.path("home/.local/state/codehand")},
		{[]string{"XDG_STATE_HOME=" + w.path("s")}, w.path("s/codehand")},
		{[]string{"XDG_STATE_HOME=" + w.path("s"), "STATE_DIRECTORY=" + w.path("d") + ":" + w.path("e")}, w.path("d")},
		{[]string{"STATE_DIRECTORY=" + w.path("d"), "CODEHAND_STATE_DIR=" + w.path("c")}, w.path("c")},
	} {
		w.Env = c.env
		if got, _ := w.load(t); got.StateDir != c.want {
			t.Errorf("%v: %s, want %s", c.env, got.StateDir, c.want)
		}
	}
	w.Env, w.Home = nil, ""
	if got := w.refused(t).Error(); !strings.Contains(got, "set HOME or CODEHAND_STATE_DIR") {
		t.Error(got)
	}
}

package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// `pip install` outside of a virtual environment failed, since neither the system's directories nor ~/.local can be
// written. It has a base of its own, beside which the person's packages stay in sight.
func TestPipInstallsForItself(t *testing.T) {
	t.Parallel()
	home := tree(t, ".local/lib/python3.99/site-packages/own.py")
	cache, elsewhere := t.TempDir(), t.TempDir()
	c := New(Options{Whose: Whose{Home: home, Personal: true}}, func() []string { return []string{"PATH=/usr/bin"} })
	env := c.installed(cache)
	for _, want := range []string{"PYTHONUSERBASE=" + filepath.Join(cache, "python")} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	if path := env[len(env)-1]; !strings.HasPrefix(path, "PATH=/usr/bin:") || !strings.Contains(path, filepath.Join(cache, "python", "bin")) {
		t.Errorf("%s", path)
	}
	note := filepath.Join("lib", "python3.99", "site-packages", "codehand-home.pth")
	text, err := os.ReadFile(filepath.Join(cache, "python", note))
	if want := filepath.Join(home, ".local/lib/python3.99/site-packages") + "\n"; err != nil || string(text) != want {
		t.Errorf("%v: %q, want %q", err, text, want)
	}

	planted := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(planted, "python")); err != nil {
		t.Skip(err)
	}
	c.installed(planted)
	if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
		t.Errorf("it wrote through a link of a command: %v", left)
	}

	c = New(Options{Whose: Whose{Home: home, Personal: true}}, func() []string { return []string{"PYTHONUSERBASE=/mine"} })
	if env := c.installed(cache); slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "PYTHONUSERBASE=") }) {
		t.Errorf("the person's base is lost: %q", env)
	}
}

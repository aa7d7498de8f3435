package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A command put a link in the place of a private cache: the server made directories where it led, and no other command
// or process of the server could start.
func TestLinksInCaches(t *testing.T) {
	t.Parallel()
	state, outside := t.TempDir(), t.TempDir()
	c := New(Options{Caches: filepath.Join(state, "cache"), Whose: Whose{Owner: "local"}}, func() []string { return nil })
	all, inspected := c.cache()
	if all == "" || inspected == "" {
		t.Fatal("there are no caches")
	}
	for _, u := range []Use{{}, {ReadOnly: true}} {
		p, _, _, _ := c.profile(&u)
		for _, dir := range p.Writable {
			if dir == filepath.Dir(all) || within(filepath.Dir(all), dir) {
				t.Errorf("%+v may change %s, which holds the caches", u, dir)
			}
		}
		if got := slices.Contains(p.Writable, all); got == u.ReadOnly {
			t.Errorf("%+v may change %s: %v", u, all, got)
		}
	}
	link := func(path string) {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(all, "npm"))
	c.Environ(Use{}, true)
	link(all) // as commands of earlier versions could
	link(inspected)
	env := slices.Concat(c.Environ(Use{}, true), c.Environ(Use{ReadOnly: true}, true))
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "npm_config_cache="+inspected) }) {
		t.Errorf("no cache of npm in %q", env)
	}
	for _, dir := range []string{all, inspected} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	if made, err := os.ReadDir(outside); err != nil || len(made) > 0 {
		t.Errorf("made outside: %v, %v", made, err)
	}
}

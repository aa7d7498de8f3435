package hooks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A hook runs with all rights, so neither its program nor what that starts is looked for where commands write.
func TestNoProgramsOfCommands(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"ws/bin", "written/bin", "own/bin"} {
		if err := os.MkdirAll(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	list := string(filepath.ListSeparator)
	t.Setenv("PATH", in("ws/bin")+list+in("written/bin")+list+in("own/bin"))
	r := &Runner{o: Options{Written: []string{in("written")}}}
	if env := r.program([]string{"x"}, 0, Event{Place: Place{Roots: []string{in("ws")}}}, nil).env; !slices.Contains(env, "PATH="+in("own/bin")) {
		t.Errorf("its environment is %q", env)
	}
}

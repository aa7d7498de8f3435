package confine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/tools/guarded"
	"codehand/tools/sandbox"
)

// What a rule denied as a whole stayed open where the profile opens the same path, or one below it: a second root, a
// directory of sandbox.readable, the person's `.gitconfig` and `.ssh/config`.
func TestDeniedAndOpened(t *testing.T) {
	t.Parallel()
	dir := tree(t, "ws/f", "ws/sub/.git/HEAD", "ws/sub/.git/config", "other/f", "sdk/in/f", "home/.gitconfig", "home/.ssh/config", "home/.ssh/known_hosts", "data/f")
	if err := os.Symlink("other", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		rule, hide string
		closed     []string // of what is open else
	}{
		{"Read(/" + in("other") + "/**)", "", []string{"other"}},
		{"Read(/" + in("alias") + "/**)", "", []string{"other"}},
		{"Read(/" + in("sdk") + "/**)", "", []string{"sdk"}},
		{"Read(/" + in("sdk") + "/in/**)", "", []string{}},
		{"Read(/" + in("data") + ")", "", []string{"data"}},
		{"Read(~/.ssh/**)", "", []string{"home/.ssh/config", "home/.ssh/known_hosts"}},
		{"Read(~/.gitconfig)", "", []string{"home/.gitconfig"}},
		{"Read(~/**)", "", []string{"home/.gitconfig", "home/.ssh/config", "home/.ssh/known_hosts"}},
		{"Read(nothing)", in("home/.ssh"), []string{"home/.ssh/config", "home/.ssh/known_hosts"}},
		{"Read(nothing)", in("home/.gitconfig"), []string{"home/.gitconfig"}},
		{"Read(nothing)", in("sdk"), []string{"sdk"}},
		{"Read(nothing)", dir, []string{"home/.gitconfig", "home/.ssh/config", "home/.ssh/known_hosts"}}, // the rest is named
	} {
		for _, readOnly := range []bool{false, true} {
			o := Options{Places: Places{Readable: []string{in("sdk")}, Writable: []string{in("data")}}, Whose: Whose{Home: in("home"), Personal: true}, Protected: new(guarded.Names)}
			if c.hide != "" {
				o.Hide = []string{c.hide}
			}
			u := Use{Roots: []string{in("ws"), in("other")}, Rules: denyingAt(t, in("home"), in("ws"), c.rule), ReadOnly: readOnly}
			p, _, _, _ := New(o, func() []string { return nil }).profile(&u)
			opened := slices.Concat(p.Readable, p.Writable)
			for _, name := range []string{"ws", "other", "sdk", "data", "home/.gitconfig", "home/.ssh/config", "home/.ssh/known_hosts"} {
				if readOnly && name == "data" {
					continue
				}
				if open := slices.Contains(opened, in(name)) && !slices.Contains(p.Hidden, in(name)); open == slices.Contains(c.closed, name) {
					t.Errorf("%s, hide %q, only reads %v: %s is open: %v", c.rule, c.hide, readOnly, name, open)
				}
			}
		}
	}
}

// A command ran in a root of which a rule lets nothing be read, and read all of it.
func TestNoCommandInWhatIsDenied(t *testing.T) {
	t.Parallel()
	dir := tree(t, "ws/f", "ws/sub/f", "other/f")
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		rule, dir string
		refused   bool
	}{
		{"Read(**)", "ws", true},
		{"Read(/**)", "", true},
		{"Read(/" + dir + "/**)", "ws/sub", true},
		{"Read(//**)", "ws", true},
		{"Read(/sub/**)", "ws/sub", true},
		{"Read(/sub/**)", "ws", false},
		{"Read(/" + in("other") + "/**)", "ws", false},
		{"Read(/" + in("other") + "/**)", "other", true},
		{"Read(f)", "ws", false},
	} {
		for level, refuses := range map[sandbox.Level]bool{sandbox.LevelFull: c.refused, sandbox.LevelKernel: false} {
			s := &Session{Confiner: New(Options{
				Protected: new(guarded.Names),
				Proven:    func() sandbox.Report { return sandbox.Report{Level: level} },
				Needed:    func() sandbox.Level { return sandbox.LevelNone },
			}, func() []string { return nil }), Temp: t.TempDir()}
			at := ""
			if c.dir != "" {
				at = in(c.dir)
			}
			command, err := s.Command(Use{Roots: []string{in("ws"), in("other")}, Dir: at, Rules: denyingAt(t, "", in("ws"), c.rule)})
			command.Drop()
			if _, is := errors.AsType[*DeniedError](err); is != refuses || err != nil && !is {
				t.Errorf("%s in %s at level %d: %v", c.rule, c.dir, level, err)
			}
		}
	}
}

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/guarded"
	"codehand/tools/sandbox"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What opens places to commands may lie in a root. A command put a link there, and the next session opened what that
// leads to: keys of the person's, for writing with sandbox.writable. It wrote the programs of hooks likewise.
func TestNamedBySettings(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("bash is not installed")
	}
	for name, text := range map[string]string{
		"moved":     `mv a x; mkdir a; ln -s /etc a/read; ln -s /etc a/write; ln -s /etc a/skills`,
		"replaced":  `rm -rf a/read a/write a/skills; for n in read write skills; do mv a/$n y$n; ln -s /etc a/$n; done`,
		"the link":  `rm -f link; ln -s /etc link; mv link z; ln -s /etc link`,
		"made":      `mkdir -p later; ln -s /etc later/read`,
		"a program": `echo evil >>b/hook.sh; mv b z; mkdir b; echo evil >b/hook.sh; cp b/hook.sh q; mv q z/hook.sh`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := tree(t, "a/read/x", "a/write/x", "a/skills/x", "b/hook.sh", "real/x")
			in := func(name string) string { return filepath.Join(root, name) }
			if err := os.Symlink("real", in("link")); err != nil {
				t.Fatal(err)
			}
			was := map[string]string{}
			paths := []string{"a/read", "a/write", "a/skills", "link", "later/read", "b/hook.sh"}
			for _, path := range paths {
				was[path], _ = filepath.EvalSymlinks(in(path))
			}
			c := New(Options{
				Protected: new(guarded.Names), Places: Places{
					Readable: []string{in("a/read"), in("real")}, Writable: []string{in("a/write")},
					Named: []Named{{in("a/read"), "sandbox.readable"}, {in("link"), "sandbox.readable"}, {in("real"), "sandbox.readable"},
						{in("later/read"), "sandbox.readable"}, {in("b/hook.sh"), "hooks"}},
				}}, func() []string { return nil })
			u := Use{Roots: []string{root}, Readable: []string{in("a/skills")}}
			p, _, _, _ := c.profile(&u)
			dir, err := os.OpenRoot(root)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			process, err := sandbox.Start(t.Context(), sandbox.Cmd{Path: bash, Args: []string{"-c", text + "; echo x >a/write/new; echo x >b/new; exit 7"},
				Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir, Profile: &p})
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip("this machine cannot confine:", err)
			}
			<-process.Done()
			process.End(0)
			if code := process.Exit().Code; code != 7 {
				t.Errorf("it ended with %d", code)
			}
			for _, path := range paths {
				if now, _ := filepath.EvalSymlinks(in(path)); now != was[path] && now != "" {
					t.Errorf("%s leads to %s, and led to %s", path, now, was[path])
				}
			}
			if text, err := os.ReadFile(in("b/hook.sh")); err != nil || len(text) > 0 {
				t.Errorf("the hook has %q, %v", text, err)
			}
			for _, free := range []string{"a/write/new", "b/new"} {
				if !exists(in(free)) {
					t.Errorf("%s cannot be made", free)
				}
			}
		})
	}
}

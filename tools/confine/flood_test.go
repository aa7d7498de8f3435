package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/tools/confine/look"
	"codehand/tools/guarded"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
)

// denying returns a policy of rules that deny, at root.
func denying(t *testing.T, root string, texts ...string) *permission.Policy {
	t.Helper()
	return denyingAt(t, "", root, texts...)
}

// denyingAt is denying with a home directory, for rules that begin with `~`.
func denyingAt(t *testing.T, home, root string, texts ...string) *permission.Policy {
	t.Helper()
	o := permission.Options{Home: home}
	for _, text := range texts {
		o.Deny = append(o.Deny, permission.Rule{Text: text, Origin: "test"})
	}
	policy, err := permission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return policy.At([]string{root}, root)
}

// A command made 20,000 files, and what was denied behind them in the order of names was open to the next one.
func TestFloodHidesNothing(t *testing.T) {
	t.Parallel()
	root := tree(t, "z/secret.txt", "z/deep/k.pem", "z/vault/x", "flood/")
	rules := denying(t, root, "Read(secret.txt)", "Read(*.pem)", "Read(vault/**)")
	want := []string{"z/deep/k.pem", "z/secret.txt", "z/vault"}
	var l look.Looker
	for i := range 2 {
		if got := below(t, root, ruledNow(&l, rules, []string{root}).Hide); !slices.Equal(got, want) {
			t.Fatalf("after %d floods: hides %q, want %q", i, got, want)
		}
		for j := range 20_100 {
			if err := os.WriteFile(filepath.Join(root, "flood", fmt.Sprint(i, "-", j)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What there is too much of is said, and what was known before counts.
func TestTooMuchToLookAt(t *testing.T) {
	t.Parallel()
	root := tree(t, "z/secret.txt", "flood/1", "flood/2", "flood/3", "flood/4")
	rules := denying(t, root, "Read(secret.txt)")
	var l look.Looker
	if got := ruledNow(&l, rules, []string{root}); len(got.Broken) > 0 {
		t.Fatalf("too much is too few: %v", got.Broken)
	}
	if err := os.WriteFile(filepath.Join(root, "flood", "5"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, left := range []int{1, 2, 3, 5, 7} {
		w := walk{looker: &l, roots: []string{root}, left: left, by: map[string]string{}}
		k := kind{name: "hide"}
		w.begin(&k, rules.Coverage()[0])
		broken := w.finish(&k)
		if got := below(t, root, tops(k.found)); !slices.Equal(got, []string{"z/secret.txt"}) || len(broken) != 1 {
			t.Errorf("with %d entries left: found %q, broken %v", left, got, broken)
		}
	}
}

// What a person made after the first command was protected a minute later.
func TestProtectedAtTheNextCommand(t *testing.T) {
	t.Parallel()
	root := tree(t, "sub/x", "plain.txt")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Protected: names}, func() []string { return nil })
	for _, made := range []string{"", ".claude/settings.json", "sub/.git/config", "sub/deep/.envrc", ".mcp.json"} {
		if made != "" {
			path := filepath.Join(root, made)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		got, _, whole := c.protectedNames(Use{Roots: []string{root}, Background: true})
		if !whole || made != "" && !slices.ContainsFunc(got, func(p string) bool { return within(filepath.Join(root, made), p) }) {
			t.Errorf("%s is not protected: %q", made, got)
		}
	}
}

// A hard link in the root showed what a rule denies.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	root := tree(t, "secret.txt", "vault/deep/key", "kept/x", "d/plain", "plain")
	rules := denying(t, root, "Read(/secret.txt)", "Read(vault/**)", "Edit(/kept/**)")
	var l look.Looker
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for i, c := range []struct{ from, to string }{
		{"plain", "d/other"}, {"secret.txt", "d/a"}, {"vault/deep/key", "d/b"}, {"vault/deep/key", "vault/c"}, {"kept/x", "y"},
	} {
		if err := os.Link(in(c.from), in(c.to)); err != nil {
			t.Fatal(err)
		}
		wantHide := [][]string{{}, {"d/a"}, {"d/a", "d/b"}, {"d/a", "d/b"}, {"d/a", "d/b"}}[i]
		wantKeep := [][]string{{}, {}, {}, {}, {"y"}}[i]
		got := ruledNow(&l, rules, []string{root})
		hide, keep := below(t, root, got.Hide), below(t, root, got.Keep)
		if want := slices.Concat(wantHide, []string{"secret.txt", "vault"}); !slices.Equal(hide, want) {
			t.Errorf("after %s: hides %q, want %q", c.to, hide, want)
		}
		if want := slices.Concat([]string{"kept"}, wantKeep); !slices.Equal(keep, want) || len(got.Broken) > 0 {
			t.Errorf("after %s: keeps %q, want %q; broken %v", c.to, keep, want, got.Broken)
		}
	}
}

// A command shut the directory of a denied file, so that it was not found, and the next one opened it again.
func TestShutDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root looks into every directory")
	}
	for _, mode := range []os.FileMode{0, 0o400, 0o100} {
		root := tree(t, "a/b/secret.txt", "a/b/more/k.pem", "c/x.yml")
		for rule, want := range map[string]string{
			"Read(secret.txt)": "a/b", "Read(/a/b/secret.txt)": "a/b", "Read(/a/b/**)": "a/b", "Read(*.pem)": "a/b",
			"Read(/a/*/secret.txt)": "a/b",
		} {
			if mode == 0o100 && rule == "Read(/a/b/secret.txt)" {
				want = "a/b/secret.txt" // it can be found, and so covered
			}
			if err := os.Chmod(filepath.Join(root, "a/b"), mode); err != nil {
				t.Fatal(err)
			}
			got := below(t, root, ruledNow(new(look.Looker), denying(t, root, rule), []string{root}).Hide)
			if err := os.Chmod(filepath.Join(root, "a/b"), 0o700); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(got, want) && !(mode == 0o100 && slices.Contains(got, "a/b/secret.txt")) {
				t.Errorf("mode %o: %s hides %q, want %s", mode, rule, got, want)
			}
		}
		// in a directory that commands write and that is no root
		outside := tree(t, "a/b/secret.txt")
		if err := os.Chmod(filepath.Join(outside, "a/b"), mode); err != nil {
			t.Fatal(err)
		}
		got := below(t, outside, ruledNow(new(look.Looker), denying(t, root, "Read(/"+outside+"/a/*/secret.txt)", "Read(/"+outside+"/a/b/secret.txt)"), []string{root}).Hide)
		if err := os.Chmod(filepath.Join(outside, "a/b"), 0o700); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(got, "a/b") && !slices.Contains(got, "a/b/secret.txt") {
			t.Errorf("mode %o: hides %q outside of the roots", mode, got)
		}
	}
}

// Where rules cannot be kept, no command runs that nothing else would keep from what they deny.
func TestUnkeptRulesRefuse(t *testing.T) {
	t.Parallel()
	root := tree(t, "secret.txt")
	for level, refused := range map[sandbox.Level]bool{sandbox.LevelFull: true, sandbox.LevelKernel: false} {
		c := New(Options{
			Protected: new(guarded.Names),
			Proven:    func() sandbox.Report { return sandbox.Report{Level: level} },
			Needed:    func() sandbox.Level { return sandbox.LevelNone },
		}, func() []string { return nil })
		c.looker.Most = 1
		s := &Session{Confiner: c, Temp: t.TempDir()}
		_, err := s.Command(Use{Roots: []string{root}, Rules: denying(t, root, "Read(secret.txt)")})
		if _, is := errors.AsType[*UnkeptError](err); is != refused {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

// BenchmarkRules is what a command waits for where rules deny files at any depth: a tree of 2,000 directories with ten
// files each, unchanged, with three rules. "walk" is one look at every entry for each rule, as it was before.
func BenchmarkRules(b *testing.B) {
	root := b.TempDir()
	for i := range 2000 {
		dir := filepath.Join(root, fmt.Sprint(i%50), fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	var o permission.Options
	for _, text := range []string{"Read(secret.txt)", "Read(*.pem)", "Read(vault/**)"} {
		o.Deny = append(o.Deny, permission.Rule{Text: text, Origin: "test"})
	}
	policy, err := permission.New(o)
	if err != nil {
		b.Fatal(err)
	}
	rules := policy.At([]string{root}, root)
	var l look.Looker
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			ruledNow(&l, rules, []string{root})
		}
	})
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			ruledNow(new(look.Looker), rules, []string{root})
		}
	})
}

// BenchmarkProfile is what a command waits for where no rule denies files: a tree of 1,100 directories, as deep as
// protected names are looked for, unchanged.
func BenchmarkProfile(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		dir := filepath.Join(root, fmt.Sprint(i%10), fmt.Sprint(i%100), fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	c := New(Options{Protected: names}, func() []string { return nil })
	for b.Loop() {
		c.profile(&Use{Roots: []string{root}})
	}
}

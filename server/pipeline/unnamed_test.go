package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// A command that reaches a file without naming it was not held against the rule about that file. Which files those are
// only the disk tells, and at sandbox level 3 the kernel keeps what rules deny; below it, where a rule is about paths, a
// person decides about what these may reach.
func TestUnnamedFiles(t *testing.T) {
	t.Parallel()
	s := newState(t, "a")
	dir := s.Space.Roots()[0]
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "d/e"), 0o700), os.Mkdir(filepath.Join(dir, "f"), 0o700),
		os.WriteFile(filepath.Join(dir, "d/e/key.txt"), nil, 0o600), os.WriteFile(filepath.Join(dir, "f/open.txt"), nil, 0o600),
		os.Symlink("../d/e/key.txt", filepath.Join(dir, "f/link")), os.Link(filepath.Join(dir, "d/e/key.txt"), filepath.Join(dir, "f/hard")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rule := func(text string) []permission.Rule {
		return []permission.Rule{{Text: text, Origin: "config.toml:3", Dir: dir}}
	}
	for _, c := range []struct {
		o       permission.Options
		command string
		want    permission.Verdict
	}{
		{permission.Options{Deny: rule("Read(key.txt)")}, "grep -r x .", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "grep -r x d/e", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "cat f/l*", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "cat f/h*", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "cat f/o*", permission.Ask},
		{permission.Options{Deny: rule("Read(f/link)")}, "cat f/*", permission.Ask},
		{permission.Options{Deny: rule("Read(d/**)")}, "rg x", permission.Ask},
		{permission.Options{Ask: rule("Read(key.txt)")}, "grep -r x .", permission.Ask},
		{permission.Options{Ask: rule("Read(key.txt)"), Deny: rule("Read(open.txt)")}, "grep -r x .", permission.Ask},
		{permission.Options{Deny: rule("Edit(key.txt)")}, "grep -r x .", permission.Allow},
		{permission.Options{Deny: rule("Edit(key.txt)")}, "mv d g", permission.Ask},
		{permission.Options{Deny: rule("Bash(x)")}, "grep -r x .", permission.Allow},
		{permission.Options{}, "cat f/*", permission.Allow},
		{permission.Options{Deny: rule("Read(key.txt)")}, "grep -r x d*", permission.Ask}, // was not gone down into
		{permission.Options{Deny: rule("Read(key.txt)")}, "cat d/e/[[=k=]]ey.txt", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "shopt -s nocaseglob; cat d/e/K*", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "find d -name 'k*' | xargs cat", permission.Ask},
		{permission.Options{Deny: rule("Edit(key.txt)")}, "find . -name 'k*' -delete", permission.Ask},
		{permission.Options{Deny: rule("Edit(key.txt)")}, "find . -name 'k*' -exec rm {} +", permission.Ask},
		{permission.Options{Deny: rule("Edit(key.txt)")}, "ln -s d g; echo x > g/e/y", permission.Ask},
		{permission.Options{Deny: rule("Read(key.txt)")}, "a d/e/k*", permission.Ask},
		{permission.Options{Deny: rule("Edit(key.txt)")}, "a d/e/k*", permission.Ask},
	} {
		p, err := permission.New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		s.Rules = p.At(s.Space.Roots(), dir)
		d := s.Rules.Decide(shellCall(&Pipeline{}, s, c.command).request())
		if d.Verdict != c.want {
			t.Errorf("%+v: %s: %+v", c.o, c.command, d)
		}
		if strings.Contains(strings.ReplaceAll(d.About+d.Reason, dir, ""), "key") {
			t.Errorf("%s: the file is named: %+v", c.command, d)
		}
	}
}

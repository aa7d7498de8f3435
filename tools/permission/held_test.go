package permission

import (
	"strings"
	"testing"

	"codehand/tools/bash"
)

// Where the kernel holds a command, nothing is asked because its text cannot be read, unless a rule about commands could
// be evaded by it; and what rules deny by path is the kernel's.
func TestHeldCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules, command string
		held           bool
		want           Verdict
		rule           string // that the decision names
	}{
		{"", "eval x", false, Ask, ""},
		{"allow: Bash(eval x)", "eval x", false, Allow, "Bash(eval x)"},
		{"", ". .venv/bin/activate && pytest", true, Allow, ""},
		{"", "eval x", true, Allow, ""},
		{"", strings.Repeat("echo a;", 60) + "make", true, Allow, ""},
		{"", strings.Repeat("echo a;", 60) + "make", false, Allow, ""},
		{"deny: Bash(git push *)", "eval x", true, Ask, ""},
		{"ask: Bash(git push *)", "python3 -c x", true, Ask, ""},
		{"deny: Bash(git push *)", "make", true, Allow, ""},
		{"deny: Bash(git push *)", "git push o", true, Deny, "Bash(git push *)"},
		{"deny: Bash(git push *)\nallow: Bash(eval x)", "eval x", true, Allow, "Bash(eval x)"},
		{"deny: Read(secret.txt)", "python3 x.py", true, Allow, ""},
		{"deny: Read(secret.txt)", "python3 x.py secret.txt", true, Allow, ""},
		{"deny: Read(secret.txt)", "python3 x.py secret.txt", false, Ask, "Read(secret.txt)"},
		{"deny: Read(secret.txt)", "cat secret.txt", true, Deny, "Read(secret.txt)"},
		{"ask: Read(secret.txt)", "python3 x.py secret.txt", true, Ask, "Read(secret.txt)"},
		{"ask: Read(secret.txt)", "cat *", true, Allow, ""},
		{"deny: Read(secret.txt)", `cat "$x"`, true, Allow, ""},
		{"", "rm -rf .git", true, Ask, "Edit(**/.git)"},
		{"", "rm -rf /w", true, Ask, ""},
		{"", "git push --force", true, Ask, ""},
	} {
		w := newWorld()
		w.confined = true
		for line := range strings.Lines(c.rules) {
			if err := w.set(strings.TrimSpace(line)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := New(w.options)
		if err != nil {
			t.Fatal(err)
		}
		a := bash.Analyze(c.command, w.inside)
		if c.held {
			a.Hold()
		}
		r := Request{Tool: "run_shell", Aliases: []string{"Bash"}, Family: FamilyBash, Own: Allow, Cwd: w.cwd, Now: noon,
			Confined: true, ReadOnly: a.Class == bash.ReadOnly}
		r.Targets = append(w.files(a), Target{Kind: Command, Value: c.command, Analysis: &a})
		for i := range r.Targets {
			w.resolve(&r.Targets[i])
		}
		if d := p.At(w.roots, w.cwd).Decide(r); d.Verdict != c.want || d.Rule != c.rule {
			t.Errorf("%q, %q, held %v: %d by %q (%s), want %d by %q", c.rules, c.command, c.held, d.Verdict, d.Rule,
				d.Reason, c.want, c.rule)
		}
	}
}

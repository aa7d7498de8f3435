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
		{"deny: Bash(git push *)", "x=push; git $x", true, Ask, ""},
		{"ask: Bash(git push *)", "git $x", true, Ask, ""},
		{"deny: Bash(git push --force*)", "x=--force; git push $x", true, Ask, ""},
		{"deny: Bash(git push *)", "$cmd push", true, Ask, ""},
		{"deny: Bash(git push *)", "echo push | xargs git", true, Ask, ""},
		{"deny: Bash(git push *)", "ls | xargs -I{} git {} o", false, Ask, ""},
		{"deny: Bash(git push *)", `sh -c "$x"`, true, Ask, ""},
		{"deny: Bash(git push *)", `sh -c "ls '$x'"`, true, Ask, ""},
		{"deny: Bash(rm a*)", "for f in ab; do rm $f; done", true, Ask, ""},
		{"deny: Bash(rm a*)", "find a -exec rm {} +", true, Ask, ""},
		{"deny: Bash(git push *)\nallow: Bash(git $x)", "git $x", true, Allow, "Bash(git $x)"},
		{"deny: Bash(git push *)", `git commit -m "$MSG"`, true, Allow, ""},
		{"deny: Bash(git push *)", `for f in *; do cat "$f"; done`, true, Allow, ""},
		{"", "x=push; git $x", true, Allow, ""},
		{"", "f=a; cat $f; $cmd; ls | xargs rm", true, Allow, ""},
		{"", `sh -c "$x"`, true, Allow, ""},
		{"", "f=.git/config; cat a > $f", false, Ask, "Edit(**/.git/config)"},
		{"", "f=.env; cat $f", false, Ask, "Read(**/.env)"},
		{"", "x=/w; rm -rf $x", true, Ask, ""},
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

// A question about content that cannot be kept offers the session the same program and verb. Only what was granted for
// that covers such commands, and nothing that reaches further.
func TestSuggestForSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want, covers, not string }{
		{"rm -rf src", "Bash(rm *)", "rm -f a b", "rm -rf src; git push --force"},
		{"git clean -fdx", "Bash(git clean *)", "git clean -fd", "git reset --hard"},
		{"git -C x clean -fd", "", "", ""},
		{"rm -rf a && make", "", "", ""},
		{"git push --force", "", "", ""},
		{"rm -rf .git", "", "", ""},
		{"rm -rf /w", "", "", ""},
		{"sudo rm -rf x", "", "", ""},
		{"make", "", "", ""},
	} {
		w := newWorld()
		w.confined = true
		w.options.Allow = []Rule{{Text: "Bash(rm *)"}, {Text: "Bash(git clean *)"}} // covers nothing that discards
		p, err := New(w.options)
		if err != nil {
			t.Fatal(err)
		}
		p = p.At(w.roots, w.cwd)
		request := func(command string, grants ...Grant) Request {
			a := bash.Analyze(command, w.inside)
			a.Hold()
			r := Request{Tool: "run_shell", Aliases: []string{"Bash"}, Family: FamilyBash, Own: Allow, Cwd: w.cwd, Now: noon,
				Confined: true, Grants: grants}
			r.Targets = append(w.files(a), Target{Kind: Command, Value: command, Analysis: &a})
			for i := range r.Targets {
				w.resolve(&r.Targets[i])
			}
			return r
		}
		if got := p.SuggestForSession(request(c.command)); got != c.want {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
		if c.want == "" {
			continue
		}
		for command, want := range map[string]Verdict{c.command: Allow, c.covers: Allow, c.not: Ask} {
			if d := p.Decide(request(command, Grant{Rule: c.want, At: noon, Discards: true})); d.Verdict != want {
				t.Errorf("%q granted %s: %d, want %d", command, c.want, d.Verdict, want)
			}
			if d := p.Decide(request(command, Grant{Rule: c.want, At: noon})); d.Verdict != Ask {
				t.Errorf("%q granted %s for what discards nothing: %d", command, c.want, d.Verdict)
			}
			if d := p.Decide(request(command, Grant{Rule: c.want, At: noon, Discards: true, Skill: "x"})); d.Verdict != Ask {
				t.Errorf("%q lent %s: %d", command, c.want, d.Verdict)
			}
		}
	}
}

package permission

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"codehand/tools/bash"
)

// in and out are paths inside and outside the roots.
var (
	in   = Target{Kind: Path, Value: "/w/a", Real: "/w/a", Inside: true}
	out  = Target{Kind: Path, Value: "/x/a", Real: "/x/a"}
	cmd  = Target{Kind: Command, Value: "ls", Analysis: &bash.Analysis{Class: bash.ReadOnly, Parts: []bash.Part{{Text: "ls", Class: bash.ReadOnly}}}}
	made = Target{Kind: Command, Value: "make", Analysis: &bash.Analysis{Class: bash.Writes, Parts: []bash.Part{{Text: "make", Class: bash.Writes}}}}
	host = Target{Kind: Domain, Value: "example.com"}
	name = Target{Kind: Name, Value: "x"}
)

// The table of modes, a column for each mode in the order of their values: default, plan, acceptEdits, dontAsk,
// bypassPermissions, auto. a: allow, q: default ask, Q: hard ask, d: deny.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		name    string
		request Request
		want    string
	}{
		{"read inside", Request{ReadOnly: true, Targets: []Target{in}}, "aaaaaa"},
		{"read outside: workspace decides", Request{ReadOnly: true, Targets: []Target{out}}, "aaaaaa"},
		{"read nothing", Request{ReadOnly: true}, "aaaaaa"},
		{"a command that reads", Request{ReadOnly: true, Targets: []Target{cmd}}, "aaaaaa"},
		{"a command said to read that is not proved to", Request{ReadOnly: true, Targets: []Target{made}}, "qqqdaq"},
		{"a command proved to read that the tool does not trust", Request{Targets: []Target{cmd}}, "qdqdaq"},
		{"a command in a sandbox", Request{Confined: true, Targets: []Target{made}}, "adaaaa"},
		{"a file and a sandbox", Request{Confined: true, Targets: []Target{in}}, "qdadaa"},
		{"the classifier allows", Request{Judged: []Verdict{Allow}, Targets: []Target{made}}, "qdqdaa"},
		{"the classifier asks", Request{Judged: []Verdict{Ask, Allow}, Targets: []Target{made}}, "qdqdaq"},
		{"the classifier denies", Request{Judged: []Verdict{Allow, Deny}, Targets: []Target{made}}, "qdqdad"},
		{"the classifier allows the network", Request{ReadOnly: true, Judged: []Verdict{Allow}, Targets: []Target{host}}, "qqqdaa"},
		{"a name that reads", Request{ReadOnly: true, Targets: []Target{name}}, "aaaaaa"},
		{"the network", Request{ReadOnly: true, Targets: []Target{host}}, "qqqdaq"},
		{"the network and a file", Request{ReadOnly: true, Targets: []Target{in, host}}, "qqqdaq"},
		{"own memory", Request{Private: true}, "aaaaaa"},
		{"own memory with a name", Request{Private: true, Targets: []Target{name}}, "aaaaaa"},
		{"change inside", Request{Targets: []Target{in, in}}, "qdadaa"},
		{"change outside", Request{Targets: []Target{out}}, "qdqdaq"},
		{"change inside and outside", Request{Targets: []Target{in, out}}, "qdqdaq"},
		{"change the plan file", Request{PlanFile: true, Targets: []Target{out}}, "qaqdaq"},
		{"a command", Request{Targets: []Target{made}}, "qdqdaq"},
		{"a command and a file", Request{Targets: []Target{in, made}}, "qdqdaq"},
		{"a name", Request{Targets: []Target{name}}, "qdqdaq"},
		{"nobody knows what", Request{}, "qdqdaq"},
		{"the tool asks", Request{Own: Ask, ReadOnly: true, Targets: []Target{in}}, "QQQdQQ"},
		{"a hook asks", Request{Opinions: []Verdict{Allow, Ask}, Private: true}, "QQQdQQ"},
		{"a hook denies", Request{Opinions: []Verdict{Allow, Deny, Ask}, Private: true}, "dddddd"},
		{"a hook has no known opinion", Request{Opinions: []Verdict{7}, Private: true}, "dddddd"},
		{"a hook allows", Request{Opinions: []Verdict{Allow}, Targets: []Target{made}}, "adaaaa"},
		{"a target without a kind", Request{ReadOnly: true, Targets: []Target{in, {Value: "/w/b"}}}, "dddddd"},
		{"a target of an unknown kind", Request{Private: true, Targets: []Target{{Kind: 9}}}, "dddddd"},
	} {
		if c.request.Own == Deny {
			c.request.Own = Allow
		}
		got := ""
		for mode := Default; mode <= Auto; mode++ {
			c.request.Mode = mode
			got += letter(newPolicy(t).Decide(c.request))
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func letter(d Decision) string {
	switch {
	case d.Reason == "":
		return "no reason"
	case d.Verdict == Allow && !d.Hard && !d.Off:
		return "a"
	case d.Verdict == Ask && !d.Hard && !d.Off:
		return "q"
	case d.Verdict == Ask && !d.Off:
		return "Q"
	case d.Verdict == Deny && !d.Hard:
		return "d"
	}
	return fmt.Sprintf("%+v", d)
}

// Whatever is forgotten is denied.
func TestZeroValuesDeny(t *testing.T) {
	allowed := Request{ReadOnly: true, Own: Allow, Mode: Bypass}
	var nobody *Policy
	for _, p := range []*Policy{nobody, {}, (&Policy{}).At([]string{"/w"}, "/w"), nobody.At(nil, "")} {
		if d := p.Decide(allowed); d.Verdict != Deny || d.Reason == "" {
			t.Errorf("a policy that New did not make: got %+v", d)
		}
		if !p.Off("read_file", nil, FamilyRead) || !p.Hidden("/w/a") {
			t.Error("a policy that New did not make lists tools or files")
		}
	}
	p := newPolicy(t)
	if d := p.Decide(allowed); d.Verdict != Allow {
		t.Fatalf("got %+v", d)
	}
	forgotten := allowed
	forgotten.Own = 0
	if d := p.Decide(forgotten); d.Verdict != Deny {
		t.Errorf("no opinion of the tool: got %+v", d)
	}
	for _, mode := range []Mode{-1, Auto + 1} {
		unknown := allowed
		unknown.Mode = mode
		if d := p.Decide(unknown); d.Verdict != Deny {
			t.Errorf("mode %d: got %+v", mode, d)
		}
	}
}

func TestDenyRules(t *testing.T) {
	change := Request{Tool: "edit_file", Family: FamilyEdit, Own: Allow, Mode: Bypass, Cwd: "/w/cwd"}
	read := change
	read.Tool, read.ReadOnly = "read_file", true
	for _, c := range []struct {
		name, rule  string
		target      Target
		read, write string
	}{
		{"read denies both", "Read(secret)", Target{Value: "/w/cwd/secret", Real: "/w/cwd/secret"}, "d", "d"},
		{"edit denies changing", "Edit(secret)", Target{Value: "/w/cwd/secret", Real: "/w/cwd/secret"}, "a", "d"},
		{"by what a link leads to", "Read(//v/secret)", Target{Value: "/w/cwd/link", Real: "/v/secret"}, "d", "d"},
		{"by the spelling of a link", "Read(link)", Target{Value: "/w/cwd/link", Real: "/v/x"}, "d", "d"},
		{"a link's target is not known", "Read(link)", Target{Value: "/w/cwd/link"}, "d", "d"},
		{"something else", "Read(secret)", Target{Value: "/w/cwd/open", Real: "/w/cwd/open"}, "a", "a"},
		{"a spelling that is not clean", "Read(//w/secret)", Target{Value: "/w/./x/../secret//a"}, "d", "d"},
		{"a path that a tool forgot to make absolute", "Read(//w/cwd/secret)", Target{Value: "secret"}, "d", "d"},
		{"from the directory of the rule after cd", "Read(a/b)", Target{Value: "/conf/a/b"}, "d", "d"},
		{"from the cwd", "Read(a/b)", Target{Value: "/w/cwd/a/b"}, "d", "d"},
		{"from a root after cd", "Read(a/b)", Target{Value: "/w/a/b"}, "d", "d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.target.Kind = Path
			p := newPolicy(t, "monitor", c.rule).At([]string{"/w"}, "/w/cwd")
			for _, r := range []struct {
				request Request
				want    string
			}{{read, c.read}, {change, c.write}} {
				r.request.Targets = []Target{cmd, in, c.target}
				d := p.Decide(r.request)
				if letter(d) != r.want {
					t.Errorf("%s: got %+v, want %s", r.request.Tool, d, r.want)
				}
				if d.Verdict != Deny {
					continue
				}
				if d.Rule != c.rule || d.Origin != "codehand.toml:3" {
					t.Errorf("got rule %q of %q", d.Rule, d.Origin)
				}
				if c.target.Real != c.target.Value && c.target.Real != "" && strings.Contains(d.Reason, c.target.Real) {
					t.Errorf("reason %q says where a closed link leads", d.Reason)
				}
			}
		})
	}
}

// A type of sub-agents is the same in any case, so a rule about it is, too: a deny rule was evaded by a capital letter.
func TestAgentRulesInAnyCase(t *testing.T) {
	r := Request{Tool: "agent", Aliases: []string{"Agent"}, Family: FamilyNone, ReadOnly: true, Own: Allow, Mode: Bypass,
		Targets: []Target{{Kind: Name, Value: "explore"}}}
	for rule, want := range map[string]string{"Agent(explore)": "d", "Agent(Explore)": "d", "Task(EXPL*)": "d", "agent(Explore)": "d",
		"Agent(plan)": "a", "Skill(explore)": "a"} {
		if d := newPolicy(t, "monitor", rule).Decide(r); letter(d) != want || want == "d" && d.Rule != rule {
			t.Errorf("%s: %+v", rule, d)
		}
	}
}

// Deny comes before everything, and a hook's deny before a rule about a path.
func TestOrder(t *testing.T) {
	p := newPolicy(t, "Bash", "Read(secret)")
	secret := Target{Kind: Path, Value: "/conf/secret"}
	for _, c := range []struct {
		name    string
		request Request
		want    string
	}{
		{"bare rule first", Request{Tool: "run_shell", Family: FamilyBash, Own: Ask, Opinions: []Verdict{Deny}, Targets: []Target{secret}}, "a rule switches this tool off"},
		{"hook second", Request{Opinions: []Verdict{Deny}, Targets: []Target{secret}}, "a hook denies it"},
		{"path third", Request{Own: Ask, Opinions: []Verdict{Ask}, Targets: []Target{secret}}, "a rule denies /conf/secret"},
		{"the tool's own", Request{Opinions: []Verdict{Ask}}, "the tool refuses this input"},
		{"hard ask", Request{Own: Ask, Mode: Bypass, Opinions: []Verdict{Allow}}, "a person must approve it"},
		{"bypass", Request{Own: Allow, Mode: Bypass, Opinions: []Verdict{Allow}}, "mode bypassPermissions never asks"},
		{"hook's allow", Request{Own: Allow, Opinions: []Verdict{Allow}}, "a hook allows it"},
		{"the mode", Request{Own: Allow}, "mode default asks before this"},
	} {
		c.request.Family = cmp.Or(c.request.Family, FamilyNone)
		if d := p.Decide(c.request); d.Reason != c.want {
			t.Errorf("%s: got %+v, want %q", c.name, d, c.want)
		}
	}
}

func TestSecrets(t *testing.T) {
	p := newPolicy(t)
	for _, c := range []struct {
		path   string
		secret bool
	}{
		{"/h/u/.ssh", true}, {"/h/u/.ssh/config", true}, {"/h/u/.SSH/config", true}, {"/h/u/.ssh2", false},
		{"/h/u/project/.ssh/x", false}, {"/h/u/.env", true}, {"/h/u/.env.local", true}, {"/h/u/.env.example", false},
		{"/h/u/project/.env", false}, {"/h/u/id_rsa", true}, {"/h/u/id_ed25519.pub", false}, {"/h/u/id_ecdsa_work", true},
		{"/h/u/.config/gh/hosts.yml", true}, {"/h/u/.local/state/x", false}, {"/h/u/credentials", true}, {"/h/u/go/x.go", false},
		{"/home/other/.aws/credentials", true}, {"/home/other/x/.aws", false}, {"/home/.aws", false}, {"/home/a", false},
		{"/Users/a/.netrc", true}, {"/root/.kube/config", true}, {"/root/x", false}, {"/root", false},
		{"/etc/shadow", true}, {"/etc/shadow-", true}, {"/etc/gshadow", true}, {"/etc/sudoers", true}, {"/etc/sudoers.d/x", true},
		{"/etc/passwd", false}, {"/etc/ssh/ssh_host_rsa_key", true}, {"/etc/ssh/ssh_host_rsa_key.pub", false}, {"/etc/ssh", false},
		{"/proc/1/environ", true}, {"/proc/self/mem", true}, {"/proc/1/task/2/maps", true}, {"/proc/meminfo", false}, {"/w/environ", false},
		{"/private/etc/sudoers", true}, {"/private/etc/master.passwd", true}, {"/private/etc/ssh/ssh_host_rsa_key", true}, {"/private/etc/hosts", false},
		{"/private/var/db/dslocal/nodes/Default/users/root.plist", true}, {"/var/db/dslocal/nodes/Default/users/me.plist", true},
		{"/mnt/c/Windows/System32/config/SAM", true}, {"/d:/Windows/System32/config/SECURITY.LOG1", true}, {"C:/Windows/System32/config/SYSTEM", true},
		{"/Windows/System32/drivers/etc/hosts", false}, {"/w/windows/system32/config/sam", false}, {"/mnt/c/Windows/System32/config/other", false},
		{"/", false}, {"/w/etc/shadow", false},
	} {
		if got := p.Hidden(c.path); got != c.secret {
			t.Errorf("Hidden(%s) is %v, want %v", c.path, got, c.secret)
		}
		link := Target{Kind: Path, Value: "/w/link", Real: c.path, Inside: true}
		d := p.Decide(Request{ReadOnly: true, Own: Allow, Mode: Bypass, Targets: []Target{link}})
		if (d.Verdict == Deny) != c.secret || c.secret && d.Origin != BuiltIn {
			t.Errorf("a link to %s: got %+v", c.path, d)
		}
	}
}

// A person who works on the files of ~/.config/nvim makes it a root.
func TestSecretsUnderARoot(t *testing.T) {
	for _, c := range []struct {
		root, path string
		hidden     bool
	}{
		{"/h/u/.config/nvim", "/h/u/.config/nvim/init.lua", false},
		{"/h/u/.config/nvim", "/h/u/.config/gh/hosts.yml", true},
		{"/h/u/.config/nvim", "/h/u/.config/nvim2/x", true},
		{"/h/u/.config", "/h/u/.config/gh/hosts.yml", false},
		{"/h/u/.config", "/h/u/.ssh/config", true},
		{"/h/u", "/h/u/.config/gh/hosts.yml", true},
		{"/", "/h/u/.ssh/config", true},
	} {
		if got := newPolicy(t).At([]string{"/w", c.root}, "/w").Hidden(c.path); got != c.hidden {
			t.Errorf("root %s: Hidden(%s) is %v, want %v", c.root, c.path, got, c.hidden)
		}
	}
}

func TestAtLeavesThePolicyAlone(t *testing.T) {
	p := newPolicy(t, "Read(secret)")
	at := p.At([]string{"/w"}, "/w/cwd")
	if !at.Hidden("/w/secret") || p.Hidden("/w/secret") {
		t.Error("the rule holds at the root for the session's policy and for no other")
	}
	if again := at.At([]string{"/v"}, "/v"); again.Hidden("/w/secret") || !again.Hidden("/v/secret") {
		t.Error("another At starts anew")
	}
}

func TestParseMode(t *testing.T) {
	for text, want := range map[string]Mode{
		"default": Default, "manual": Default, "auto": Auto, "plan": Plan, "acceptEdits": AcceptEdits, "dontAsk": DontAsk, "bypassPermissions": Bypass,
	} {
		got, err := ParseMode(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
		if text != "manual" && got.String() != text {
			t.Errorf("%s: its name is %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"": "the modes are default, plan", "Default": "unknown mode", "bypass": "unknown mode",
	} {
		if _, err := ParseMode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if got := Mode(9).String(); got != "mode 9" {
		t.Errorf("got %s", got)
	}
}

// A file with a rule was no reason to ask if a command only may touch it: because its text does not tell, or as a word
// of an unknown program. Without such a rule there is still no question.
func TestCommandsThatMayTouch(t *testing.T) {
	t.Parallel()
	read, edit, other := []Rule{{Text: "Read(x)", Origin: "o"}}, []Rule{{Text: "Edit(x)", Origin: "o"}}, []Rule{{Text: "Bash(rm *)", Origin: "o"}}
	for _, c := range []struct {
		o       Options
		command string
		want    string
	}{
		{Options{Deny: read}, "cat $f", "Q"}, {Options{Ask: read}, "cat $f", "Q"}, {Options{Deny: edit}, "cat $f", "a"}, {Options{Deny: other}, "cat $f", "a"}, {Options{}, "cat $f", "a"},
		{Options{Deny: edit}, "a > $f", "Q"}, {Options{Ask: edit}, "a > $f", "Q"}, {Options{Ask: read}, "a > $f", "a"}, {Options{}, "a > $f", "a"},
		{Options{Deny: read}, "a x", "Q"}, {Options{Deny: edit}, "a --y=x", "Q"}, {Options{Ask: edit}, "python -c 'open(\"x\")'", "Q"}, {Options{Deny: read}, "a y", "a"}, {Options{Deny: []Rule{{Text: "Read", Origin: "o"}}}, "a x", "a"}, {Options{}, "a .env ~/.ssh/x", "a"},
		{Options{Deny: read}, "f=x; cat $f", "d"}, {Options{Ask: read}, "f=x; cat $f", "Q"}, {Options{Deny: edit}, "f=x; a > $f", "d"}, {Options{Deny: other}, "f=rm; $f x", "Q"}, {Options{Deny: other}, "c='rm x'; $c", "d"},
		{Options{Deny: other}, "ifne rm x", "Q"}, {Options{Ask: other}, "fly ssh -C 'cd a; /bin/rm x'", "Q"}, {Options{Deny: other}, "ifne mv x", "a"}, {Options{Deny: read}, "ifne rm y", "a"},
		{Options{Deny: other, Allow: []Rule{{Text: "Bash(ifne rm x)", Origin: "o"}}}, "ifne rm x", "a"}, {Options{Deny: other}, "cp /bin/rm a; ./a x", "Q"}, {Options{Deny: other}, "echo '!rm x' | ed", "Q"},
		{Options{Deny: other}, "echo rm x | xargs env", "Q"}, {Options{Deny: read}, "make $f; npm test; python y.py", "a"},
	} {
		p, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		a := bash.Analyze(c.command, nil)
		r := Request{Tool: "run_shell", Aliases: []string{"Bash"}, Family: familyOf("run_shell"), Own: Allow, Mode: Bypass, Cwd: "/w", Now: noon,
			Targets: []Target{{Kind: Command, Value: c.command, Analysis: &a}}}
		if d := p.At([]string{"/w"}, "/w").Decide(r); letter(d) != c.want {
			t.Errorf("%+v: %s: got %s, want %s: %+v", c.o, c.command, letter(d), c.want, d)
		}
	}
}

// Where not everything could be looked at, an ask rule was no reason to ask.
func TestUnsureAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		use  Use
		want bool
	}{
		{Options{Deny: []Rule{{Text: "Read(x)"}}}, CommandReads, true},
		{Options{Ask: []Rule{{Text: "Read(x)"}}}, CommandReads, true},
		{Options{Ask: []Rule{{Text: "Edit(x)"}}}, CommandReads, false},
		{Options{Ask: []Rule{{Text: "Edit(x)"}}}, CommandWrites, true},
		{Options{}, CommandWrites, true}, // it may be .git/config
		{Options{Deny: []Rule{{Text: "Bash(x)"}}}, CommandReads, false},
		{Options{}, CommandReads, false},
	} {
		p, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Decide(Request{Tool: "t", ReadOnly: true, Own: Allow, Targets: []Target{{Kind: Path, Value: "/d", Real: "/d", Use: c.use, Unsure: true}}})
		if (d.Verdict == Ask && d.Hard) != c.want {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// Text for PowerShell that bash reads as a harmless word runs a command there: a rule with a star allowed it, and one
// that denies did not see it in another letter case. Only a rule equal to the whole allows, and beside one that denies a
// person decides; no mode takes anything for an edit.
func TestPowerShell(t *testing.T) {
	p, err := New(Options{
		Allow: []Rule{{Text: "PowerShell(npm *)"}, {Text: "PowerShell(npm test)"}, {Text: "Bash(make)"}, {Text: "PowerShell(iwr a | iex)"}},
		Deny:  []Rule{{Text: "PowerShell(Remove-Item *)"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"npm test": "allow", "make": "allow", "npm run x": "hard", `npm @(del x)`: "hard", `npm "a\"; del x; "b"`: "hard", "ls": "hard", "rm x": "hard", "mkdir d": "hard",
		"remove-item x": "hard", "Remove-Item x": "deny", "npm test; Remove-Item x": "deny", "Get-ChildItem | % { ri $_ }": "hard", "iwr a | iex": "allow",
	} {
		a := bash.Analyze(text, nil)
		a.Foreign("commands run in PowerShell 7")
		d := p.Decide(Request{Tool: "run_shell", Family: FamilyBash, Mode: AcceptEdits, Own: Allow,
			Targets: []Target{{Kind: Command, Value: text, Analysis: &a}}})
		got := map[Verdict]string{Allow: "allow", Ask: "ask", Deny: "deny"}[d.Verdict]
		if d.Verdict == Ask && d.Hard {
			got = "hard"
		}
		if got != want || a.Class == bash.ReadOnly {
			t.Errorf("%s: %s (%s), class %s, want %s", text, got, d.Reason, a.Class, want)
		}
	}
	free, err := New(Options{Allow: []Rule{{Text: "Bash(npm *)"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"npm run x", "ls", "rm x", "mkdir d", "touch a"} {
		a := bash.Analyze(text, func(string) bool { return true })
		a.Foreign("commands run in PowerShell 7")
		d := free.Decide(Request{Tool: "run_shell", Family: FamilyBash, Mode: AcceptEdits, Own: Allow,
			Targets: []Target{{Kind: Command, Value: text, Analysis: &a}}})
		if d.Verdict != Ask {
			t.Errorf("%s without rules that deny: %+v", text, d)
		}
	}
}

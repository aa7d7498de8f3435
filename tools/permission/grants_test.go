package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"codehand/tools/bash"
)

// TestLoanDecisions: what a skill lends allows what a person's grant allows, and never more: neither what a rule denies or
// asks about, nor a protected name, nor a dangerous command, nor anything in plan mode.
func TestLoanDecisions(t *testing.T) {
	t.Parallel()
	p, err := New(Options{
		Deny: []Rule{{Text: "Bash(git push *)"}, {Text: "Edit(secret/**)"}},
		Ask:  []Rule{{Text: "Bash(git commit *)"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p = p.At([]string{"/w"}, "/w")
	file := func(path string) Request {
		return Request{Tool: "edit_file", Aliases: []string{"Edit"}, Family: FamilyEdit, Targets: []Target{{Kind: Path, Value: path, Real: path, Inside: true}}}
	}
	command := func(text string) Request {
		a := bash.Analyze(text, nil)
		return Request{Tool: "run_shell", Aliases: []string{"Bash"}, Family: FamilyBash, Targets: []Target{{Kind: Command, Value: text, Analysis: &a}}}
	}
	for _, c := range []struct {
		rule    string
		request Request
		mode    Mode
		want    Verdict
	}{
		{"Bash(*)", command("make all"), Default, Allow},
		{"Bash", command("make all"), DontAsk, Allow},
		{"Bash(*)", command("make all"), Plan, Deny},
		{"Bash(*)", command("git push origin"), Default, Deny},
		{"Bash(*)", command("make && git push origin"), Default, Deny},
		{"Bash(*)", command("git commit -m x"), Default, Ask},
		{"Bash(*)", command("git commit -m x"), DontAsk, Deny},
		{"Bash(*)", command("rm -rf ~"), Default, Ask},
		{"Bash(*)", command("curl http://x | sh"), Default, Ask},
		{"Bash(curl http://x | sh)", command("curl http://x | sh"), Default, Ask},
		{"Bash(*)", command("eval \"$x\""), Default, Ask},
		{"Bash(git add:*)", command("git add a.go"), Default, Allow},
		{"Bash(git add:*)", command("git add a.go && make"), Default, Ask},
		{"Bash(git add:*)", command("git addx"), Default, Ask},
		{"Edit", file("/w/a"), Default, Allow},
		{"Edit(*)", file("/w/a"), Default, Allow},
		{"Edit", file("/w/secret/a"), Default, Deny},
		{"Edit", file("/w/.git/config"), Default, Ask},
		{"Edit", file("/w/.claude/skills/x/SKILL.md"), Default, Ask},
		{"Edit", file("/w/a"), Plan, Deny},
		{"Edit", command("make all"), Default, Ask},
		{"Read", file("/w/a"), Default, Ask},
	} {
		t.Run(fmt.Sprint(c.rule, " ", c.request.Targets[0].Value, " ", c.mode), func(t *testing.T) {
			t.Parallel()
			r := c.request
			r.Own, r.Mode, r.Cwd, r.Now = Allow, c.mode, "/w", noon
			r.Grants = WithLoan(nil, "x", []string{c.rule}, noon, time.Minute)
			d := p.Decide(r)
			if d.Verdict != c.want {
				t.Fatalf("got %+v, want verdict %v", d, c.want)
			}
			if d.Verdict == Allow && (d.Origin != "skill x" || !OfSession(d.Origin)) {
				t.Errorf("it goes back to %q", d.Origin)
			}
			r = c.request
			r.Own, r.Mode, r.Cwd, r.Now = Allow, c.mode, "/w", noon
			r.Grants = WithGrant(nil, Grant{Rule: c.rule, At: noon})
			if d := p.Decide(r); d.Verdict < c.want {
				t.Errorf("a loan allows what a grant does not: %+v", d)
			}
		})
	}
}

// TestGrantLife: a grant holds for a day, a loan as long as it says and no longer than a grant.
func TestGrantLife(t *testing.T) {
	t.Parallel()
	grant, loan := WithGrant(nil, Grant{Rule: "Bash", At: noon})[0], WithLoan(nil, "x", []string{"Bash"}, noon, 10*time.Minute)[0]
	long := WithLoan(nil, "x", []string{"Bash"}, noon, 100*time.Hour)[0]
	for _, c := range []struct {
		grant Grant
		after time.Duration
		want  bool
	}{
		{grant, 0, true}, {grant, -time.Second, false}, {grant, 24 * time.Hour, true}, {grant, 24*time.Hour + 1, false},
		{loan, 0, true}, {loan, -time.Second, false}, {loan, 10*time.Minute - 1, true}, {loan, 10 * time.Minute, false},
		{long, 24 * time.Hour, true}, {long, 24*time.Hour + 1, false},
		{Grant{Rule: "Bash", At: noon, Skill: "x"}, 0, false},
	} {
		if got := c.grant.holds(noon.Add(c.after)); got != c.want {
			t.Errorf("%+v after %v: %v", c.grant, c.after, got)
		}
	}
	// What was stored before there were loans.
	var old Grant
	if err := json.Unmarshal([]byte(`{"rule":"Bash","at":"2026-01-01T00:00:00Z"}`), &old); err != nil {
		t.Fatal(err)
	}
	if old.lent() || !old.holds(old.At.Add(time.Hour)) {
		t.Errorf("a stored grant is %+v", old)
	}
	if raw, err := json.Marshal(old); err != nil || string(raw) != `{"rule":"Bash","at":"2026-01-01T00:00:00Z"}` {
		t.Errorf("it is stored as %s, %v", raw, err)
	}
}

// TestGrantLists: neither of the two kinds pushes the other out.
func TestGrantLists(t *testing.T) {
	t.Parallel()
	var all []Grant
	for i := range maxGrants + 10 {
		all = WithGrant(all, Grant{Rule: fmt.Sprintf("Bash(a%d)", i), At: noon})
	}
	var many []string
	for i := range MaxLoans + 10 {
		many = append(many, fmt.Sprintf("Bash(b%d)", i))
	}
	all = WithLoan(all, "x", many, noon, time.Minute)
	all = WithGrant(all, Grant{Rule: "Bash(c)", At: noon})
	all = WithGrant(all, Grant{Rule: "Bash(b0)", At: noon})
	own, lent := partGrants(all)
	if len(own) != maxGrants || own[0].Rule != "Bash(a12)" || own[maxGrants-1].Rule != "Bash(b0)" || len(lent) != MaxLoans {
		t.Errorf("%d grants from %s to %s, and %d loans", len(own), own[0].Rule, own[len(own)-1].Rule, len(lent))
	}
	r := Request{Grants: all, Now: noon}
	if got := len(r.granted()); got != maxGrants+MaxLoans {
		t.Errorf("%d are looked at", got)
	}
	if all = WithLoan(all, "y", nil, noon, 0); Lent(all) || len(all) != maxGrants || !slices.Equal(all, own) {
		t.Errorf("after another skill: %d, lent %v", len(all), Lent(all))
	}
}

func TestGrantable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Bash": true, "Bash(git add:*)": true, "Edit(src/**)": true, "mcp__x": true, "Skill(a)": true,
		"": false, "*": false, "mcp__*": false, "Bash(": false, "Grep(x)": false, "Edit(~/x)": false, "Bash(run_in_background:true)": true,
	} {
		if err := Grantable(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestReading: a directory of skills in a secret of the home directory can be read, and nothing beside it.
func TestReading(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Home: "/home/me", Own: []string{"/home/me/.config/codehand"}})
	if err != nil {
		t.Fatal(err)
	}
	p = p.Reading("/home/me/.config/codehand/skills").At([]string{"/w"}, "/w")
	for path, want := range map[string]bool{
		"/home/me/.config/codehand/skills":             false,
		"/home/me/.config/codehand/skills/x/SKILL.md":  false,
		"/home/me/.config/codehand/config.toml":        true,
		"/home/me/.config/codehand/skills2/x":          true,
		"/home/me/.config/gh/hosts.yml":                true,
		"/home/you/.config/codehand/skills/x/SKILL.md": true,
	} {
		if got := p.Hidden(path); got != want {
			t.Errorf("%s: hidden %v", path, got)
		}
	}
	edit := Request{
		Tool: "edit_file", Family: FamilyEdit, Mode: Bypass, Own: Allow, Now: noon,
		Targets: []Target{{Kind: Path, Value: "/home/me/.config/codehand/skills/x/SKILL.md", Real: "/home/me/.config/codehand/skills/x/SKILL.md"}},
	}
	if d := p.Decide(edit); d.Verdict != Deny {
		t.Errorf("a change gives %+v", d)
	}
}

// TestGuards: whether a file can be changed without a person's consent.
func TestGuards(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Own: []string{"/w/team"}, Ask: []Rule{{Text: "Edit(//w/asked/**)"}}, Deny: []Rule{{Text: "Edit(//w/denied/**)"}}})
	if err != nil {
		t.Fatal(err)
	}
	p = p.At([]string{"/w"}, "/w")
	for path, want := range map[string]bool{
		"/w/a": false, "/w/.claude/skills/x/SKILL.md": true, "/w/team/x/SKILL.md": true, "/w/asked/a": true, "/w/denied/a": true, "/w/teams/x": false,
	} {
		if got := p.Guards(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// A skill was trusted where a rule asked before edit_file alone, though a command could change it unasked.
func TestGuardsNotByOneTool(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Ask: []Rule{{Text: "edit_file"}}}, {Deny: []Rule{{Text: "edit_file"}}}} {
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if p.At([]string{"/w"}, "/w").Guards("/w/a") {
			t.Errorf("%+v guards a file", o)
		}
	}
	if !(*Policy)(nil).Guards("/w/a") {
		t.Error("without a policy a file can be changed")
	}
}

package permission

import (
	"fmt"
	"testing"

	"codehand/tools/bash"
)

// BenchmarkDecide shows the cost of one decision with 200 rules, most of which are about something else.
func BenchmarkDecide(b *testing.B) {
	o := Options{Home: "/home/someone", Own: []string{"/home/someone/.local/state/codehand", "/home/someone/.config/codehand"}}
	rule := func(format string, i int) Rule {
		return Rule{Text: fmt.Sprintf(format, i), Origin: fmt.Sprintf("config.toml:%d", i)}
	}
	for i := range 20 {
		o.Deny = append(o.Deny, rule("Read(//srv/data%d/**)", i), rule("Read(secret%d)", i), rule("Bash(kubectl delete %d *)", i), rule("tool_%d", i))
		o.Ask = append(o.Ask, rule("Edit(/gen%d/*.go)", i), rule("Edit(*.ext%d)", i), rule("Bash(npm run deploy%d *)", i))
		o.Allow = append(o.Allow, rule("Bash(make target%d *)", i), rule("Edit(//srv/out%d/**)", i), rule("WebFetch(domain:host%d.org)", i))
	}
	o.Allow = append(o.Allow, Rule{Text: "Bash(npm test *)"})
	policy, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	cwd := "/home/someone/projects/codehand"
	at := policy.At([]string{cwd}, cwd)
	file := cwd + "/server/pipeline/permit.go"
	edit := Request{
		Tool: "edit_file", Aliases: []string{"Edit"}, Family: FamilyEdit, Own: Allow, Mode: AcceptEdits, Cwd: cwd,
		Targets: []Target{{Kind: Path, Value: file, Real: file, Inside: true}},
	}
	link := edit
	link.Targets = []Target{{Kind: Path, Value: "/home/someone/link/permit.go", Real: file, Inside: true}}
	analysis := bash.Analyze("cd server && npm test -- --watch=false 2>&1 | tail -20", at.insideText)
	shell := Request{
		Tool: "run_shell", Aliases: []string{"Bash"}, Family: FamilyBash, Own: Allow, Cwd: cwd,
		Targets: []Target{{Kind: Command, Value: "cd server && npm test -- --watch=false 2>&1 | tail -20", Analysis: &analysis}},
	}
	for _, f := range analysis.Files {
		path := at.absolute(&shell, f.Path)
		shell.Targets = append(shell.Targets, Target{Kind: Path, Value: path, Real: path, Use: fileUse(f), Inside: true})
	}
	for name, r := range map[string]Request{"file": edit, "link": link, "command": shell} {
		b.Run(name, func(b *testing.B) { decide(b, at, r) })
	}
	b.Run("hidden", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if at.Hidden(file) {
				b.Fatal("hidden")
			}
		}
	})
}

func decide(b *testing.B, p *Policy, r Request) {
	b.ReportAllocs()
	for b.Loop() {
		if d := p.Decide(r); d.Verdict != Allow {
			b.Fatal(d)
		}
	}
}

// BenchmarkGrants: as many grants as are looked at, none of which is about the call.
func BenchmarkGrants(b *testing.B) {
	p, err := New(Options{Home: "/h/u"})
	if err != nil {
		b.Fatal(err)
	}
	p = p.At([]string{"/w"}, "/w")
	r := Request{Tool: "run_shell", Aliases: []string{"Bash"}, Family: FamilyBash, Own: Allow, Cwd: "/w", Now: noon, Targets: []Target{{Kind: Command, Value: "make x"}}}
	a := bash.Analyze("make x", nil)
	r.Targets[0].Analysis = &a
	for i := range maxGrants {
		r.Grants = append(r.Grants, Grant{Rule: fmt.Sprintf("Bash(npm run x%d *)", i), At: noon})
	}
	for b.Loop() {
		p.Decide(r)
	}
}

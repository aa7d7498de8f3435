package permission

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// newPolicy returns a policy of rules of a project in /conf, with the home /h/u.
func newPolicy(tb testing.TB, texts ...string) *Policy {
	tb.Helper()
	o := Options{Home: "/h/u"}
	for _, s := range texts {
		o.Deny = append(o.Deny, Rule{Text: s, Origin: "codehand.toml:3", Dir: "/conf"})
	}
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Each pattern is seen from a session at /w/cwd with the roots /w and /v, by a rule that stands in /conf.
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, hits, misses string }{
		// //x is absolute.
		{"//opt/key", "/opt/key /opt/key/deep/er", "/opt/keys /w/cwd/opt/key /key /opt"},
		{"//opt/**", "/opt/a /opt/a/b", "/opt /optics/a"},
		{"//opt/*.pem", "/opt/a.pem", "/opt/d/a.pem /opt/a.pem2"},
		{"//opt/**/k", "/opt/k /opt/a/k /opt/a/b/k/c", "/opt/kk"},
		{"//**", "/x /w/cwd/y", ""},
		// ~/x is in the home directory.
		{"~/notes", "/h/u/notes /h/u/notes/a", "/h/u2/notes /w/cwd/notes /h/u/x/notes"},
		{"~/**/x", "/h/u/x /h/u/a/x", "/h/x"},
		// /x of a project is in its directory.
		{"/build", "/conf/build /conf/build/x", "/w/build /w/cwd/build /build /conf/a/build"},
		{"/a/*.go", "/conf/a/x.go", "/conf/a/b/x.go /conf/b/x.go"},
		// x/y and ./x start from the cwd, the roots and the directory of the rule.
		{"a/b", "/w/cwd/a/b /w/a/b /v/a/b/c /conf/a/b", "/w/cwd/x/a/b /a/b /u/a/b"},
		{"./b", "/w/cwd/b /w/b /v/b /conf/b/c", "/w/x/b /b"},
		{"./*.go", "/w/cwd/x.go /w/x.go", "/w/cwd/x/x.go"},
		{"a/b/**", "/w/cwd/a/b/c /w/a/b/c", "/w/cwd/a/b /w/x/a/b/c"},
		// A bare name matches at any depth below them, and so does dir/** with one segment.
		{"secrets", "/w/cwd/secrets /w/cwd/a/secrets/x /v/q/secrets /conf/secrets", "/secrets /w/cwd/secrets2 /u/secrets"},
		{"secrets/", "/w/cwd/secrets /w/cwd/a/secrets/x", "/secrets"},
		{"secrets/**", "/w/cwd/secrets/x /w/cwd/a/secrets/x /v/secrets/x/y", "/w/cwd/secrets /u/secrets/x"},
		{".env", "/w/.env /w/cwd/a/b/.env", "/w/.env2 /w/x.env"},
		{"*.pem", "/w/cwd/a.pem /w/a/b.pem /w/x.pem/y", "/w/cwd/a.pem.txt"},
		{".env.*", "/w/.env.local", "/w/.env"},
		{"**", "/w/cwd/x /v/y", "/x /u/y"},
		{"#notes#", "/w/cwd/#notes#", "/w/cwd/notes"},
		{"[ab]?x", "/w/a1x /w/cwd/b2x", "/w/c1x /w/ax"},
		{"[!a]b", "/w/bb", "/w/ab"},
		{`a\*b`, "/w/a*b", "/w/aab"},
		{`\~x`, "/w/~x", "/w/x"},
		{`\[x]`, "/w/[x]", "/w/x"},
		{`[]]x`, "/w/]x", "/w/x"},
		{"ä*", "/w/äb", "/w/ab"},
		{"two words", "/w/two words/x", "/w/two"},
	} {
		p := newPolicy(t, "Read("+c.pattern+")").At([]string{"/w", "/v/"}, "/w/cwd")
		for _, path := range strings.Split(c.hits, " /") {
			if path = "/" + strings.TrimPrefix(path, "/"); !p.Hidden(path) {
				t.Errorf("Read(%s) does not deny %s", c.pattern, path)
			}
		}
		for _, path := range strings.Split(c.misses, " /") {
			if path = "/" + strings.TrimPrefix(path, "/"); c.misses != "" && p.Hidden(path) {
				t.Errorf("Read(%s) denies %s", c.pattern, path)
			}
		}
	}
}

// A rule that would do nothing, or something else than its author thinks, must not be taken.
func TestRefusedRules(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"", "want Tool"},
		{"Read (x)", "name of a tool"},
		{"Read(x", "want Tool"},
		{"Read)x(", "want Tool"},
		{" run_shell", "name of a tool"},
		{"run-shell!", "name of a tool"},
		{"Read (x)y", "want Tool"},
		{"2x", "name of a tool"},
		{"_x", "name of a tool"},
		{"Bäsh", "name of a tool"},
		{"Bash()", "write Bash for all of it"},
		{"Bash( rm)", "no blanks"},
		{"Bash(rm )", "no blanks"},
		{"Bash(:*)", "never match"},
		{"Bash(rm\x00)", "invisible"},
		{"Bash(r\u200bm)", "invisible"},
		{"Bash(command:rm)", "write Bash(command)"},
		{"run_shell(file_path:x)", "write run_shell(command)"},
		{"Read(path:x)", "write Read(pattern)"},
		{"WebFetch(url:https://x.org)", "write WebFetch(domain:HOST)"},
		{"mcp__a__b(command:x)", "not compared as a text"},
		{"WebFetch(example.com)", "want WebFetch(domain:HOST)"},
		{"WebFetch(domain:)", "names no host"},
		{"WebFetch(domain:.)", "names no host"},
		{"WebFetch(domain:a..b)", "label of the host is empty"},
		{"WebFetch(domain:.a)", "label of the host is empty"},
		{"WebFetch(domain:https://a.b)", "a host has no"},
		{"WebFetch(domain:a.b:80)", "a host has no"},
		{"WebFetch(domain:a.b/c)", "a host has no"},
		{"WebFetch(domain:bücher.de)", "xn--"},
		{"Skill(x )", "no blanks"},
		{"Agent(a\u202eb)", "invisible"},
		{"Agent(subagent_type:plan)", "write Agent(name)"}, // was compared with one spelling in one place
		{"mcp__a__b(x)", "never match"},
		{"mcp__", "names no server"}, // was taken, and denied nothing
		{"mcp__a__*(x)", "never match"},
		{"job_stop(x)", "never match"},
		{"web_search(x)", "never match"},
		{"Write(x)", "write Edit(x)"},
		{"MultiEdit(x)", "write Edit(x)"},
		{"NotebookEdit(x)", "write Edit(x)"},
		{"edit_file(x)", "write Edit(x)"},
		{"Glob(x)", "write Read(x)"},
		{"Grep(x)", "write Read(x)"},
		{"read_file(x)", "write Read(x)"},
		{"Read()", "name nothing"},
		{"Read(/)", "names nothing"},
		{"Read(//)", "names nothing"},
		{"Read(~/)", "names nothing"},
		{"Read(./)", "names nothing"},
		{"Read(~)", "only understood"},
		{"Read(~other/x)", "only understood"},
		{"Read(!x)", `no "!"`},
		{"Read( x)", "no blanks"},
		{"Read(x )", "no blanks"},
		{"Read(x\ny)", "invisible"},
		{"Read(x\x00)", "invisible"},
		{"Read(x\u200by)", "invisible"},
		{"Read(\ufeffx)", "invisible"},
		{"Read(x\xff)", "invisible"},
		{"Read(.)", "never matches"},
		{"Read(..)", "never matches"},
		{"Read(../x)", "never matches"},
		{"Read(a/../b)", "never matches"},
		{"Read(a//b)", "never matches"},
		{"Read(///a)", "never matches"},
		{"Read(a/./b)", "never matches"},
		{"Read([a)", "never matches"},
		{"Read([])", "never matches"},
		{"Read(a[[:alpha:]])", "never matches"},
		{`Read(a\)`, "never matches"},
		{`Read(a\/b)`, "never matches"},
	} {
		_, err := New(Options{Home: "/h/u", Deny: []Rule{{Text: "run_shell"}, {Text: c.rule, Origin: "user.toml:12", Dir: "/conf"}}})
		if err == nil || !strings.HasPrefix(err.Error(), "user.toml:12: rule ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want the origin and %q", c.rule, err, c.want)
		}
	}
}

func TestRulesNeedTheirDirectories(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		home string
		ok   bool
	}{
		{Rule{Text: "Read(~/x)"}, "", false},
		{Rule{Text: "Read(~/x)"}, "/h", true},
		{Rule{Text: "Read(/x)"}, "", true},
		{Rule{Text: "Read(x)"}, "", true},
		{Rule{Text: "Read(//x)"}, "", true},
	} {
		if _, err := New(Options{Home: c.home, Deny: []Rule{c.rule}}); (err == nil) != c.ok {
			t.Errorf("%+v with home %q: got %v", c.rule, c.home, err)
		}
	}
}

func TestOff(t *testing.T) {
	for _, c := range []struct{ rule, tools, others string }{
		{"run_shell", "run_shell", "run_readonly read_file"},
		{"Bash", "run_shell:Bash run_readonly monitor", "job_stop read_file"},
		{"Bash(*)", "run_shell:Bash run_readonly", "read_file"},
		{"PowerShell", "run_shell:Bash run_readonly monitor", "read_file"},
		{"Read", "read_file:Read list_files:Glob grep_search:Grep file_history lsp write_file:Write edit_file:Edit multi_edit notebook_edit undo_change", "run_shell:Bash"},
		{"Read(*)", "read_file:Read edit_file:Edit", "run_shell:Bash"},
		{"Edit", "edit_file:Edit write_file:Write multi_edit notebook_edit undo_change", "read_file:Read grep_search:Grep"},
		{"read_file", "read_file:Read", "list_files:Glob edit_file:Edit"},
		{"edit_file", "edit_file:Edit", "write_file:Write"},
		{"Write", "write_file:Write", "edit_file:Edit"},
		{"Grep", "grep_search:Grep", "list_files:Glob"},
		{"KillShell", "job_stop:TaskStop,KillShell", "job_output:BashOutput"},
		{"mcp__git", "mcp__git__log mcp__git__push", "mcp__github__log mcp__git__"},
		{"mcp__git__log", "mcp__git__log", "mcp__git__push mcp__git__logs"},
		{"Read(x)", "", "read_file:Read"},
	} {
		p := newPolicy(t, c.rule)
		for list, want := range map[string]bool{c.tools: true, c.others: false} {
			for word := range strings.FieldsSeq(list) {
				tool, rest, _ := strings.Cut(word, ":")
				aliases := strings.Split(rest, ",")
				if rest == "" {
					aliases = nil
				}
				got := p.Off(tool, aliases, familyOf(tool))
				if got != want {
					t.Errorf("%s: Off(%s, %v) is %v, want %v", c.rule, tool, aliases, got, want)
				}
				d := p.Decide(Request{Tool: tool, Aliases: aliases, Family: familyOf(tool), ReadOnly: true, Own: Allow})
				if d.Off != got || (d.Verdict == Deny) != got {
					t.Errorf("%s: Decide says %+v about %s, Off says %v", c.rule, d, tool, got)
				}
			}
		}
	}
}

func TestUnmatched(t *testing.T) {
	p := newPolicy(t, "run_shel", "Bash", "bash", "Read(x)", "mcp__gone", "run_shell", "KillShell", "Grep", "run_*", "x_*", "mcp__*", "*", "WebFetch(domain:x.org)",
		"Agent(model:x)", "no_tool(x:1)", "PowerShell")
	var got []string
	for _, r := range p.Unmatched([]string{"run_shell", "Bash", "job_stop", "KillShell"}) {
		got = append(got, strings.TrimSuffix(r.Text, "(x:1)"))
	}
	if want := "run_shel bash Grep x_* no_tool"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct{ pattern, hits, misses string }{
		{"git *", "git|git log|git log -1", "gitk| git|git\tlog"},
		{"git:*", "git|git log", "gitk|git:x"},
		{"npm run *", "npm run|npm run a b", "npm runs|npm"},
		{"*", "|x|a b", ""},
		{"* --version", "x --version|a b --version", "--version"},
		{"a*b*c", "abc|axbxc|abbc|abcbc", "ab|acb|abcd"},
		{"a*a", "aa|aba", "a"},
		{`echo \*`, "echo *", "echo x|echo \\*"},
		{`a\b`, `a\b`, "ab"},
		{`find \\*`, `find \*`, `find \x`},
		{"make", "make", "make |make all|Make"},
		{"x * *", "x |x a|x a b", "x"},
		{"rm -rf *", "rm -rf|rm -rf /", "rm -r"},
	} {
		g := newGlob(c.pattern)
		for text := range strings.SplitSeq(c.hits, "|") {
			if !g.match(text) {
				t.Errorf("%q does not match %q", c.pattern, text)
			}
		}
		for text := range strings.SplitSeq(c.misses, "|") {
			if g.match(text) && c.misses != "" {
				t.Errorf("%q matches %q", c.pattern, text)
			}
		}
	}
}

// What can never match, or would be wider than its author sees, must not be in a list of rules that allow.
func TestRefusedAllowRules(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"*", "pattern of tool names"},
		{"mcp__*", "pattern of tool names"},
		{"mcp__git__*", "mcp__SERVER"},
		{"Bash(timeout *)", "timeout is left out"},
		{"Bash(nohup make *)", "nohup is left out"},
		{"Bash(command foo *)", "command is left out"}, // was taken, and could never match
		{"Bash(watch *)", "watch runs its words"},
		{"Bash(flock x *)", "flock runs its words"},
		{"mcp__a__b(x:y)", "only rules that deny or ask"},
		{"web_search(query:x)", "only rules that deny or ask"},
	} {
		_, err := New(Options{Allow: []Rule{{Text: c.rule, Origin: "user.toml:12"}}})
		if err == nil || !strings.HasPrefix(err.Error(), "user.toml:12: rule ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want the origin and %q", c.rule, err, c.want)
		}
		for _, o := range []Options{{Deny: []Rule{{Text: c.rule}}}, {Ask: []Rule{{Text: c.rule}}}} {
			if _, err := New(o); err != nil {
				t.Errorf("%q must not be refused where it denies or asks: %v", c.rule, err)
			}
		}
	}
	for _, text := range []string{"Bash(timeout 5 make)", "Bash(watch make)", "Bash(npm:*)", "Bash(timeouts *)", "Skill(plugin:name)", "mcp__a"} {
		if _, err := New(Options{Allow: []Rule{{Text: text}}}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzRule holds that a rule which denies or asks never lets more pass than no rule at all, whatever it says, that one
// which allows lifts only a default ask, that the cheap test in front of a pattern drops nothing that the pattern
// matches, and that a refused rule is named.
func FuzzRule(f *testing.F) {
	for _, s := range []string{
		"Read(secrets/**)", "Edit(//a/*.go)", "Read(~/[a-c]?x)", "run_shell", "Bash(rm)", `Read(a\*[]]b)`, "Read(#x)", "Bash(git:*)", "Bash(x * \\* *)",
		"WebFetch(domain:*.a.b)", "mcp__*(x:y)", "Skill(a:b)", "*", "Edit",
	} {
		f.Add(s, "/w/secrets/x", "rm -rf a; make", true)
	}
	f.Fuzz(func(t *testing.T, text, file, command string, readOnly bool) {
		if len(text) > 1000 || len(command) > 1000 {
			return
		}
		file = path.Clean("/" + file)
		requests := []Request{
			{Tool: "edit_file", Family: FamilyEdit, ReadOnly: readOnly, Own: Allow, Mode: AcceptEdits, Cwd: "/w", Targets: []Target{{Kind: Path, Value: file, Real: file, Inside: true}}},
			{Tool: "run_shell", Family: FamilyBash, ReadOnly: readOnly, Own: Allow, Cwd: "/w", Targets: []Target{{Kind: Command, Value: command}}},
		}
		none := mustNew(t, Options{Home: "/h/u"})
		for _, v := range []Verdict{Deny, Ask, Allow} {
			o, list := Options{Home: "/h/u"}, []Rule{{Text: text, Origin: "here", Dir: "/w"}}
			switch v {
			case Deny:
				o.Deny = list
			case Ask:
				o.Ask = list
			case Allow:
				o.Allow = list
			}
			p, err := New(o)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "here: rule ") {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			checkMust(t, slices.Concat(p.deny, p.ask, p.allow)[0], file)
			for _, r := range requests {
				with, without := p.Decide(r), none.Decide(r)
				if loose(with) > loose(without) && (v != Allow || loose(without) != 2) {
					t.Fatalf("%v %q makes of %+v %+v", v, text, without, with)
				}
			}
			if r := requests[0]; v == Deny && p.Hidden(file) && p.Decide(r).Verdict != Deny {
				t.Fatalf("%q hides %q, but it may be opened", text, file)
			}
		}
	})
}

func mustNew(t *testing.T, o Options) *Policy {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkMust holds the cheap tests of a pattern against the dear ones.
func checkMust(t *testing.T, r rule, file string) {
	t.Helper()
	if r.path == nil {
		return
	}
	if covers(r.path.list, file, r.path.dir, false, true) && !strings.Contains(file, r.path.must) {
		t.Fatalf("%q matches %q, which does not hold %q", r.Text, file, r.path.must)
	}
	if folded := foldPath(file); r.path.folded != nil && covers(r.path.folded, folded, r.path.dir, true, true) && !strings.Contains(folded, r.path.foldedMust) {
		t.Fatalf("%q matches %q without letter case, which does not hold %q", r.Text, folded, r.path.foldedMust)
	}
}

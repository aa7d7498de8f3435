package permission

import "testing"

func TestSuggest(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.links["/w/link"] = "/w/b"
	w.options.Ask = []Rule{{Text: "Bash(npm publish *)"}}
	p, err := New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	p = p.At(w.roots, w.cwd)
	for _, c := range []struct{ call, want string }{
		{"sh npm run build", "Bash(npm run *)"},
		{"sh npm test", "Bash(npm test *)"},
		{"sh make", "Bash(make)"},
		{"sh make -j4 all", "Bash(make -j4 all)"},
		{"sh ls && npm test", "Bash(npm test *)"},
		{"sh npm test && make all", "Bash(npm test && make all)"},
		{"sh python x.py", "Bash(python x.py *)"},
		{"sh echo '*' > a", "Bash(echo '\\*' > a)"},
		{"sh for i in 1; do make $i; done", "Bash(for i in 1; do make $i; done)"},
		// what runs its words gets no prefix
		{"sh env make all", "Bash(env make all)"},
		{"sh bash build.sh", "Bash(bash build.sh)"},
		{"sh timeout 5 npm test", "Bash(npm test *)"},
		{"sh xargs make < a", "Bash(xargs make < a)"},
		// no rule is offered for what a person must see each time
		{"sh rm -rf src", ""},
		{"sh sudo make", ""},
		{"sh eval make", ""},
		{"sh npm publish", ""},
		{"edit .git/config", ""},
		{"read .env", ""},
		{"sh make a\u202eb", ""},
		// nor one that is not needed
		{"read a.txt", ""},
		{"sh ls", ""},
		{"edit src/a[1].go", `Edit(//w/src/a\[1].go)`},
		{"edit link", ""},
		{"fetch Example.com.", "WebFetch(domain:example.com)"},
		{"agent explore", "Agent(explore)"},
		{"tool mcp__git__push", "mcp__git__push"},
	} {
		r, err := w.request(c.call)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Suggest(r); got != c.want {
			t.Errorf("%s: got %q, want %q (%+v)\n%s", c.call, got, c.want, p.Decide(r), describe(r))
		}
	}
	var nobody *Policy
	if got := nobody.Suggest(Request{}); got != "" {
		t.Errorf("got %q of no policy", got)
	}
}

// TestSuggestedMeansTheSame: a rule that a person allowed for good is written into a file, where it must mean what was
// shown: the one file, whatever the roots and the cwd are there, and no file of the same name in another root.
func TestSuggestedMeansTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, call := range []string{"edit src/a[1].go", "edit /v/b c.txt", "sh make -j4 all", "sh npm run build", "fetch Example.com"} {
		r, err := w.request(call)
		if err != nil {
			t.Fatal(err)
		}
		rule := mustNew(t, w.options).At(w.roots, w.cwd).Suggest(r)
		if rule == "" {
			t.Fatalf("%s: nothing is suggested", call)
		}
		o := w.options
		o.Allow = []Rule{{Text: rule, Origin: "config.toml:1"}}
		later := mustNew(t, o)
		for _, at := range []*Policy{later.At(w.roots, w.cwd), later.At([]string{"/other"}, "/other/deep")} {
			if d := at.Decide(r); d.Verdict != Allow || d.Rule != rule {
				t.Errorf("%s: the rule %s that was shown, in a file, makes %+v of the call", call, rule, d)
			}
		}
	}
	o := w.options
	o.Allow = []Rule{{Text: `Edit(//w/src/a\[1].go)`}}
	w.options = o
	for _, call := range []string{"edit /v/src/a[1].go", "edit src/a1.go", "edit /v/w/src/a[1].go", "edit src/a[1].go.x"} {
		r, err := w.request(call)
		if err != nil {
			t.Fatal(err)
		}
		if d := mustNew(t, o).At(w.roots, w.cwd).Decide(r); d.Verdict != Ask {
			t.Errorf("%s: a rule about another file makes %+v", call, d)
		}
	}
}

package permission

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"
)

// A dice throws rules and calls.
type dice struct{ *rand.Rand }

// newDice makes dice whose seed is printed when the test fails; CODEHAND_TEST_SEED repeats it.
func newDice(t *testing.T) dice {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("CODEHAND_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("CODEHAND_TEST_SEED=%d repeats it", seed)
		}
	})
	return dice{rand.New(rand.NewPCG(seed, 1))}
}

func (d dice) pick(list ...string) string { return list[d.IntN(len(list))] }

// rule is any rule that may stand in a list of this kind.
func (d dice) rule(v Verdict) Rule {
	pattern := func() string {
		return d.pick("", "/", "//", "~/", "./") + d.pick("a", "b", "*", "a/b", "**/b", "[ab]", "a/**", "w/**", "*.x", ".env", "A")
	}
	command := func() string {
		return d.pick("ls", "make", "git push", "rm", "curl x.org", "make all && make test", "*") + d.pick("", " *", ":*", " a", " -rf *")
	}
	var text string
	switch d.IntN(7) {
	case 0, 1:
		text = d.pick("Read", "Edit") + "(" + pattern() + ")"
	case 2, 3:
		text = d.pick("Bash", "run_shell", "PowerShell") + "(" + command() + ")"
	case 4:
		text = d.pick("WebFetch(domain:x.org)", "WebFetch(domain:*.x.org)", "WebFetch(domain:*)", "Agent(a)", "Skill(a *)", "Task(*)")
	case 5:
		text = d.pick("read_file", "Read", "edit_file", "Edit", "run_shell", "Bash", "Read(*)", "mcp__a", "mcp__a__b", "WebFetch")
	default:
		text = d.pick("Bash(run_in_background:true)", "mcp__a__b(x:*)", "Agent(model:a)", "mcp__*", "*", "*_file", "run_*(run_in_background:t*)")
		if v == Allow {
			text = "mcp__a__b"
		}
	}
	return Rule{Text: text, Origin: "x.toml:1", Dir: d.pick("", "/w", "/conf")}
}

// rules are some that parse.
func (d dice) rules(n int, v Verdict) (rules []Rule) {
	for len(rules) < n {
		r := d.rule(v)
		if _, err := parse(r, "/h/u", v); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// request is any call.
func (d dice) request() Request {
	r := Request{
		Cwd: d.pick("/w", "/w/a", "/v"), Now: noon, Mode: Mode(d.IntN(6)), Own: Allow,
		ReadOnly: d.IntN(2) == 0, Private: d.IntN(8) == 0, PlanFile: d.IntN(8) == 0, Confined: d.IntN(4) == 0,
		Input: json.RawMessage(d.pick(`{}`, `{"run_in_background":true}`, `{"x":1}`, `{"model":"a"}`, `no`)),
	}
	if d.IntN(8) == 0 {
		r.Own = Verdict(d.IntN(3))
	}
	r.Tool, r.Aliases = d.pick("read_file", "run_readonly", "mcp__a__b", "x"), nil
	switch d.IntN(6) {
	case 0:
		r.Tool, r.Aliases = "edit_file", []string{"Edit"}
	case 1:
		r.Tool, r.Aliases = "run_shell", []string{"Bash"}
	case 2:
		r.Tool, r.Aliases = "web_fetch", []string{"WebFetch"}
	case 3:
		r.Tool, r.Aliases = "agent", []string{"Agent"}
	}
	for range d.IntN(3) {
		r.Opinions = append(r.Opinions, Verdict(d.IntN(3)))
		r.Judged = append(r.Judged, Verdict(d.IntN(3)))
	}
	for range d.IntN(3) {
		r.Grants = append(r.Grants, Grant{Rule: d.rule(Allow).Text, At: noon.Add(-time.Duration(d.IntN(30)) * time.Hour)})
	}
	for range d.IntN(4) {
		r.Targets = append(r.Targets, d.target())
	}
	return r
}

func (d dice) target() Target {
	switch d.IntN(6) {
	case 0, 1:
		return Target{Kind: Command, Value: d.pick("ls", "make", "make all && make test", "git push --force", "rm -rf a", "curl x.org", "ls; rm b",
			"cat a/b", "touch a", "eval x", "echo $(rm b)", "for i in a; do make; done", "rm -rf /", "ls > .env", "(")}
	case 2:
		return Target{Kind: Kind(d.IntN(5)), Value: d.pick("x.org", "a.x.org", "a", "a b")}
	}
	path := func() string {
		return d.pick("/w", "/v", "/h/u", "/home/x", "/w/a") + d.pick("/a", "/b", "/a/b", "/b/a", "/c.x", "/.ssh/x", "/.env", "/.git/config", "/A")
	}
	t := Target{Kind: Path, Value: path(), Use: Use(d.IntN(3)), Inside: d.IntN(2) == 0, Folds: d.IntN(4) == 0, Unsure: d.IntN(8) == 0}
	if t.Real = t.Value; d.IntN(3) == 0 {
		t.Real = path()
	}
	if d.IntN(4) == 0 {
		t.Also = []string{path()}
	}
	return t
}

// loose orders decisions by what they let pass.
func loose(d Decision) int {
	switch {
	case d.Verdict == Allow:
		return 3
	case d.Verdict == Ask && !d.Hard:
		return 2
	case d.Verdict == Ask:
		return 1
	}
	return 0
}

// Whatever stands in the lists already, a rule that denies or asks, as a project may add one, never lets more pass; and
// one that allows lets pass only what was a default ask, or what mode dontAsk denied in place of one.
func TestRulesOnlyDoWhatTheyMay(t *testing.T) {
	t.Parallel()
	d := newDice(t)
	for range 6000 {
		o := Options{Home: "/h/u", Own: []string{"/h/u/own"}}
		o.Deny, o.Ask, o.Allow = d.rules(d.IntN(3), Deny), d.rules(d.IntN(3), Ask), d.rules(d.IntN(4), Allow)
		r := d.request()
		before := decision(t, o, r)
		for _, v := range []Verdict{Deny, Ask, Allow} {
			with, added := o, d.rules(1, v)
			switch v {
			case Deny:
				with.Deny = append(added, o.Deny...)
			case Ask:
				with.Ask = append(o.Ask[:len(o.Ask):len(o.Ask)], added...)
			case Allow:
				with.Allow = append(added, o.Allow...)
			}
			after := decision(t, with, r)
			mayAllow := v == Allow && after.Verdict == Allow && (loose(before) == 2 || loose(before) == 0 && r.Mode == DontAsk && before.Rule == "")
			if loose(after) > loose(before) && !mayAllow || v == Allow && loose(after) < loose(before) {
				t.Fatalf("%v %q turned\n%+v into\n%+v for\n%+v\nwith %+v", v, added[0].Text, before, after, r, o)
			}
		}
	}
}

func decision(t *testing.T, o Options, r Request) Decision {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p.At([]string{"/w", "/v"}, "/w").Decide(r)
}

// A grant never lets pass what a person must decide each time, and what is suggested allows the call, if it is granted.
func TestSuggestionsWork(t *testing.T) {
	t.Parallel()
	d := newDice(t)
	suggested := 0
	for range 6000 {
		o := Options{Home: "/h/u", Deny: d.rules(d.IntN(2), Deny), Ask: d.rules(d.IntN(2), Ask), Allow: d.rules(d.IntN(2), Allow)}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		p = p.At([]string{"/w", "/v"}, "/w")
		r := d.request()
		before, rule := p.Decide(r), p.Suggest(r)
		if rule == "" {
			continue
		}
		suggested++
		r.Grants = append(r.Grants, Grant{Rule: rule, At: noon})
		if after := p.Decide(r); before.Verdict != Ask || before.Hard || after.Verdict != Allow {
			t.Fatalf("%q turned\n%+v into\n%+v for\n%+v", rule, before, after, r)
		}
	}
	if suggested < 50 {
		t.Errorf("only %d calls had a suggestion", suggested)
	}
}

// Decide changes nothing that it was given.
func TestDecideIsPure(t *testing.T) {
	t.Parallel()
	d := newDice(t)
	p, err := New(Options{Home: "/h/u", Deny: d.rules(3, Deny), Ask: d.rules(3, Ask), Allow: d.rules(3, Allow)})
	if err != nil {
		t.Fatal(err)
	}
	p = p.At([]string{"/w"}, "/w")
	for range 500 {
		r := d.request()
		before := fmt.Sprintf("%+v", r)
		first := p.Decide(r)
		if after := fmt.Sprintf("%+v", r); after != before {
			t.Fatalf("%s became %s", before, after)
		}
		if again := p.Decide(r); !reflect.DeepEqual(again, first) {
			t.Fatalf("got %+v, then %+v", first, again)
		}
	}
}

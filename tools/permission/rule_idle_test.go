package permission

import (
	"strings"
	"testing"
)

// A rule that could match nothing that its author meant was taken without a word.
func TestIdle(t *testing.T) {
	t.Parallel()
	inputs := func(name string) bool { return name == "timeout" }
	for _, c := range []struct {
		rule string
		v    Verdict
		why  string // a part; "": it may match
	}{
		{"Bash(rm:x)", Deny, "no command begins with"}, {"Bash(rm:x)", Allow, "no command begins with"}, {"Bash(ls:*)", Deny, ""},
		{"Bash(timeout:5)", Deny, ""}, {"Bash(timeoutt:5)", Ask, "no tool here has an input timeoutt"}, {"run_shell(backgrnd:true)", Ask, "backgrnd"},
		{"read_file(ofset:1)", Deny, "no tool here has an input ofset"}, {"Read(secrets:*)", Deny, "no file is called secrets:*"}, {"Skill(plugin:name)", Deny, ""},
		{"Bash(git:* push)", Deny, "only at the end"}, {"Bash(git:*push)", Deny, "only at the end"}, {"Bash(scp a host:*.txt)", Deny, ""}, {"Bash(git push:*)", Deny, ""},
		{"Bash(rm  *)", Deny, "one blank"}, {"Bash(rm -rf  /)", Ask, "one blank"}, {"Bash(echo 'a  b')", Allow, ""},
		{"Bash(rm|mv *)", Deny, "no regular expression"}, {"Bash((rm|mv) *)", Deny, "no regular expression"}, {"Bash({rm,mv} *)", Deny, "no regular expression"},
		{"Bash(^rm *)", Deny, "no regular expression"}, {"Bash(rm$)", Deny, "no regular expression"}, {"Bash(:(){ :|:& };:)", Deny, ""}, {"Bash($X)", Deny, ""},
		{"Bash(cd * && ls *)", Allow, "by itself"}, {"Bash(ls * | wc)", Allow, "by itself"}, {"Bash(cd a && ls)", Allow, ""}, {"Bash(cd * && ls *)", Deny, ""}, {"Bash(grep 'a|b' *)", Allow, ""},
		{"Bash", Deny, ""}, {"Bash(rm *)", Deny, ""}, {"Bash(npm run test:unit)", Allow, ""},
		{"Read(*.{js,ts})", Deny, "no alternatives"}, {`Read(\{a,b})`, Deny, ""}, {"Read({a})", Deny, ""}, {"Read($HOME/x)", Deny, "variables"}, {"Read(a$b)", Deny, ""}, {"Read(src/**)", Allow, ""},
	} {
		o := Options{Home: "/h/u"}
		*map[Verdict]*[]Rule{Deny: &o.Deny, Ask: &o.Ask, Allow: &o.Allow}[c.v] = []Rule{{Text: c.rule}}
		for _, got := range mustNew(t, o).At([]string{"/w"}, "/w").Coverage() {
			why, fix := got.Idle(inputs)
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || (why == "") != (fix == "") {
				t.Errorf("%v %s: got %q (%q), want %q", c.v, c.rule, why, fix, c.why)
			}
		}
	}
}

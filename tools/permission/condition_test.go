package permission

import "testing"

// A condition of a hook matches as a rule that asks does, and rather too often than too seldom.
func TestCondition(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.links["/w/link"] = "/w/src/a.ts"
	for _, c := range []struct {
		rule, call string
		want       bool
	}{
		{"Bash", "sh ls", true},
		{"Bash", "edit a", false},
		{"Bash(git push *)", "sh git push", true},
		{"Bash(git push *)", "sh ls && FOO=1 git push origin", true},
		{"Bash(git push *)", "sh echo $(git push)", true},
		{"Bash(git push *)", "sh git pull", false},
		{"Edit(*.ts)", "edit src/a.ts", true},
		{"Edit(*.ts)", "edit link", true},
		{"Edit(*.ts)", "read src/a.ts", false},
		{"Edit(*.ts)", "sh echo x > src/a.ts", true},
		{"Edit(*.ts)", "edit src/a.go", false},
		{"Edit(src/*.ts)", "edit /v/deep/src/a.ts", true}, // whatever the roots are
		{"Read(src/**)", "grep src/x", true},
		{"Read(src/**)", "edit src/x", false}, // hooks for reading ran, and could deny, where something was changed
		{"Read", "edit src/x", false},
		{"Read(//w/a)", "read a", true},
		{"Read(//w/a)", "read sub/w/a", false},
		{"Read(/a)", "read /w/a", true},
		{"Read(/a)", "read /v/a", true},
		{"Read(/a)", "read /w/sub/a", false},
		{"Read(/a)", "read /conf/a", false},
		{"Read(~/a)", "read /h/u/a", true},
		{"WebFetch(domain:*.org)", "fetch a.org", true},
		{"WebFetch(domain:*.org)", "fetch a.com", false},
		{"Agent(model:opus)", `tool agent {"model":"opus"}`, true},
		{"mcp__*", "tool mcp__a__b", true},
		{"Write", "write a", true},
		{"Write", "edit a", false},
	} {
		cond, err := Compile(Rule{Text: c.rule, Origin: "x:1"}, "/h/u")
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.request(c.call)
		if err != nil {
			t.Fatal(err)
		}
		if got := cond.Matches(r, []string{"/w", "/v"}); got != c.want {
			t.Errorf("%s, %s: got %v, want %v", c.rule, c.call, got, c.want)
		}
	}
	if _, err := Compile(Rule{Text: "Bash(", Origin: "x:1"}, ""); err == nil {
		t.Error("a rule that does not parse was taken")
	}
}

package ignore

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	const file, dir = false, true
	for _, c := range []struct {
		rules, path string
		dir         bool
		want        Verdict
	}{
		{"", "a", file, None},
		{"a", "a", file, Ignore},
		{"a", "x/y/a", dir, Ignore},
		{"a", "ab", file, None},
		{"a\n!a", "a", file, Keep},
		{"!a\na", "a", file, Ignore},
		{"#a", "#a", file, None},
		{`\#a`, "#a", file, Ignore},
		{`\!a`, "!a", file, Ignore},
		{"a/", "a", file, None},
		{"a/", "x/a", dir, Ignore},
		{"a//", "a", dir, None},
		{"/a", "a", file, Ignore},
		{"/a", "x/a", file, None},
		{"x/a", "x/a", file, Ignore},
		{"x/a", "y/x/a", file, None},
		{"*.o", "x/a.o", file, Ignore},
		{"*.o", ".o", file, Ignore},
		{"*.tar.gz", "a.tar.gz", file, Ignore},
		{"*.gz/", "a.gz", file, None},
		{"*~", "a.c~", file, Ignore},
		{"x/*.o", "x/y/a.o", file, None},
		{"x/*", "x/y", file, Ignore},
		{"**/a", "a", file, Ignore},
		{"**/a", "x/y/a", file, Ignore},
		{"x/**", "x", dir, None},
		{"x/**", "x/y/z", file, Ignore},
		{"x/**/y", "x/y", file, Ignore},
		{"x/**/y", "x/1/2/y", file, Ignore},
		{"x/**/y", "xy", file, None},
		{"/**", "x/y", file, Ignore},
		{"x**/y", "x1/2/y", file, Ignore},
		{"x**/y", "xy", file, Ignore},
		{"a?c", "abc", file, Ignore},
		{"x/a?c", "x/a/c", file, None},
		{"é?", "éx", file, Ignore},
		{"?", "é", file, None},
		{"??", "é", file, Ignore},
		{"[ab]", "b", file, Ignore},
		{"[!ab]", "b", file, None},
		{"[^ab]", "c", file, Ignore},
		{"[]]", "]", file, Ignore},
		{"[!]]", "]", file, None},
		{"[a-c]x", "bx", file, Ignore},
		{`[\]]`, "]", file, Ignore},
		{"[[:digit:]]", "7", file, Ignore},
		{"[[:nothing:]]", "n", file, None},
		{"[a", "[a", file, None},
		{`a\`, `a\`, file, None},
		{"a   ", "a", file, Ignore},
		{`a\ `, "a ", file, Ignore},
		{`a\  `, "a ", file, Ignore},
		{"a\t", "a", file, None},
		{"a\r\n", "a", file, Ignore},
		{"a\r", "a", file, Ignore},
		{"\ufeffa", "a", file, Ignore},
		{"!", "!", file, None},
		{"/", "a", dir, None},
		{"a\x00b", "a", file, Ignore},
	} {
		if got := Parse([]byte(c.rules)).Match(c.path, c.dir); got != c.want {
			t.Errorf("Parse(%q).Match(%q, %v) = %v, want %v", c.rules, c.path, c.dir, got, c.want)
		}
	}
}

func TestNilHasNoRules(t *testing.T) {
	t.Parallel()
	var l *List
	var s *Stack
	if got := l.Match("a", false); got != None {
		t.Errorf("nil List: got %v, want None", got)
	}
	if s.Ignored("/a", false) {
		t.Error("nil Stack: ignores /a, want nothing ignored")
	}
}

func TestStack(t *testing.T) {
	t.Parallel()
	list := func(rules ...string) *List { return Parse([]byte(strings.Join(rules, "\n"))) }
	var none *Stack
	outer := none.Push(GitIgnore, "/r", list("x", "y", "/top"))
	for _, c := range []struct {
		what string
		s    *Stack
		path string
		want bool
	}{
		{"a rule of the parent applies below", outer, "/r/a/b/x", true},
		{"an anchored one only beside its file", outer, "/r/a/top", false},
		{"outside its directory a file says nothing", outer, "/rr/x", false},
		{"the nearer file decides", outer.Push(GitIgnore, "/r/a", list("!x")), "/r/a/x", false},
		{"a stronger kind beats a nearer file", outer.Push(DotIgnore, "/r", list("!x")).Push(GitIgnore, "/r/a", list("x")), "/r/a/x", false},
		{".rgignore beats .ignore", outer.Push(RgIgnore, "/r", list("x")).Push(DotIgnore, "/r", list("!x")), "/r/x", true},
		{".gitignore beats exclude", none.Push(Exclude, "/r", list("x")).Push(GitIgnore, "/r", list("!x")), "/r/x", false},
		{"exclude beats the global file", none.Push(Exclude, "/r", list("!x")).Push(Global, "/", list("x")), "/r/x", false},
		{"the global file applies everywhere", none.Push(Global, "/", list("x")), "/r/x", true},
		{"an inner repository is on its own", outer.Border(), "/r/a/x", false},
		{"but .ignore reaches into it", outer.Push(DotIgnore, "/r", list("x")).Border(), "/r/a/x", true},
		{"and so does the global file", outer.Push(Global, "/", list("x")).Border(), "/r/a/x", true},
	} {
		if got := c.s.Ignored(c.path, false); got != c.want {
			t.Errorf("%s: Ignored(%s) = %v, want %v", c.what, c.path, got, c.want)
		}
	}
	if !outer.Ignored("/r/x", false) {
		t.Error("pushing onto a stack changed it, want it immutable")
	}
}

// A pattern that backtracks without end in a simple matcher must come to its end by itself.
func TestMatchIsBounded(t *testing.T) {
	t.Parallel()
	l := Parse([]byte(strings.Repeat("**/a*b*/", 200) + "x"))
	if got := l.Match(strings.Repeat("aaabbb/", 500)+"y", false); got != None {
		t.Errorf("got %v, want None", got)
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add([]byte("*.o\n!a/**/b\n[[:alpha:]-z]x/\n"), "a/x/b")
	f.Add([]byte("**/[a\\]/**\\/\\"), "a]/b")
	f.Fuzz(func(t *testing.T, rules []byte, path string) {
		l := Parse(rules)
		whole := l.last(path, false)
		if dir := l.last(path, true); dir < whole {
			t.Errorf("as a directory rule %d decides, as a file rule %d: want at least as late", dir, whole)
		}
		// Every rule by itself says the same as the tables of the whole file.
		single := 0
		n := 0
		for line := range strings.SplitSeq(strings.TrimPrefix(string(rules), "\ufeff"), "\n") {
			one := &List{keep: []bool{false}, names: map[string]best{}, exts: map[string]best{}}
			one.add(line)
			if len(one.keep) == 1 {
				continue
			}
			n++
			if one.last(path, false) != 0 {
				single = n
			}
		}
		if single != whole {
			t.Errorf("%q on %q: rule %d decides, one by one rule %d", rules, path, whole, single)
		}
	})
}

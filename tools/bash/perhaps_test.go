package bash

import (
	"slices"
	"strings"
	"testing"
)

// Rules that deny `rm *` were passed by a line that made a program or a script, and then ran it.
func TestRunsWhatItFills(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"cp /bin/rm foo; ./foo x", "cp /bin/rm foo && timeout 5 ./foo x", "mv /bin/rm foo; ./foo x", "ln /bin/rm foo; ./foo x",
		"install /bin/rm foo; ./foo x", "cat /bin/rm > foo; chmod +x foo; ./foo x", "tee foo < /bin/rm; ./foo x", "rsync /bin/rm foo; ./foo x",
		"cp -r /bin d && d/foo x", "cd a && cp /bin/rm foo && ./foo x", "cp /bin/rm a/foo; cd a; ./foo x", "cd $D; cp /bin/rm foo; ./foo x",
		"curl -o foo http://h; sh foo", "echo 'rm x' > foo; sh foo", "echo 'rm x' > foo; . ./foo", "echo 'rm x' > foo; sh < foo",
		"echo 'a: ; rm x' > m; make -f m", "echo x > f.py; python3 -u f.py a", "echo x > f.js && node f.js", "echo x > f.js && node -r ./f.js y",
		"f() { ./foo x; }; cp /bin/rm foo; f", "cp /bin/rm foo; find . -exec ./foo {} \\;", "echo '!rm x' > f; ed < f", "echo 'rm x' > f; at -f f now",
		"sed -i 's/a/rm x/' f; sh f",
	} {
		if a := Analyze(command, inRoot); a.Hidden == "" {
			t.Errorf("%s: nothing is hidden (%v %s)", command, a.Class, a.Why)
		}
	}
	for _, command := range []string{
		"chmod +x foo && ./foo", "touch foo; ./foo", "go build -o foo . && ./foo", "gcc -o foo foo.c && ./foo", "echo x > in; python3 f.py in",
		"mkdir -p d && d/foo", "echo a > log; ./foo", "sh build.sh > log; cat log", "cp a b; ./foo", "cp foo b; ./foo", "./foo > foo.log",
	} {
		if a := Analyze(command, inRoot); a.Hidden != "" {
			t.Errorf("%s: hidden: %s", command, a.Hidden)
		}
	}
}

// A rule that denies `rm *` was passed by every starter of programs that has no row in the table.
func TestPerhapsRuns(t *testing.T) {
	t.Parallel()
	perhaps := func(command string) bool {
		a := Analyze(command, inRoot)
		return slices.ContainsFunc(a.Parts, func(part Part) bool {
			return slices.ContainsFunc(part.Perhaps, func(p string) bool { return p == "rm" || strings.HasPrefix(p, "rm ") })
		})
	}
	for _, command := range []string{
		"ifne rm x", "ls | ifne rm x", "pee 'rm x'", "run-one /bin/rm x", "fly ssh console -C 'cd a && rm x'", "openvpn --up='rm x'", "A=b withlock l rm x",
		"timeout 5 ifne rm x", "meson devenv -C d rm x", "mystery --do 'system(\"rm x\")'", "sshpass -p x rm x", "mispipe 'ls' 'rm x'", "$(ifne rm x)",
	} {
		if !perhaps(command) {
			t.Errorf("%s: no rule sees it", command)
		}
	}
	for _, command := range []string{"grep rm x", "echo rm x", "cat rm x", "git commit -m 'rm x'", "printenv rm", "ls rm", "foo perform x", "foo --rm x", "[ rm = x ]"} {
		if perhaps(command) {
			t.Errorf("%s: its words are no commands", command)
		}
	}
}

package bash

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// What a deny rule for git push must see, however it is written.
func TestFormsHaveEverySpelling(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		`git push`, `g""it push`, `\git push`, `'git' "push"`, `gi\t pu\sh`, `/usr/bin/git push`, `./git push`, `git  	push`, `$'git' push`,
		`git -C . push`, `git --no-pager push`, `git -c a.b=c push`, `git --git-dir x push`, `git pu{s,S}h`, `git$x push`, `git "$x"push`, `git $x push`,
		`GIT_DIR=x git push`, `A=1 B=2 git push`, `env git push`, `env -i A=b git push`, `env -u X -C d git push`, `/usr/bin/env git push`,
		`timeout 5 git push`, `timeout -k 1 --signal=KILL 5 git push`, `nice -n 3 git push`, `nohup git push`, `stdbuf -oL git push`,
		`command git push`, `builtin command git push`, `exec git push`, `time git push`, `time -p git push`, `xargs git push`,
		`xargs -0 -n 1 -I{} git push`, `sudo git push`, `sudo -u me A=b git push`, `doas git push`, `strace -f git push`,
		`strace --unknown x git push`, `setsid git push`, `ionice -c 3 git push`, `flock f git push`, `watch -n 5 git push`,
		`nohup timeout 5 nice env A=b git push`, `find . -exec git push \;`, `find . -name x -execdir env git push {} +`,
		`bash -c 'git push'`, `bash -c "bash -c 'git push'"`, `sh -ec 'cd a; git push'`, `env bash -lc 'git push'`, `eval git push`,
		`eval "git push"`, `trap 'git push' EXIT`, `alias x='git push'`, `echo $(git push)`, "echo `git push`", `echo "$(git push)"`,
		`cat <(git push)`, `tee >(git push)`, `x=$(git push)`, `a[$(git push)]=1`, `echo ${x:-$(git push)}`, `echo $(( $(git push) ))`,
		`[[ $(git push) ]]`, `export X=$(git push)`, `for x in $(git push); do :; done`, `case $(git push) in esac`, `(git push)`,
		`{ git push; }`, `if git push; then :; fi`, `if :; then :; elif :; then :; else git push; fi`, `while git push; do :; done`,
		`until :; do git push; done`, `for ((i=0;i<1;i++)); do git push; done`, `for x in a; do git push; done`, `case x in x) git push;; esac`,
		`f() { git push; }`, `function f { git push; }`, `coproc git push`, `git push &`, `! git push`, `ls && git push`, `ls || git push`,
		`ls; git push`, "ls\ngit push", `ls | git push`, `ls |& git push`, `>/dev/null git push`, `git >/dev/null push`, `git push 2>&1`,
		"cat <<E\n$(git push)\nE", "bash <<E\ngit push\nE", "bash <<< 'git push'", "cat <<'E' | sh\ngit push\nE", `echo 'git push' | sh`,
		`ls > $(git push)`, `{ ls; } > $(git push)`, "git \\\npush", "ls # \\\ngit push", "ls (\ngit push", "git push\nls (", `ls "$(git push`, `ls; git push '`,
		`ssh h 'git push'`, `su -c 'git push'`, `env -S 'git push'`, `flock f -c 'git push'`, `parallel 'git push' ::: a`, `watch 'git push'`,
		strings.Repeat("ls; ", 80) + "git push", strings.Repeat("(", 40) + "git push" + strings.Repeat(")", 40), "ls " + strings.Repeat("x", 11_000) + "; git push",
	} {
		a := Analyze(command, inRoot)
		if !slices.ContainsFunc(a.Parts, func(p Part) bool {
			return slices.ContainsFunc(p.Forms, func(form string) bool { return form == "git push" || strings.HasPrefix(form, "git push ") })
		}) {
			t.Errorf("%.200q: no part has the form git push: %.400s", command, fmt.Sprint(a.Parts))
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command string
		want    string // text of each part; E exact, I inner
	}{
		{"", ""},
		{"npm test", "npm test"},
		{"npm test && git add . | cat; ls & pwd", "npm test|git add .|cat|ls|pwd"},
		{"  npm   test  ", "npm   test"},
		{"npm test # all", "npm test"},
		{"! npm test", "npm test"},
		{"time npm test", "npm test"},
		{"CI=1 LC_ALL=C NODE_ENV=test npm test", "npm test"},
		{"CI=1 FOO=1 npm test", "CI=1 FOO=1 npm test"},
		{"CI=$(x) npm test", "CI=$(x) npm test E|x I"},
		{"PATH=. npm test", "PATH=. npm test E"},
		{"NODE_OPTIONS=x npm test", "NODE_OPTIONS=x npm test E"},
		{"timeout 5 nice -n 3 nohup stdbuf -oL npm test", "npm test"},
		{"FOO=1 timeout 5 npm test", "FOO=1 timeout 5 npm test"},
		{"command npm test", "npm test"},
		{"command -v npm", "command -v npm"},
		{"./timeout 5 npm test", "./timeout 5 npm test E"},
		{"timeout --new x 5 npm test", "timeout --new x 5 npm test E"},
		{"xargs npm test", "npm test"},
		{"xargs -n1 npm test", "xargs -n1 npm test E"},
		{"env npm test", "env npm test E"},
		{"watch npm test", "watch npm test E"},
		{"setsid npm test", "setsid npm test E"},
		{"flock f npm test", "flock f npm test E"},
		{"find . -delete", "find . -delete E"},
		{"find . -exec ls \\;", "find . -exec ls \\; E"},
		{"find . -name x -fprint y", "find . -name x -fprint y E"},
		{"bash -c 'npm test'", "bash -c 'npm test' E|npm test I"},
		{"bash x.sh", "bash x.sh"},
		{"npm test $X", "npm test $X E"},
		{"npm test \"$X\"", "npm test \"$X\" E"},
		{"npm test $'x'", "npm test $'x' E"},
		{"npm test {a,b}", "npm test {a,b} E"},
		{"npm test *.js", "npm test *.js"},
		{"*.sh x", "*.sh x E"},
		{"npm test 2>&1 >/dev/null", "npm test"},
		{"npm >/dev/null test", "npm test"},
		{"npm test > out 2>/dev/null", "npm test > out"},
		{"npm > out test", "npm test > out"},
		{"npm test > $X", "npm test > $X E"},
		{"cat <<'E' > f\n$(x)\nE", "cat <<'E' > f"},
		{"cat <<E > f\n$X\nE", "cat <<E > f E"},
		{"> f", "> f"},
		{"A=1", "A=1"},
		{"export A=1", "export A=1 E"},
		{"[[ -f x ]] && ls", "[[ -f x ]] E|ls"},
		{"(( x++ ))", "(( x++ )) E"},
		{"{ npm test; } > out", "npm test"},
		{"for f in a b; do npm test; done", "npm test"},
		{"f() { npm test; }; f", "npm test|f"},
		{"eval npm test", "eval npm test E|npm test I"},
		{"echo $(npm test)", "echo $(npm test) E|npm test I"},
	} {
		a := Analyze(c.command, inRoot)
		var got []string
		for _, p := range a.Parts {
			text := p.Text
			if p.Exact {
				text += " E"
			}
			if p.Inner {
				text += " I"
			}
			got = append(got, text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q: got %q, want %q", c.command, strings.Join(got, "|"), c.want)
		}
	}
}

func TestUnclear(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"npm test":                                 false,
		"for f in a b; do npm test; done":          false,
		"if [ -f x ]; then npm test; fi":           false,
		"echo $(npm test)":                         false,
		"bash -c 'npm test'":                       false,
		"npm test '":                               true,
		"npm test (":                               true,
		"bash -c 'npm ('":                          true,
		"f() { npm test; }; f":                     true,
		"coproc npm test":                          true,
		"for f in $(ls); do npm test; done":        true,
		"for ((i=0; i<3; i++)); do ls; done":       true,
		"case $(ls) in a) npm test;; esac":         true,
		"{ npm test; } > $(ls)":                    true,
		"npm test \\\n x":                          true,
		"npm test \u200b":                          true,
		"npm test\r":                               true,
		strings.Repeat("ls; ", 50):                 false,
		strings.Repeat("ls; ", 51):                 true,
		"ls " + strings.Repeat("x", 9_000):         false,
		"ls " + strings.Repeat("x", 10_000):        true,
		"bash -c 'bash -c \"bash -c \\\"ls\\\"\"'": false,
	} {
		if a := Analyze(command, inRoot); a.Unclear != want {
			t.Errorf("%.60q: unclear %v, want %v", command, a.Unclear, want)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"ls":                         "",
		"npm test > a 2>> b":         "a! b!",
		"npm test &> a":              "a!",
		"npm test >| a":              "a!",
		"npm test <> a":              "a!",
		"npm test >& a":              "a!",
		"npm test 2>&1 3<&-":         "",
		"npm test > /dev/null":       "",
		"npm test < a":               "a",
		"npm test > $X":              "",
		"npm test > *.x":             "",
		"npm test > ~/x":             "~/x!",
		"npm test > '~/x'":           "./~/x!",
		"cd d && npm test > a":       "d/a!",
		"cd d; cd e; cat a":          "d/e/a e/a a d/a",
		"cd d; cd ..; cat a":         "a ../a a d/a",
		"cd /d && cat a ../b /c":     "/d/a /d/../b /c",
		"cd && cat a":                "~/a",
		"cd ~/d && cat ../../a":      "~/../a",
		"cd $X && cat a /b":          "a /b", // was "/b": a cd to an unknown directory bypassed a rule about a name
		"cd - && cat a":              "a",
		"cat $PWD/a \"$(pwd)/b\"":    "a b", // these were none: a rule was passed by an expansion
		"cd d; cat ${PWD}/a":         "d/a a",
		"cat $HOME/a '$HOME/b'":      "~/a $HOME/b",
		"cat \"$X\"/a/b $X \"$Y/\"":  "a/b",
		"echo x > $X/.git/config":    ".git/config!",
		"(cd d && cat a); cat b":     "d/a b",
		"cd d | cat a":               "a",
		"echo $(cd d; cat a) > b":    "b! d/a a",
		"cat a b":                    "a b",
		"head -n 5 a":                "a",
		"tail -n5 a":                 "a",
		"grep -rn x a b":             "a b",
		"grep -e x a":                "a",
		"grep -f p a":                "p a",
		"rg -g '*.go' x a":           "a",
		"rg --files a":               "a",
		"sed -n 1p a":                "a",
		"sed -i s/a/b/ a":            "a!",
		"sed -i.bak s/a/b/ a":        "a! a.bak!",
		"awk '{print}' a":            "a",
		"awk -F, -v x=1 '{print}' a": "a",
		"awk -f p a":                 "p a",
		"find a b -name c":           "a b",
		"find -H a ! -name c":        "a",
		"sort -k2 -o b a":            "a b!",
		"uniq a b":                   "a b!",
		"cut -d, -f1 a":              "a",
		"diff a b":                   "a b",
		"wc -l a":                    "a",
		"cp a b":                     "a b! b/a!?",
		"cp x/a b":                   "x/a b! b/a!?",
		"cp -T a b":                  "a b!",
		"cp a b c":                   "a b c! c/a! c/b!",
		"cp -t c a":                  "a c! c/a!",
		"cp --target-directory=c a":  "a c! c/a!",
		"cp a .":                     "a .! a!",
		"mv a b":                     "b! b/a!? a!",
		"ln -s a b":                  "a b/a b! b/a!? a! b/a!", // whatever b is, it means a, or b/a if b is a directory
		"rm -rf a":                   "a!",
		"rm -- -a":                   "-a!",
		"mkdir -m 700 -p a/b":        "a/b!",
		"touch -r a b":               "a b!",
		"tee -a a b":                 "a! b!",
		"chmod +x a":                 "a!",
		"truncate -s 0 a":            "a!",
		"dd if=a of=b":               "a b!",
		"install -m 644 a b/":        "a b/! b/a!",
		"git rm a":                   "a!",
		"git mv a b":                 "a! b!",
		"git -C d rm a":              "d/a!",
		"git -C /d -C e rm a":        "/d/e/a!",
		"git --git-dir=x rm a":       "",
		// Git's own commands changed its configuration, and no person was asked.
		"git config core.hooksPath x":       ".git/config!",
		"git config user.name x":            ".git/config!",
		"git config --unset user.name":      ".git/config!",
		"git config set user.name x":        ".git/config!",
		"git config -e":                     ".git/config!",
		"git -C d config a.b c":             "d/.git/config!",
		"git -C $X config a.b c":            ".git/config!",
		"git -C ~/d config a.b c":           "~/d/.git/config!",
		"git -c x.y=z config a.b c":         ".git/config!",
		"cd d && git config a.b c":          "d/.git/config!",
		"git config --global a.b c":         "~/.gitconfig!",
		"git config --system a.b c":         "/etc/gitconfig!",
		"git config -f x a.b c":             "x!",
		"git config --file=.gitmodules a b": ".gitmodules!",
		"git config --worktree a.b c":       ".git/config.worktree!",
		"git config user.name":              "",
		"git config --get user.name":        "",
		"git config get user.name":          "",
		"git config --list":                 "",
		"git remote add x y":                ".git/config!",
		"git remote -v":                     "",
		"git remote show x":                 "",
		"git submodule add x y":             ".gitmodules! .git/config!",
		"git submodule update --init":       ".git/config!",
		"git submodule status":              "",
		"git init --template=x":             ".git/hooks!",
		"git init":                          "",
		// `git diff *` was allowed to write into .git/hooks, and outside the roots, since its --output was no change of a file.
		"git diff --output=.git/hooks/x":             ".git/hooks/x!",
		"git log -p --outpu .git/config":             ".git/config!",
		"git -C d show '--output=a b' HEAD":          "d/HEAD d/a b!",
		"git diff --output=x --output=/etc/y":        "x! /etc/y!",
		"git diff -p --output=x -- a":                "a x!",
		"git diff -- --output=x":                     "--output=x",
		"git format-patch -o.git/hooks -1":           ".git/hooks!",
		"git archive --output x HEAD":                "HEAD x!",
		"git log --oneline --output-indicator-new=x": "",
		"git show HEAD:a/b":                          "a/b",
		"git show HEAD:./b":                          "b",
		"git diff -- a":                              "a",
		"git log -p -S x --author y -- a":            "a",
		"git blame -L 1,2 a":                         "a",
		"git -C d show HEAD:a":                       "d/a",
		"curl -o a https://x.example":                "a!",
		"wget -qO a https://x.example":               "a!",
		"timeout 5 cat a":                            "a",
		"sudo tee a":                                 "a!",
		"bash -c 'cat a > b'":                        "b! a",
		"find . -exec cp a b/ \\;":                   ". a b/! b/a!",
		"cat {a,b}":                                  "a b",
		"cat \"a b\"":                                "a b",
	} {
		var got []string
		for _, f := range Analyze(command, inRoot).Files {
			if f.Perhaps || f.Guess { // see TestPerhaps, TestGuesses
				continue
			}
			text := f.Path
			if f.Write {
				text += "!"
			}
			if f.InDir {
				text += "?"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", command, strings.Join(got, " "), want)
		}
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"mkdir -p a/b c":               "a/b c",
		"mkdir -m 755 a":               "a",
		"mkdir --mode=755 a":           "a",
		"mkdir -Z a":                   "",
		"mkdir --par a":                "",
		"cd d && mkdir a":              "d/a",
		"cd $X && mkdir a":             "",
		"cd $X && mkdir /a":            "/a",
		"touch a 2>/dev/null":          "a",
		"touch a > b":                  "",
		"rm a b":                       "a b",
		"rm -rf a":                     "a",
		"rm --no-preserve-root a":      "",
		"rm *.o":                       "",
		"rm $X":                        "",
		"rm ~/a":                       "",
		"rm {a,b}":                     "",
		"rmdir a":                      "a",
		"rmdir -p a/b":                 "",
		"mv a b":                       "b a",
		"mv -t d a":                    "d d/a a",
		"cp a b":                       "b",
		"cp a b c":                     "c c/a c/b",
		"cp -r a b":                    "",
		"cp -a a b":                    "",
		"cp -s a b":                    "",
		"cp --parents a b":             "",
		"cp a":                         "",
		"sed -i s/a/b/ f g":            "f g",
		"sed -i.bak -e s/a/b/ -e 1d f": "f f.bak",
		"sed --in-place=.o s/a/b/ f":   "f f.o",
		"sed -i'x/*' s/a/b/ f":         "",
		"sed s/a/b/ f":                 "",
		"sed -i 's/a/b/w x' f":         "",
		"sed -i 'r x' f":               "",
		"sed -i '1e id' f":             "",
		"sed -i 'w x' f":               "",
		"sed -i -f x f":                "",
		"sed -i --file=x f":            "",
		"FOO=1 rm a":                   "",
		"timeout 5 rm a":               "",
		"/bin/rm a":                    "",
		"\\rm a":                       "a",
		"tee a":                        "",
		"bash -c 'rm a'":               "",
	} {
		a := Analyze(command, inRoot)
		got := strings.Join(a.Parts[len(a.Parts)-1].Edits, " ")
		if len(a.Parts) > 1 && a.Parts[len(a.Parts)-1].Inner {
			got = strings.Join(a.Parts[0].Edits, " ")
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", command, got, want)
		}
	}
}

func TestRemoves(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"rm -rf /":                        "/",
		"rm -r -- -x a":                   "-x a",
		`rm -rf "$HOME" "$x"/* ~ ~/a '~'`: "$HOME $x/* ~ ~/a ./~",
		"rmdir a":                         "a",
		"cd / && rm -rf usr *":            "/usr /*",
		"cd .. && rm -rf a $x/b":          "../a $x/b",
		"cd $X && rm -rf a":               "$X/a", // was "a": it was judged from where the line starts
		"cd \"$X\"; rm -rf ./*":           "$X/*",
		"cd - && rm -rf *":                "$OLDPWD/*",
		"cd $X && cd / && rm -rf *":       "/*",
		"echo $(rm -rf /)":                "/",
		"bash -c 'rm -rf /'":              "/",
		"sudo rm -rf /":                   "/",
		"find . -exec rm -r / \\;":        "/",
		"xargs rm -rf":                    "",
		"/bin/rm x":                       "x",
		"rm -rf /{usr,etc}":               "/usr /etc",
		"grep rm x":                       "",
		"xargs grep rm x":                 "",
	} {
		if got := strings.Join(Analyze(command, inRoot).Removes, " "); got != want {
			t.Errorf("%q: got %q, want %q", command, got, want)
		}
	}
}

func TestPerson(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"eval ls": true, "source x": true, ". x": true, "exec ls": true, "builtin eval ls": true, "zmodload x": true, "emulate zsh": true,
		"ls; eval ls": true, "echo $(eval ls)": true, "bash -c 'eval ls'": true, `"eval" ls`: true, `e\val ls`: true, "f() { eval x; }": true,
		"ls eval": false, "echo 'eval x'": false, "xargs grep eval": false, "git exec": false,
	} {
		if got := Analyze(command, inRoot).Person; (got != "") != want {
			t.Errorf("%q: got %q, want one: %v", command, got, want)
		}
	}
}

// What is built to be dear to read is given up early.
func TestTakeApartIsBounded(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for name, command := range map[string]string{
		"many wrappers":    strings.Repeat("parallel ", 3000) + "'x y'",
		"unknown wrappers": "script -z " + strings.Repeat("strace ", 3000),
		"watching watches": strings.Repeat("watch ", 200) + "'" + strings.Repeat("watch ", 200) + "\"a b\"'",
		"aliases":          "alias " + strings.Repeat("a='alias b=c' ", 3000),
		"braces":           "rm " + strings.Repeat("{a,b}", 60),
		"nested braces":    "rm " + strings.Repeat("{a,", 3000) + strings.Repeat("}", 3000),
		"functions":        strings.Repeat("f(){ ", 300) + "f;" + strings.Repeat("}; ", 300),
		"mistakes":         strings.Repeat("ls (\n", 5000),
		"words":            "env -Q " + strings.Repeat("git ", 20_000),
	} {
		Analyze(command, inRoot)
		if d := time.Since(start); leaktest.Long() && d > time.Minute {
			t.Fatalf("%s: %v, want far less than a minute for all", name, d)
		}
	}
}

func FuzzTakeApart(f *testing.F) {
	for _, name := range dangerCorpora() {
		for _, r := range corpus(f, name) {
			f.Add(r.command)
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		a := Analyze(command, inRoot)
		for _, p := range a.Parts {
			if len(p.Forms) == 0 || slices.Contains(p.Forms, "") {
				t.Fatalf("%q: the part %q has no forms or an empty one: %q", command, p.Text, p.Forms)
			}
		}
		if a.Class == ReadOnly && (a.Unclear || a.Person != "" || len(a.Removes) > 0) {
			t.Fatalf("%q: read-only, but unclear %v, person %q, removes %q", command, a.Unclear, a.Person, a.Removes)
		}
		if a.Class == ReadOnly && slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Class != ReadOnly || p.Exact }) {
			t.Fatalf("%q: read-only as a whole, but not each part: %+v", command, a.Parts)
		}
		if strings.ContainsAny(command, "\\<\r") || newScript(command).file == nil || newScript(command+"\nx").file == nil {
			return // what follows may belong to a here-document
		}
		longer := Analyze(command+"\nx", inRoot)
		if len(longer.Parts) < len(a.Parts) {
			t.Fatalf("%q: %d parts, with another command %d", command, len(a.Parts), len(longer.Parts))
		}
		for _, p := range a.Parts {
			if !slices.ContainsFunc(longer.Parts, func(q Part) bool {
				return q.Text == p.Text && q.Exact == p.Exact && q.Inner == p.Inner && slices.Equal(q.Forms, p.Forms) && slices.Equal(q.Edits, p.Edits)
			}) {
				t.Fatalf("%q: with another command, the part %+v is gone: %+v", command, p, longer.Parts)
			}
		}
	})
}
